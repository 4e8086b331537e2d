"""Sessions that somebody else made: refused where records could be written twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFIG = (
    "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\n"
    "A->B.enabled = true\ntopics = t\n"
)
SCRIPT = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from srm_spark.config import load_settings
from srm_spark.driver import Driver
from srm_spark.errors import SetupError

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
session = builder.config("spark.speculation", "true").config("spark.log.level", "ERROR").getOrCreate()
settings = load_settings([Path(sys.argv[1])])
for given in (session, None):
    try:
        Driver(settings, session=given)
    except SetupError as error:
        print(error)
"""


def test_speculation_is_refused_with_its_remedy(tmp_path: Path) -> None:
    """In a process of its own: a session's speculation is fixed when it starts."""
    (tmp_path / "srm.properties").write_text(CONFIG)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "srm.properties")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    assert all("spark.speculation is on" in line for line in lines)
    assert all("start the session with spark.speculation=false" in line for line in lines)


WITHOUT_JARS = """
import logging
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from pyspark.sql import SparkSession
from srm_spark import Driver, load_settings, read_offset_map
from srm_spark.errors import SetupError, StateFailed
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.topics.map_table import MapTable

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
logging.getLogger("py4j").setLevel(logging.ERROR)
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
session = builder.config("spark.log.level", "ERROR").getOrCreate()
settings = load_settings([Path(sys.argv[1])])
try:
    read_offset_map(session, settings, "A->B")
except StateFailed as error:
    print(error)
maps = SimpleNamespace(refresh=lambda: None, lock=threading.RLock(), maps={})
table = MapTable(settings.flows[0], session, maps)
tasks = Periodic()
tasks.start()
table.start(tasks)
print("ended:", table.join(90))
try:
    Driver(settings, session=session)
except SetupError as error:
    print(error)
"""


def test_without_jars_a_flow_goes_without_its_table_but_not_without_the_kafka_source(tmp_path: Path) -> None:
    (tmp_path / "srm.properties").write_text(f"{CONFIG}state.path = {tmp_path}/state\nstate.interval.seconds = 1\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JARS, str(tmp_path / "srm.properties")],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    # On a slow machine a round of the table takes longer than the second that it has, and that is told, too.
    lines = [line for line in done.stdout.splitlines() if not line.startswith("task=")]
    assert len(lines) == 5, (lines, done.stderr)
    assert lines[0].startswith(f"flow A->B: {tmp_path}/state/offset-map/A/B cannot be read: ")
    assert lines[1].startswith("flow=A->B the table of its offset map is not up to date: ")
    remedy = "this Spark session was started without Delta: start it with the jars of docs/running.md and --conf "
    assert all(remedy in line for line in lines[:2])
    assert lines[2] == "ended: True"
    assert "spark.redaction.regex of this session" in lines[3]
    assert lines[4].startswith(
        "this Spark session was started without the Kafka source: make it by srm_spark.session()"
    )
    assert not (tmp_path / "state").exists()
