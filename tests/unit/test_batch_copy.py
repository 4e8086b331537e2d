"""A task of whole batches comes to its end whatever becomes of one of its partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.record_batch import Author, Authorship
from srm_spark.core.reports import PartitionReport
from srm_spark.failure import FailureKind
from srm_spark.kafka.batches import reader
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.copy import Whole, copy_share
from srm_spark.kafka.batches.hand import Hand
from srm_spark.kafka.batches.source_pool import keep_source
from srm_spark.kafka.batches.writer import BatchWriter
from tests.batch_bytes import NOW, Raw, batch, sealed
from tests.unit.memory_brokers import Log, MemoryBrokers
from tests.unit.memory_source import MemoryLog, MemorySource

BAD, GOOD = TopicPartition("bad", 0), TopicPartition("good", 0)
BATCHES, SIZE = 14, 900_000


def log_of(first_mark: int) -> MemoryLog:
    marks = range(BATCHES)
    return MemoryLog([sealed(batch([Raw(None, bytes(SIZE), NOW + first_mark + n, ())], n)) for n in marks], end=BATCHES)


def copied(brokers: MemoryBrokers, max_bytes: int) -> dict[TopicPartition, PartitionReport]:
    source = MemorySource({BAD: log_of(0), GOOD: log_of(1000)})
    source.logs[GOOD].topic_id = bytes([1] * 16)
    options = {"bootstrap.servers": f"memory:{id(source)}"}
    keep_source(options, cast("Brokers", source))
    whole = Whole(options, {}, "a", {}, committed=False, source_seconds=60.0)

    def records(
        part: Mapping[TopicPartition, OffsetRange], reports: Mapping[TopicPartition, PartitionReport], most_bytes: int
    ) -> list[PartitionReport]:
        del reports, most_bytes
        return [
            PartitionReport(p, target_end=None, slack=0, next_offset=r.start, is_complete=False, is_cut=True)
            for p, r in part.items()
        ]

    with Hand(BatchWriter(cast("Brokers", brokers)), {}, 30.0, Authorship(Author(1, 0))) as hand:
        reports = copy_share(
            whole,
            hand,
            ranges=dict.fromkeys((BAD, GOOD), OffsetRange(0, BATCHES)),
            routes={p.topic: Route(p.topic, Limits()) for p in (BAD, GOOD)},
            ends=dict.fromkeys((BAD, GOOD), 0),
            slack=dict.fromkeys((BAD, GOOD), 0),
            max_bytes=max_bytes,
            records=records,
        )
    return {report.partition: report for report in reports}


@pytest.fixture
def small_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is read and not written yet."""
    monkeypatch.setattr(reader, "AHEAD_BYTES", 4 * SIZE)


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("small_room")
@pytest.mark.parametrize("max_bytes", [100 * SIZE, 8 * SIZE])
def test_what_lies_behind_a_refused_batch_keeps_nobody_waiting(max_bytes: int) -> None:
    brokers: Any = MemoryBrokers()
    brokers.refused = {3}
    found = copied(brokers, max_bytes)
    assert brokers.logs[BAD].batches == [0, 1, 2]
    assert found[BAD].next_offset == 3
    assert found[BAD].hold is not None or found[BAD].is_cut
    assert brokers.logs[GOOD].batches == [1000 + n for n in range(found[GOOD].next_offset)]
    if max_bytes > 2 * BATCHES * SIZE:
        assert found[GOOD].is_complete
        assert found[GOOD].next_offset == BATCHES


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("small_room")
def test_what_lies_behind_a_failure_keeps_nobody_waiting() -> None:
    brokers: Any = MemoryBrokers()
    brokers.logs[BAD] = Log(epoch=1)  # somebody newer writes there
    found = copied(brokers, 100 * SIZE)
    failure = found[BAD].failure
    assert failure is not None
    assert failure.kind is FailureKind.OVERTAKEN
    assert found[GOOD].is_complete
