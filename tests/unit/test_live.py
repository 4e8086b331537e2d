"""What comes in real time goes as it came, between what is packed anew and records that somebody looks at. No socket:
both clusters are in memory.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import OffsetRange, RefusedPolicy, TopicPartition
from srm_spark.core.record_batch import HEADER_BYTES, Author, Authorship, batches_in
from srm_spark.core.reports import PartitionReport
from srm_spark.failure import FailureKind
from srm_spark.kafka.batches import sorting, writer
from srm_spark.kafka.batches.hand import Hand
from srm_spark.kafka.batches.live import Copying
from srm_spark.kafka.batches.packer import Packing
from srm_spark.kafka.batches.packing import merge
from srm_spark.kafka.batches.runs import RunReader
from srm_spark.kafka.batches.sorting import Form, Pieces, form_of
from srm_spark.kafka.batches.writer import BatchWriter
from srm_spark.kafka.fetch import Fetch, fetch_options
from srm_spark.kafka.writer import WriteTask
from tests.batch_bytes import NOW, Raw, batch, read, record, sealed, varint
from tests.unit.memory_brokers import MemoryBrokers
from tests.unit.memory_source import MemoryLog, MemorySource

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
SIZE = 14_000
"""Ten records of so many bytes are a batch that goes as it came."""


def raws(start: int, count: int, size: int = 10) -> list[Raw]:
    return [Raw(b"k%d" % at, bytes([at % 256]) * size, NOW + at) for at in range(start, start + count)]


def large(start: int, *, changed: Mapping[int, Raw] | None = None) -> bytearray:
    """Ten records from an offset on, of which some are others."""
    found = raws(start, 10, SIZE)
    for at, raw in (changed or {}).items():
        found[at] = raw
    return sealed(batch(found, start))


def small(start: int, count: int = 2, codec: str = "none") -> bytearray:
    return sealed(batch(raws(start, count), start, codec))


@dataclass(frozen=True)
class MemoryTask(WriteTask):
    """Writes to brokers in memory."""

    brokers: Any = None

    def hand(self, slot: int) -> Hand:
        del slot
        return Hand(BatchWriter(self.brokers), self.options, 30.0, Authorship(Author(1, 0)))


@dataclass
class Scene:
    """One task of the lane, turn by turn."""

    source: MemorySource
    starts: Mapping[TopicPartition, int] = field(default_factory=lambda: {P: 0})
    route: Route = field(default_factory=lambda: Route("t", Limits()))
    isolation: str = "read_uncommitted"
    fates: Sequence[str] = ()
    """Of requests to the target."""

    def __post_init__(self) -> None:
        self.target = MemoryBrokers(self.fates)
        task = MemoryTask({}, {"t": self.route}, frozenset(), 10**9, 30.0, brokers=self.target)
        fetch = Fetch(fetch_options({"isolation.level": self.isolation}), "a", 30.0)
        brokers: Any = self.source
        ranges = {p: OffsetRange(start, 2**62) for p, start in self.starts.items()}
        self.reader = RunReader(brokers, fetch, ranges, wait_ms=10, is_live=True)
        self.copying = Copying(task, 0)
        self.sink = self.copying.writing.sink
        self.reports: dict[TopicPartition, PartitionReport] = {}
        self.over: set[TopicPartition] = set()

    @property
    def forms(self) -> dict[str, Form]:
        return {"t": form_of(self.route, {})}

    def turn(self, turns: int = 1) -> None:
        """Everything that has come is written and answered for."""
        for _ in range(turns):
            for some in self.reader.copies(0.01, self.forms):
                self.copying.write(some)
            self.copying.writing.hold(self.reader.holds)
            for _ in range(30):
                self.sink.poll()
                self.copying.open_refused(self.over.__contains__)
                self._take()

    def write(self) -> None:
        """What has come is written, and nobody looks at what is refused."""
        for some in self.reader.copies(0.01, self.forms):
            self.copying.write(some)
        for _ in range(10):
            self.sink.poll()

    def _take(self) -> None:
        for answer in self.sink.acknowledged():
            answer.into(self.reports.setdefault(answer.partition, PartitionReport(answer.partition, target_end=0)))

    def stored(self, partition: TopicPartition = P) -> list[bytes]:
        return self.target.logs[partition].stored

    def copied(self, partition: TopicPartition = P) -> list[Raw]:
        return [raw for one in self.stored(partition) for _, raw in read(one)]

    @property
    def report(self) -> PartitionReport:
        return self.reports[P]

    @property
    def hold(self) -> Any:
        return self.copying.writing.reports[P].hold


def scene_of(*batches: bytearray | bytes, end: int, **more: Any) -> Scene:
    return Scene(MemorySource({P: MemoryLog(list(batches), end=end)}), **more)


def insides(batches: list[bytearray] | list[bytes]) -> list[bytes]:
    return [bytes(one[HEADER_BYTES:]) for one in batches]


def test_large_batches_go_as_they_came_and_small_ones_between_them_as_one() -> None:
    came = [large(0), small(10), small(12), small(14, 6), large(20)]
    scene = scene_of(*came, end=30)
    scene.turn()
    first, _, last = insides(scene.stored())
    assert [first, last] == insides([came[0], came[-1]])
    assert scene.copied() == [raw for one in came for _, raw in read(bytes(one))]
    report = scene.report
    assert (report.records, report.whole, report.merged) == (30, 20, 10)
    assert report.bytes == sum(map(len, scene.stored()))
    assert (report.failure, report.intervals) == (None, [(0, 0, 30)])
    assert report.latency_ms is not None
    assert not scene.sink.is_waiting


@pytest.mark.parametrize(
    ("codec", "below"), [("none", 131_072), ("lz4", 20_480), ("snappy", 20_480), ("zstd", 8_192), ("gzip", 2_048)]
)
@pytest.mark.parametrize("is_below", [False, True])
def test_how_small_a_batch_is_that_goes_with_others_depends_on_what_its_codec_costs(
    codec: str, below: int, *, is_below: bool
) -> None:
    noise = random.Random(7).randbytes(int(below * (0.9 if is_below else 1.1)))
    came = [sealed(batch([Raw(b"k", noise, NOW)], at, codec)) for at in range(2)]
    assert (len(came[0]) < below) == is_below
    scene = scene_of(*came, end=2)
    scene.turn()
    assert (scene.report.whole, scene.report.merged) == ((0, 2) if is_below else (2, 0))


def test_a_small_batch_that_comes_alone_goes_as_it_came() -> None:
    """There is nothing to merge it with, and nobody waits for more."""
    scene = scene_of(small(0, 1), end=1)
    scene.turn()
    log = scene.source.logs[P]
    log.batches.append(small(1, 2, "zstd"))
    log.end = 3
    scene.turn(2)
    assert insides(scene.stored()) == insides([small(0, 1), small(1, 2, "zstd")])
    assert (scene.report.whole, scene.report.merged) == (3, 0)
    log.batches += [small(at, 1) for at in range(3, 103)]
    log.end = 103
    scene.turn(2)
    assert len(scene.stored()) == 3, "a hundred that come together are one"
    assert (scene.report.records, scene.report.whole, scene.report.merged) == (103, 3, 100)


def test_a_batch_that_begins_before_the_start_is_cut_there() -> None:
    scene = scene_of(large(0), large(10), end=20, starts={P: 4})
    scene.turn()
    assert scene.copied() == raws(4, 16, SIZE)
    assert insides(scene.stored())[1] == bytes(large(10)[HEADER_BYTES:])
    assert (scene.report.whole, scene.report.merged) == (10, 6)
    assert scene.report.intervals == [(4, 0, 16)]


def test_control_batches_and_aborted_transactions_are_left_out_and_the_rest_is_nobodys_transaction() -> None:
    def of_transaction(producer: int, start: int) -> bytearray:
        found = large(start)
        found[22] |= 0x10
        found[43:51] = producer.to_bytes(8, "big")
        return sealed(found)

    marker = batch([Raw(b"\0\0\0\0", b"\0" * 6)], 20)
    marker[22] |= 0x30
    marker[43:51] = (77).to_bytes(8, "big")
    log = MemoryLog(
        [of_transaction(77, 0), of_transaction(78, 10), sealed(marker), large(21)], end=31, aborted=[(77, 0)]
    )
    scene = Scene(MemorySource({P: log}), isolation="read_committed")
    scene.turn()
    assert scene.copied() == raws(10, 10, SIZE) + raws(21, 10, SIZE)
    assert scene.report.whole == 20
    assert scene.report.intervals == [(10, 0, 10), (21, 10, 10)]
    assert not any(one[22] & 0x30 for one in scene.stored())


LATE = Raw(b"late", b"x" * SIZE, int(time.time() * 1000) + 86_400_000)
MOVED = Route("t", Limits(after_ms=3_600_000), RefusedPolicy.FIX)
"""Such a record is written with another timestamp."""


def with_a_late_one(*more: bytearray, end: int = 20) -> Scene:
    """The target refuses the second batch for one of its records, which can be fixed."""
    scene = scene_of(large(0), large(10, changed={5: LATE}), *more, end=end, route=MOVED)
    scene.target.refused = {LATE.timestamp - NOW}
    return scene


def test_the_records_of_a_refused_batch_are_looked_at_and_its_neighbours_go_as_they_came() -> None:
    scene = with_a_late_one(large(20), small(30, 1), end=31)
    scene.turn()
    first, *_, last, alone = insides(scene.stored())
    assert [first, last, alone] == insides([large(0), large(20), small(30, 1)])
    copied, expected = scene.copied(), raws(0, 30, SIZE) + raws(30, 1)
    assert copied[:15] + copied[16:] == expected[:15] + expected[16:]
    assert (copied[15].key, copied[15].timestamp < LATE.timestamp) == (b"late", True)
    report = scene.report
    assert (report.failure, report.records, report.whole, report.intervals) == (None, 31, 21, [(0, 0, 31)])
    assert scene.hold is None
    assert not scene.sink.is_waiting


def test_what_comes_while_nobody_has_looked_into_a_refused_batch_goes_behind_it() -> None:
    scene = with_a_late_one()
    scene.write()
    log = scene.source.logs[P]
    log.batches, log.end = [large(20), small(30, 1)], 31
    scene.write()
    assert scene.copied() == raws(0, 10, SIZE)
    scene.turn()
    assert [raw.key for raw in scene.copied()] == [raw.key for raw in (*raws(0, 15), LATE, *raws(16, 15))]
    assert scene.report.intervals == [(0, 0, 31)]


def test_a_record_that_is_refused_within_a_batch_holds_its_partition_behind_those_in_front_of_it() -> None:
    """And nothing behind it is written; the partition beside it goes on."""
    keyless = Raw(None, b"x" * SIZE, NOW + 500)
    logs = {
        P: MemoryLog([large(0), large(10, changed={5: keyless}), large(20)], end=30),
        Q: MemoryLog([large(0), large(10)], end=20),
    }
    scene = Scene(MemorySource(logs), starts={P: 0, Q: 0}, route=Route("t", Limits(needs_key=True)))
    scene.target.refused = {500}
    scene.turn(2)
    assert (scene.hold.offset, scene.hold.why.kind) == (15, FailureKind.NO_KEY)
    assert scene.copied() == raws(0, 10, SIZE) + raws(10, 5, SIZE)
    assert (scene.report.failure, scene.report.intervals) == (None, [(0, 0, 15)])
    assert scene.reports[Q].whole == 20
    assert not scene.sink.is_waiting, "the hold is told once everything before it is acknowledged"


def test_the_first_of_two_records_that_are_refused_holds_the_partition() -> None:
    """The other one is found while nobody has looked into the batch of the first one yet."""
    keyless = Raw(None, b"x" * SIZE, NOW + 500)
    scene = scene_of(end=0, route=Route("t", Limits(needs_key=True, max_bytes=1_000_000)))
    scene.target.refused = {500}
    log = scene.source.logs[P]
    log.batches, log.end = [large(0, changed={9: keyless})], 10
    scene.write()
    scene.write()
    assert scene.sink.is_waiting
    assert not list(scene.sink.acknowledged()), "no failure, for its records may go"
    log.batches, log.end = [small(10, 2), sealed(batch([Raw(None, b"v", NOW)], 12))], 13
    scene.write()
    assert scene.hold.offset == 12
    scene.turn()
    assert scene.hold.offset == 9, "it comes first"
    assert scene.copied() == raws(0, 9, SIZE)


def test_what_is_over_is_not_written_any_more() -> None:
    """Its failure was told; whoever comes next compares both sides."""
    scene = with_a_late_one()
    scene.over.add(P)
    scene.turn()
    assert scene.copied() == raws(0, 10, SIZE)


def test_a_refusal_that_is_no_records_fault_fails_the_partition() -> None:
    """Its records are refused, too."""
    scene = scene_of(large(0), large(10), large(20), end=30)
    scene.target.refused = {19}
    scene.turn()
    assert scene.report.failure is not None
    assert scene.report.failure.kind is FailureKind.WRITE_REFUSED
    assert scene.copied() == raws(0, 10, SIZE)


def test_a_batch_of_which_the_target_says_nothing_but_that_it_failed_is_not_written_again() -> None:
    """It is sound, so it may be there."""
    scene = with_a_late_one()
    scene.target.refusal = -1
    scene.turn()
    assert scene.report.failure is not None
    assert scene.report.failure.kind is FailureKind.NOT_ACKNOWLEDGED
    assert scene.copied() == raws(0, 10, SIZE)


@pytest.mark.parametrize("is_large", [True, False])
def test_a_partition_waits_in_front_of_a_damaged_batch(*, is_large: bool) -> None:
    """A large one shows to be damaged when the target refuses it."""
    size = SIZE if is_large else 10
    records = varint(100) + b"".join(b"\0" * size for _ in range(10))
    damaged = sealed(batch(raws(10, 10), 10, records=records))
    scene = scene_of(large(0), damaged, large(20), end=30)
    scene.target.refused = {19}
    scene.turn(2)
    assert (scene.hold.offset, scene.hold.why.kind) == (10, FailureKind.BROKEN_BATCH)
    assert scene.copied() == raws(0, 10, SIZE)
    assert scene.report.failure is None
    assert not scene.sink.is_waiting


def test_damage_behind_a_record_that_has_to_be_looked_at_holds_the_partition_there() -> None:
    """What was in front of it in the same batch is copied, and must not come again."""
    inside = raws(0, 10)
    inside[5] = Raw(None, b"x", NOW)
    cut = b"".join(record(raw, at, NOW) for at, raw in enumerate(inside))[:-3]
    scene = scene_of(
        small(0, 2), sealed(batch(raws(2, 10), 2, records=cut)), end=12, route=Route("t", Limits(needs_key=True))
    )
    scene.turn(2)
    assert (scene.hold.offset, scene.hold.why.kind) == (7, FailureKind.BROKEN_BATCH)
    assert len(scene.copied()) == 7
    assert scene.report.intervals == [(0, 0, 7)]


def test_a_batch_of_a_merged_one_that_is_refused_keeps_its_offsets() -> None:
    """Offsets are missing in what came; those of the records that are written one by one are their own."""
    came = batch(raws(0, 3), 0, deltas=[0, 4, 9], last_delta=9)
    scene = scene_of(sealed(came), small(10), end=12)
    scene.target.refused = {11}
    scene.write()
    scene.target.refused = set()
    scene.turn()
    assert scene.report.intervals == [(0, 0, 1), (4, 1, 1), (9, 2, 3)]
    assert (scene.report.whole, scene.report.merged, scene.report.records) == (0, 0, 5)


def test_many_records_that_have_to_be_looked_at_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of one record each, none of which may go as it is: each try to sort what is behind takes its time."""
    route = Route("t", Limits(before_ms=3_600_000), RefusedPolicy.FIX)
    scene = scene_of(*(small(at, 1) for at in range(500)), end=500, route=route)
    tries: list[int] = []

    def counted(*args: Any, **more: Any) -> Packing:
        tries.append(1)
        return merge(*args, **more)

    monkeypatch.setattr(sorting, "merge", counted)
    some = list(scene.reader.copies(0.01, scene.forms))
    assert sum(one.count for one in some if not isinstance(one, Pieces)) == 500
    assert len(tries) < 10
    for one in some:
        scene.copying.write(one)
    scene.turn()
    assert [raw.key for raw in scene.copied()] == [raw.key for raw in raws(0, 500)]


FATES = st.lists(
    st.sampled_from(["fine"] * 6 + ["lost", "answer lost", "not leader", "appended, timed out", "moved"]), max_size=20
)
KINDS = st.lists(st.sampled_from(["large", "small", "zstd", "gap", "late", "late large"]), min_size=1, max_size=12)


def random_log(kinds: list[str]) -> list[bytearray]:
    """Batches of these kinds behind each other, every record with a key of its own."""
    came: list[bytearray] = []
    at = 0
    for kind in kinds:
        size = SIZE if "large" in kind else 10
        inside = raws(at, 10, size)
        if "late" in kind:
            inside[4] = inside[4]._replace(timestamp=LATE.timestamp + at)
        codec, deltas = "zstd" if kind == "zstd" else "none", range(0, 20, 2) if kind == "gap" else None
        came.append(sealed(batch(inside, at, codec, deltas=deltas)))
        at += 20 if kind == "gap" else 10
    return came


@settings(deadline=None, max_examples=60)
@given(fates=FATES, kinds=KINDS, turns=st.integers(1, 4))
def test_whatever_comes_and_whatever_passes_nothing_is_lost_doubled_or_out_of_order(
    fates: list[str], kinds: list[str], turns: int
) -> None:
    """Late records have to be moved, and the target refuses their batches. Where it does so when one is sent again,
    nobody knows whether it has taken it before: the partition fails there, with everything told that is known.
    """
    came = random_log(kinds)
    expected = [(offset, raw.key) for one in came for offset, raw in read(bytes(one))]
    scene = scene_of(end=0, route=MOVED, fates=fates)
    scene.target.refused = {LATE.timestamp + at - NOW for at in range(0, 300, 10)}
    log = scene.source.logs[P]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "RETRY_SECONDS", 0.0)
        for turn in range(turns):
            log.batches = [*came[: len(came) * (turn + 1) // turns]]
            log.end = max((one.end for data in log.batches for one in batches_in(memoryview(data))), default=0)
            scene.turn(2)
    copied = [raw.key for raw in scene.copied()]
    assert copied == [key for _, key in expected][: len(copied)]
    report = scene.report
    told = [offset for one in report.intervals for offset in range(one.upstream, one.upstream_end)]
    assert told == [offset for offset, _ in expected][: len(told)]
    if report.failure is None:
        assert len(told) == len(copied) == len(expected)
        assert any("late" in kind for kind in kinds) or report.whole + report.merged == report.records
