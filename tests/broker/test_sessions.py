"""A session that is there already is used as it is, and left as it was; a Spark Connect session works, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from srm_spark.config import load_settings
from srm_spark.driver import Driver
from tests.broker.conftest import Pair
from tests.broker.mirror import assert_copied, await_lag_zero, write_config
from tests.kafka_io import numbered

CONNECT = """
import logging, sys
from pathlib import Path
from pyspark.sql import SparkSession
from srm_spark.config import load_settings
from srm_spark.driver import Driver
from srm_spark.jars import fetch

logging.basicConfig(level="INFO")
jars = ",".join(str(jar) for jar in fetch("driver"))
session = SparkSession.builder.remote("local[2]").config("spark.jars", jars).getOrCreate()
print(type(session).__module__, flush=True)
with Driver(load_settings([Path(sys.argv[1])]), session=session) as driver:
    sys.stdin.read()  # until the test has seen enough
"""


def confs(session: SparkSession) -> tuple[dict[str, str], dict[str, str]]:
    """What the application and the session are set to."""
    session.range(1).collect()  # with its first query Spark itself sets where tables lie
    return dict(session.sparkContext.getConf().getAll()), dict(session.conf.getAll)


def test_the_existing_session_is_found_and_left_as_it_was(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(20, 2))
    active = SparkSession.getActiveSession()  # other tests may have left another one than `spark`
    before = confs(spark)
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], pair.keys)
    with Driver(load_settings([path])) as driver:
        assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
        await_lag_zero(driver)
        assert confs(spark) == before
    assert confs(spark) == before
    assert SparkSession.getActiveSession() is active
    assert spark.range(3).count() == 3  # it was not ours to stop
    assert not spark.streams.active


def test_a_spark_connect_session_replicates(pair: Pair, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(20, 2))
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], pair.keys)
    with (tmp_path / "log").open("w") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", CONNECT, str(path)], stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=tmp_path
        )
        try:
            assert_copied(pair.source, pair.topic(), pair.target, pair.remote(), 150)
            pair.source.write(pair.topic(), numbered(20, 2, "more"))
            assert_copied(pair.source, pair.topic(), pair.target, pair.remote())
            driver.communicate(timeout=90)
        finally:
            driver.kill()
            driver.wait(30)
    said = (tmp_path / "log").read_text()
    assert driver.returncode == 0, said
    assert "pyspark.sql.connect.session" in said.splitlines(), said
    assert "state=stopped" in said
