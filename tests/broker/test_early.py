"""Records are copied before Spark is there, and its query takes over without a record lost or doubled."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from srm_spark.config.settings import FlowSettings
from srm_spark.core.leases import PATIENCE_SECONDS, Standing
from srm_spark.flow.batch.reading import THREADS
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.runner import FlowRunner
from srm_spark.flow.status import FlowState
from srm_spark.spark.opening import Spark
from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.map_reader import assert_map_is_exact, read_map
from tests.broker.mirror import SOON
from tests.broker.process import kill_all_of, srm_driver
from tests.kafka_io import Kafka, numbered
from tests.lease_io import standing
from tests.soak.load import Load, await_all, compare

PARTITIONS = 3
TAKES_OVER = "Spark is there"


@contextmanager
def running(settings: FlowSettings, coming: Future[SparkSession]) -> Iterator[FlowRunner]:
    """A flow whose Spark is still to come; it ends with the block."""
    tasks = Periodic()
    tasks.start()
    runner = FlowRunner(settings, Spark(coming), tasks)
    runner.start()
    try:
        yield runner
    finally:
        runner.stop()
        assert runner.join(60)
        tasks.stop(10)


def test_a_query_goes_on_behind_what_was_copied_without_spark(pair: Pair, tmp_path: Path, spark: SparkSession) -> None:
    coming: Future[SparkSession] = Future()
    pair.source.create(pair.topic(), PARTITIONS)

    def end() -> int:
        return sum(pair.target.ends(pair.remote()).values())

    def await_end(offsets: int) -> None:
        await_until(lambda: end() >= offsets, SOON, f"{offsets} offsets")

    with running(pair.settings(tmp_path), coming) as runner:
        with Load(pair.source, pair.topic(), PARTITIONS) as load:
            await_end(300)
            assert runner.status.state is FlowState.RUNNING
            coming.set_result(spark)
            await_until(lambda: runner.status.batch_ms, SOON, "a batch of Spark")
            await_end(end() + 300)
            load.end()
        await_all(pair.source, pair.topic(), pair.target, pair.remote(), SOON)
    here, there = pair.source.read(pair.topic()), pair.target.read(pair.remote(), committed=True)
    verdict = compare(here, there)
    assert verdict.is_good, str(verdict)
    found = read_map(pair.target, pair.map_topic)
    for partition in range(PARTITIONS):
        assert_map_is_exact(found[pair.topic(), partition], here, there, partition)


def test_a_backlog_is_copied_by_several_threads_until_spark_is_there(pair: Pair, tmp_path: Path) -> None:
    seen: set[str] = set()
    count = 60_000
    pair.source.create(pair.topic(), PARTITIONS)
    pair.source.write(pair.topic(), numbered(count, PARTITIONS, "v" * 200))

    def note(*_: object) -> None:
        """The first call of every new thread."""
        seen.add(threading.current_thread().name)
        sys.setprofile(None)

    def is_copied() -> bool:
        return sum(pair.target.ends(pair.remote()).values()) >= count

    settings = pair.settings(tmp_path)
    several = replace(settings, batch=replace(settings.batch, tasks_max=PARTITIONS))
    threading.setprofile(note)
    try:
        with running(several, Future()):
            await_until(is_copied, SOON, "the backlog")
    finally:
        threading.setprofile(None)
    assert {f"{THREADS}_{number}" for number in range(PARTITIONS)} <= seen
    assert pair.target.read(pair.remote()) == pair.source.read(pair.topic())


@pytest.mark.slow
def test_a_driver_that_dies_at_any_moment_of_its_start_leaves_nothing_lost_or_doubled(
    local_kafka: Callable[..., LocalKafka], unique: str, tmp_path: Path, chance: random.Random
) -> None:
    """Before Spark is there, while its query takes over, and right behind that."""
    clusters = {"a": local_kafka("early-source"), "b": local_kafka("early-target")}
    source, target = Kafka(clusters["a"]), Kafka(clusters["b"])
    topic, remote = f"t-{unique}", f"a.t-{unique}"
    source.create(topic, PARTITIONS)
    log = tmp_path / "driver.log"
    found, since = Standing(), time.monotonic()

    def copies() -> bool:
        return " state=running" in log.read_text(errors="replace")

    def takes_over() -> bool:
        """Behind a kill Spark may be there first: then its query copies from the beginning."""
        text = log.read_text(errors="replace")
        return TAKES_OVER in text or " state=running records=" in text

    def is_free() -> bool:
        """The lease of who was killed is over: who starts before waits for it, and for Spark meanwhile."""
        nonlocal found, since
        if "mm2-leases.a.internal" not in target.topics():
            return True
        if (now := standing(target, "a->b")) != found:
            found, since = now, time.monotonic()
        return found.is_free or time.monotonic() - since > 2 * PATIENCE_SECONDS

    with Load(source, topic, PARTITIONS, per_second=2000, size=500) as load:
        for moment in (copies, takes_over):
            await_until(is_free, SOON, "the lease")
            with srm_driver(tmp_path, clusters, ["a->b"], {"topics": topic}) as driver:
                await_until(moment, SOON, "that moment")
                assert moment is not copies or not takes_over(), "it waited for Spark"
                time.sleep(chance.uniform(0, 1.5))
                kill_all_of(driver)
        await_until(is_free, SOON, "the lease")
        with srm_driver(tmp_path, clusters, ["a->b"], {"topics": topic}):
            await_until(takes_over, SOON, "another one")
            load.end()
            await_all(source, topic, target, remote, SOON)
    verdict = compare(source.read(topic), target.read(remote, committed=True))
    print(verdict)
    assert verdict.records > 5_000
    assert verdict.is_good, str(verdict)
