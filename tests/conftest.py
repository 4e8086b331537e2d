"""Clusters and names for all tests. Brokers start once a run, when the first test asks; topics belong to one test."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from pyspark.sql import SparkSession

from srm_spark.config.checkpoint_files import checkpoint_settings
from srm_spark.jars import DELTA_SETTINGS, fetch, find_java
from srm_spark.jars.archive import archive_options
from srm_spark.python_workers import DAEMON, DAEMON_KEY
from srm_spark.spark.session import ARCHIVE, jar_settings
from srm_spark.testing import KafkaCluster, LocalKafka, kafka_cluster, run_java_source
from srm_spark.testing.java import QUICK_START
from tests.kafka_io import Kafka

TESTS = Path(__file__).parent
MARKED_FOLDERS = ("spark", "broker", "browser")
CODE_CACHE = "-XX:ReservedCodeCacheSize=512m"
"""A JVM of one compiler reserves 48 MB, full after ten minutes of tests; then it compiles the same code anew."""

_shared: list[Kafka] = []
"""Clusters that several tests use."""

# A slow example says nothing on a machine that does other things as well; pytest's timeout ends a hanging one.
hypothesis_settings.register_profile("srm-spark", deadline=None)
hypothesis_settings.load_profile("srm-spark")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kafka-bootstrap-servers",
        default="",
        metavar="A,B[,C]",
        help="use these clusters as primary, secondary and tertiary instead of starting brokers; "
        "several brokers of one cluster are joined by ';'",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The folder says what a test needs, so nobody has to remember the marker."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in MARKED_FOLDERS:
            item.add_marker(folder)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: each of hundreds of flows that end would look through it for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _leave_no_clients(request: pytest.FixtureRequest) -> Iterator[None]:
    """Clients in circles of references try for ever to reach brokers that are gone, by two threads each."""
    yield
    if any(request.node.get_closest_marker(folder) for folder in MARKED_FOLDERS):
        gc.collect()


def _cluster(config: pytest.Config, index: int, name: str) -> Iterator[KafkaCluster]:
    external = str(config.getoption("--kafka-bootstrap-servers")).split(",")
    if external == [""]:
        external = []
    elif index >= len(external):
        pytest.skip(f"--kafka-bootstrap-servers names {len(external)} clusters, {name} would be number {index + 1}")
    with kafka_cluster(name, external=external[index].replace(";", ",") if external else "") as cluster:
        _shared.append(Kafka(cluster))
        yield cluster


@pytest.fixture(scope="session")
def primary(pytestconfig: pytest.Config) -> Iterator[KafkaCluster]:
    """The usual source."""
    yield from _cluster(pytestconfig, 0, "primary")


@pytest.fixture(scope="session")
def secondary(pytestconfig: pytest.Config) -> Iterator[KafkaCluster]:
    """The usual target."""
    yield from _cluster(pytestconfig, 1, "secondary")


@pytest.fixture(scope="session")
def tertiary(pytestconfig: pytest.Config) -> Iterator[KafkaCluster]:
    """The third of a ring or chain."""
    yield from _cluster(pytestconfig, 2, "tertiary")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one embedded session of the run, small, as a user's notebook would have made it."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["JAVA_HOME"] = str(find_java().home)
    builder = SparkSession.builder.appName("srm-spark tests").master("local[2]")
    settings = {
        **jar_settings(fetch("driver")),
        DAEMON_KEY: DAEMON,
        "spark.driver.memory": "2g",
        # Hundreds of short flows: a compiler that optimises less takes a third of the CPU.
        "spark.driver.extraJavaOptions": " ".join((*QUICK_START[:2], CODE_CACHE, *archive_options(ARCHIVE))),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        # Each plan of a test runs once or twice over a handful of rows: to compile it takes a quarter of the time.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.databricks.delta.snapshotPartitions": "1",  # 50 tasks for each look at a table of five rows
        "spark.log.level": "ERROR",
        **checkpoint_settings(),
        **DELTA_SETTINGS,
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def local_kafka() -> Iterator[Callable[..., LocalKafka]]:
    """Factory of brokers that belong to one test, which may stop, kill and pause them: `local_kafka("name", …)`."""
    with ExitStack() as stack:

        def start(name: str, **arguments: Any) -> LocalKafka:
            return stack.enter_context(LocalKafka(name, **arguments))

        yield start


@pytest.fixture
def unique() -> Iterator[str]:
    """A suffix that makes topic and group names of this test its own: one broker serves the whole run.

    Its topics go with it: who looks for new ones lists all there are, and after hundreds of tests takes seconds.
    """
    suffix = uuid.uuid4().hex[:8]
    yield suffix
    for kafka in _shared:
        kafka.delete_all(suffix)


@pytest.fixture(scope="session")
def kafka_jars() -> list[Path]:
    """The class path of brokers, tools and MirrorMaker 2."""
    return fetch("kafka")


@pytest.fixture(scope="session")
def java_judge() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run_java_source(source, *arguments)`: Kafka's own Java classes as judges. Needs a JDK, which CI must have."""
    if not find_java().has_compiler and not os.environ.get("CI"):
        pytest.skip(f"{find_java().home} is a JRE; Java judges need a JDK (openjdk-17-jdk-headless)")
    return run_java_source
