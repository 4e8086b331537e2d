"""Records of installations from before there were kinds of failure; each sentence as the program wrote it."""

from __future__ import annotations

import json

import pytest

from srm_spark.core.codec import decode_progress_detail, encode_progress_detail
from srm_spark.core.failure_wordings import recorded
from srm_spark.core.model import Flow, PausedPartition, TopicPartition
from srm_spark.core.quarantine import SourcePlace, decode_entry
from srm_spark.failure import Failure, FailureKind

PROGRESS = (
    '{"v":1,"source":[40,50],"target_end":12,"intervals":[[40,7,3],[45,10,2]],'
    '"hold":{"offset":47,"reason":"%s"},"topic_id":"x_Y-1","bytes":99,"latency_ms":7,"zero_timestamps":1,"lost":[]}'
)
ENTRY = (
    '{"v":1,"reason":"%s","timestamp":1700000000000,"timestamp_type":"CreateTime","size":34,'
    '"part_size":500000,"parked_at":1700000000001}'
)
WORDINGS = {
    "foreign writer: target offset 5 holds a record that was never on A (A.t-0): somebody else writes to the remote "
    "topic; stop that writer, then reset this partition's progress in mm2-offsets.A.internal or delete the remote "
    "topic": FailureKind.FOREIGN_WRITER,
    "the record has no key and the target topic is compacted": FailureKind.NO_KEY,
    "the timestamp -5 is too old: the target topic's message.timestamp.before.max.ms is 10": (
        FailureKind.TIMESTAMP_OUT_OF_RANGE
    ),
    "the timestamp 99 lies in the future: the target topic's message.timestamp.after.max.ms is 10": (
        FailureKind.TIMESTAMP_OUT_OF_RANGE
    ),
    "the record takes 2000 bytes and the target topic's max.message.bytes is 1000": FailureKind.TOO_LARGE,
    "the name of its header 'b\\\\ufffd' may not be UTF-8, and Spark's Kafka source decodes names; pip install "
    "'srm-spark[compiled]', which reads it as it is": FailureKind.HEADER_NAME,
    "librdkafka cannot read its headers: they are broken, or more than 100,000; delete it on the source "
    "(kafka-delete-records) or let retention pass it": FailureKind.BROKEN_HEADERS,
    "its timestamp is 9223372036854776 ms or later (nanoseconds written as milliseconds?), which Spark's Kafka source "
    "cannot read; delete it on the source (kafka-delete-records) or let retention pass it": (
        FailureKind.TIMESTAMP_OVERFLOW
    ),
    "the timestamp 9223372036854777 is beyond what Spark's Kafka source reads (nanoseconds taken for milliseconds?)": (
        FailureKind.TIMESTAMP_OVERFLOW
    ),
    "TOPIC_AUTHORIZATION_FAILED: Broker: Topic authorization failed; allow WRITE on topic A.t to the principal of "
    "these credentials": FailureKind.TARGET_DENIED,
    "A.t-0 on B has a transaction open since offset 7: if `kafka-transactions.sh` names it": (
        FailureKind.OPEN_TRANSACTION
    ),
    "the source deleted offsets 4 to 9 before they were replicated; set source.truncated.policy=resume to go on behind "
    "them": FailureKind.SOURCE_TRUNCATED,
    "the source topic was created anew; set source.recreated.policy=resume to start at its beginning": (
        FailureKind.SOURCE_RECREATED
    ),
    "offsets 3 to 8 were replicated, and the source has none or other records there now (unclean leader election, or a "
    "log from a backup); set source.diverged.policy=resume to go on at 3": FailureKind.SOURCE_DIVERGED,
    "A.t-0 was truncated or created anew: the copies of offsets 3 to 8 are gone there; set "
    "target.changed.policy=resume to go on behind them": FailureKind.COPIES_GONE,
    "Spark cannot read from A: Not authorized to access topics: [t]; allow READ on topic t to the principal of these "
    "credentials": FailureKind.SOURCE_DENIED,
    "cluster A: Not authorized to access topics: [t]; allow READ on topic t": FailureKind.SOURCE_DENIED,
    "something that nobody ever wrote": FailureKind.OTHER,
}


@pytest.mark.parametrize(("sentence", "kind"), WORDINGS.items())
def test_what_was_recorded_without_a_kind_gets_it_from_its_words(sentence: str, kind: FailureKind) -> None:
    said = json.loads(f'"{sentence}"')
    detail = decode_progress_detail((PROGRESS % sentence).encode())
    assert detail is not None
    assert detail.hold == PausedPartition(47, Failure(kind, said))
    place = SourcePlace(Flow("A", "B"), TopicPartition("t", 0), "id", 47)
    assert decode_entry(place, (ENTRY % sentence).encode()).why == Failure(kind, said)


def test_what_is_recorded_now_is_known_whatever_it_says() -> None:
    for kind in FailureKind:
        detail = decode_progress_detail((PROGRESS % "foreign writer: x").encode())
        assert detail is not None
        object.__setattr__(detail, "hold", PausedPartition(47, Failure(kind, "foreign writer: x")))
        found = decode_progress_detail(encode_progress_detail(detail))
        assert found is not None
        assert found.hold == PausedPartition(47, Failure(kind, "foreign writer: x"))


def test_a_kind_of_a_newer_version_is_some_other_one() -> None:
    assert recorded("new", "of-tomorrow") == Failure(FailureKind.OTHER, "new")


def test_codes_are_for_ever() -> None:
    """Of each code something may be recorded: one that is renamed or gone would not be understood any more."""
    assert sorted(kind.value for kind in FailureKind) == [
        "another-source", "broken-batch", "broken-headers", "copies-gone", "foreign-writer", "group-denied",
        "group-has-members", "group-unanswered", "header-name", "lease-held", "lease-lost", "no-key",
        "no-leader", "not-acknowledged", "not-committed", "not-recorded", "open-transaction", "other",
        "overtaken", "paused", "producer-failed", "rolled-back", "source-away", "source-changed",
        "source-denied", "source-diverged", "source-recreated", "source-truncated", "target-away",
        "target-changed", "target-denied", "timestamp-out-of-range", "timestamp-overflow", "too-large",
        "write-refused",
    ]  # fmt: skip
