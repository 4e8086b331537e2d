"""Sessions that somebody else made: refused where records could be written twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFIG = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\nA->B.enabled = true\n"
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
