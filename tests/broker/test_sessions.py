"""A session that is there already is used as it is, and left as it was; a Spark Connect session works, too."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from srm_spark.config import load_settings
from srm_spark.driver import Driver
from srm_spark.jars import fetch
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_lag_zero, write_config
from tests.broker.spark_cluster import QUICK_JVM, spark_home, submit_environment
from tests.kafka_io import numbered
from tests.soak.load import Load, compare

pytestmark = pytest.mark.slow
HAS_SERVER = pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="Spark 3.5 comes without it")

CONNECT = """
import logging, sys
from pathlib import Path
from pyspark.sql import SparkSession
from srm_spark.config import load_settings
from srm_spark.driver import Driver
from srm_spark.jars import fetch


logging.basicConfig(level="INFO")
jars = ",".join(str(jar) for jar in fetch("driver"))
session = SparkSession.builder.remote(sys.argv[2]).config("spark.jars", jars).getOrCreate()
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


@HAS_SERVER
def test_a_spark_connect_session_replicates(pair: Pair, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(20, 2))
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], pair.keys)
    with (tmp_path / "log").open("w") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", CONNECT, str(path), "local[2]"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=tmp_path,
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


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The address of a Spark Connect server that outlives its clients."""
    home = spark_home(folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    conf = {
        "spark.connect.grpc.binding.port": port,
        "spark.jars": ",".join(str(jar) for jar in fetch("driver")),
        "spark.pyspark.python": sys.executable,
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": QUICK_JVM,
    }
    pairs = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [str(home / "bin" / "spark-submit"), "--master", "local[2]", *pairs, "--class", name, "spark-internal"],
            stdout=log,
            stderr=log,
            env=submit_environment(home),
            cwd=folder,
            start_new_session=True,
        )
        try:
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(server.pid, 9)
            server.wait()


@HAS_SERVER
def test_the_query_of_a_killed_driver_that_lives_on_in_a_spark_connect_server_writes_no_more(
    pair: Pair, tmp_path: Path
) -> None:
    """Its batch function runs on the server, which keeps the session of a client that is gone for an hour."""
    pair.source.create(pair.topic(), 2)
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], pair.keys)
    with Load(pair.source, pair.topic(), 2) as load, connect_server(tmp_path) as server:
        with (tmp_path / "log").open("w") as log:
            killed = subprocess.Popen(
                [sys.executable, "-c", CONNECT, str(path), server], stdin=subprocess.PIPE, stdout=log, stderr=log
            )
            try:
                await_until(
                    lambda: pair.target.count(pair.remote()) > 500,
                    4 * SOON,  # a server, a session and its driver start, one behind the other
                    lambda: f"copies by the server:\n{(tmp_path / 'log').read_text()[-5000:]}",
                )
            finally:
                killed.kill()
                killed.wait()
        driver = pair.replicate()
        there = pair.target.count(pair.remote())
        await_until(lambda: driver.status()[0].records > 2000, 2 * SOON, lambda: f"{driver.status()[0]}, {there}")
        load.end()
        await_lag_zero(driver)
        driver.stop()
    verdict = compare(pair.source.read(pair.topic()), pair.target.read(pair.remote()))
    assert verdict.is_good, str(verdict)
