"""What is put aside, and in which order it is written; and unreadable records as rows for Spark. No broker."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from srm_spark.config import load_settings
from srm_spark.config.settings import ClusterSettings, FlowSettings
from srm_spark.core.cluster import ControlRecord
from srm_spark.core.limits import Limits, Route, first_refused
from srm_spark.core.model import Flow, OffsetRange, RefusedPolicy, TopicPartition
from srm_spark.core.quarantine import ENTRIES, PART_BYTES, PARTS, decode_content, decode_entry, decode_key, entry_key
from srm_spark.core.rows import COLUMNS, runs_of
from srm_spark.core.tail import TailRecord
from srm_spark.errors import ProgressFailed, TargetUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.refused import quarantining, unreadable
from srm_spark.flow.refused.quarantining import Quarantining
from tests.unit.memory_flow import MemoryFlow, flow_settings

TOLD = Failure(FailureKind.NO_KEY, "no key, says the executor")

P = TopicPartition("t", 3)
NOW = 1_700_000_000_000


class _Store:
    """Keeps what is written, call by call."""

    def __init__(self) -> None:
        self.calls: list[list[ControlRecord]] = []

    def write(self, records: Iterable[ControlRecord]) -> None:
        self.calls.append(list(records))


@pytest.fixture
def settings(tmp_path: Path) -> FlowSettings:
    path = tmp_path / "srm.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\ndialect = mm2\n"
    )
    (flow,) = load_settings([path]).flows
    return flow


def _log(monkeypatch: pytest.MonkeyPatch, records: Sequence[TailRecord]) -> None:
    """What plain consumers read of any partition."""

    def read(
        _: ClusterSettings, __: object, partition: TopicPartition, offsets: OffsetRange, ___: object
    ) -> Iterator[TailRecord]:
        assert partition == P
        yield from (record for record in records if offsets.start <= record.offset < offsets.end)

    monkeypatch.setattr(quarantining, "read_range", read)
    monkeypatch.setattr(unreadable, "read_range", read)


def _quarantining(settings: FlowSettings, store: _Store, limits: Limits, seconds: float = 30.0) -> Quarantining:
    routes = {"t": Route("A.t", limits, RefusedPolicy.PARK)}
    return Quarantining(settings, routes, {"t": "id"}, store, seconds=seconds)


def test_what_is_refused_in_a_row_is_put_aside_and_nothing_else(
    settings: FlowSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = b"x" * (2 * PART_BYTES)
    records = [TailRecord(7, NOW, None, large), TailRecord(9, NOW, None, b"v"), TailRecord(10, NOW, b"k", b"v")]
    _log(monkeypatch, [*records, TailRecord(11, NOW, None, b"v")])
    store = _Store()
    end = _quarantining(settings, store, Limits(needs_key=True)).put(P, OffsetRange(7, 12), TOLD)
    assert end == 10, "the third one has a key"
    parts, entries = store.calls
    assert {record.partition for record in parts} == {PARTS}
    assert {record.partition for record in entries} == {ENTRIES}, "written when the parts are acknowledged"
    assert {record.topic for record in parts + entries} == {"mm2-quarantine.A.internal"}
    for at, reason in (
        (0, "no key, says the executor"),
        (1, "the record has no key and the target topic is compacted"),
    ):
        (place, _) = decode_key(entries[at].key) or pytest.fail("no key")
        assert (place.flow, place.partition, place.topic_id) == (Flow("A", "B"), P, "id")
        entry = decode_entry(place, entries[at].value or b"")
        assert (place.offset, entry.why.sentence) == (records[at].offset, reason)
        content = [record.value or b"" for record in parts if (decode_key(record.key) or (None,))[0] == place]
        assert len(content) == entry.parts
        assert decode_content(entry, b"".join(content)) == records[at]


def test_a_stretch_is_put_aside_in_chunks(settings: FlowSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    _log(monkeypatch, [TailRecord(offset, NOW, None, b"v") for offset in range(2500)])
    store = _Store()
    assert _quarantining(settings, store, Limits(needs_key=True)).put(P, OffsetRange(0, 2500)) == 2500
    assert [len(call) for call in store.calls] == [1000, 1000, 1000, 1000, 500, 500]


def test_what_takes_too_long_is_left_to_the_next_call(settings: FlowSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    _log(monkeypatch, [TailRecord(offset, NOW, None, b"v") for offset in range(2500)])
    assert _quarantining(settings, _Store(), Limits(needs_key=True), seconds=-1.0).put(P, OffsetRange(0, 2500)) == 1000


def test_a_record_that_is_gone_is_not_passed(settings: FlowSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    _log(monkeypatch, [])
    store = _Store()
    assert (
        _quarantining(settings, store, Limits()).put(P, OffsetRange(7, 12), Failure(FailureKind.TOO_LARGE, "large"))
        == 7
    )
    assert store.calls == []


def test_unreadable_records_become_rows_that_the_target_takes(
    settings: FlowSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = 1_700_000_000_000_000_000
    records = [TailRecord(4, far, b"k", None, (("h", None),)), TailRecord(6, far, None, b"v")]
    _log(monkeypatch, [*records, TailRecord(7, NOW, None, b"v"), TailRecord(8, far, None, b"v")])
    for limits in (Limits(after_ms=3_600_000), Limits(), Limits(after_ms=2**63 - 1)):
        rows = unreadable.fixed_rows(settings, P, OffsetRange(4, 9), limits)
        header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        types = [pa.string(), pa.int32(), pa.int64(), pa.timestamp("us", "UTC"), pa.binary(), pa.binary(), header]
        arrays = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
        (run,) = runs_of(pa.RecordBatch.from_arrays(arrays, list(COLUMNS)))
        assert (run.partition, run.offsets.tolist()) == (P, [4, 6])
        assert first_refused(run, limits, int(time.time() * 1000)) is None
        original = ("srm-original-timestamp", str(far).encode())
        assert list(run.header_lists()) == [[("h", None), original], [original]]
        assert run.keys.to_pylist() == [b"k", None]
        assert all(stamp < unreadable.OVERFLOW_MS for stamp in run.timestamps.tolist())
    assert unreadable.fixed_rows(settings, P, OffsetRange(7, 9), Limits()) == []


def test_an_entry_of_another_version_is_told_with_its_place() -> None:
    flow = MemoryFlow(flow_settings({"policy.park.topics": "t"}))
    flow.write(b"big")
    flow.start()
    parked = flow.park(0)
    topic = flow.settings.quarantine_topic
    newer = ControlRecord(topic, entry_key(parked.place), b'{"v":99}', partition=ENTRIES)
    flow.target.writer("newer", ProgressFailed).write([newer])
    with pytest.raises(TargetUnavailable, match=r"in topic mm2-quarantine\.A\.internal: the record at offset 1: .*99"):
        flow.recorded.quarantine().offsets({})
