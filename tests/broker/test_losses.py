"""What the source itself loses is told as exact offset ranges, and the policy decides whether the topic goes on.

One of each kind; what policies make of them, and losses beside holds: `tests/unit/test_run.py`, `test_assigning.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from srm_spark import read_losses
from srm_spark.cli.control import main
from srm_spark.errors import StateFailed
from srm_spark.testing import ExternalKafka, KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Pair, Start
from tests.broker.mirror import SOON, await_count, await_lag_zero, await_losses, write_config
from tests.broker.progress_reader import read_progress
from tests.door import behind_door
from tests.kafka_io import Kafka, Record, numbered, records

pytestmark = pytest.mark.slow


def _replicated_then_truncated(pair: Pair) -> None:
    """Ten records flow, ten more come while nobody runs, and the first five of these are deleted."""
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    driver.stop()
    pair.source.write(pair.topic(), numbered(10, prefix="later "))
    pair.source.delete_records(pair.topic(), 0, 15)


def test_records_deleted_before_they_were_replicated_are_told_exactly(pair: Pair) -> None:
    _replicated_then_truncated(pair)
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 15)
    await_losses(driver, {f"{pair.topic()}-0": "10 to 14"})
    await_lag_zero(driver)
    driver.stop()
    copied, left = records(pair.target.read(pair.remote()))[0], records(pair.source.read(pair.topic()))[0]
    assert copied[10:] == left


def test_records_deleted_while_they_are_read_are_told_exactly(
    secondary: KafkaCluster, start: Start, unique: str
) -> None:
    """The source deletes amid a batch that it has given in part: readers go on behind that without a word.

    Read by Spark's source, which is slow enough to be caught; `test_fetch.py` has the same for the other way to read.
    """
    count, small, topic, remote = 40_000, "65536", f"t-{unique}", f"a{unique}.t-{unique}"
    keys = {f"a{unique}.consumer.max.partition.fetch.bytes": small}
    with behind_door("deletes") as source:
        here, there = Kafka(source.broker), Kafka(secondary)
        here.create(topic)
        here.write(topic, [Record(None, b"%d " % n + bytes(1000)) for n in range(count)])
        driver = start(
            {f"a{unique}": source, f"b{unique}": secondary},
            [f"a{unique}->b{unique}"],
            {**keys, "topics": topic, "compiled.loop.enabled": "false"},
        )
        await_count(there, remote, 1)
        source.door.hang()
        here.delete_records(topic, 0, count - 500)
        source.door.open()
        here.write(topic, [Record(None, b"%d" % count)])
        await_until(lambda: _values(there, remote)[-1] == count, SOON, "the last record")
        await_lag_zero(driver)
        driver.stop()
        copied = _values(there, remote)
        assert copied == sorted(set(copied))
        progress = read_progress(there, f"mm2-offsets.a{unique}.internal")
        told = [offset for p in progress for first, end, *_ in p.header.get("lost", ()) for offset in range(first, end)]
        assert told, "it was too fast to be caught amid its batch"
        assert sorted(told) == sorted(set(range(count + 1)) - set(copied))


def _values(target: Kafka, remote: str) -> list[int]:
    (log,) = target.read(remote).values()
    return [int((stored.record.value or b"").split()[0].rstrip(bytes(1))) for stored in log]


def test_a_topic_created_anew_between_two_looks_is_copied_from_its_beginning(pair: Pair) -> None:
    """Longer than it was: the batch that skips its first records must see it."""
    count = 20
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(3))
    driver = pair.replicate({"refresh.topics.interval.seconds": "600"})
    await_count(pair.target, pair.remote(), 3)
    pair.source.delete(pair.topic())
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(count, prefix="new "))
    await_count(pair.target, pair.remote(), 3 + count)
    await_until(lambda: driver.status()[0].records == 3 + count, SOON, lambda: f"all counted: {driver.status()}")
    copied, anew = records(pair.target.read(pair.remote()))[0], records(pair.source.read(pair.topic()))[0]
    assert copied[3:] == anew


def test_a_loss_is_kept_for_ever_in_a_table_and_told_without_the_source(
    pair: Pair, spark: SparkSession, tmp_path: Path
) -> None:
    _replicated_then_truncated(pair)
    keys = {**pair.keys, "state.path": str(tmp_path / "state"), "state.interval.seconds": "1"}
    driver = pair.replicate(keys)
    await_losses(driver, {f"{pair.topic()}-0": "10 to 14"})
    settings = driver.settings

    def rows() -> list[tuple[object, ...]]:
        try:
            found = read_losses(spark, settings, pair.flow).collect()
        except StateFailed:
            return []
        return [(row.flow, row.topic, row.partition, row.cause, row.source_start, row.source_end) for row in found]

    expected = [(pair.flow, pair.topic(), 0, "deleted", 10, 15)]
    await_until(lambda: rows() == expected, 2 * SOON, lambda: f"a row, but {rows()}")
    driver.stop()
    gone = {pair.alias: ExternalKafka("gone", "127.0.0.1:1"), pair.target_alias: pair.clusters[pair.target_alias]}
    path = write_config(tmp_path / "gone.properties", gone, [pair.flow], keys)
    told = CliRunner().invoke(main, ["losses", "--config", str(path), "--flow", pair.flow, "-o", "json"])
    assert told.exit_code == 0, told.output
    (loss,) = json.loads(told.output)
    assert (loss["topic"], loss["cause"], loss["source"]) == (pair.topic(), "deleted", {"start": 10, "end": 15})
    told = CliRunner().invoke(main, ["losses", "--config", str(path), "--flow", pair.flow])
    assert f"{pair.topic()}-0: deleted: offsets 10 to 14" in told.output
