"""Batches that are damaged, old, empty or too large: what is said of them, what stands still, and what is copied."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import pytest

from srm_spark.core.limits import Limits
from srm_spark.core.model import Interval
from srm_spark.failure import FailureKind
from srm_spark.flow.status import FlowState
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.awaiting import await_until
from tests.batch_bytes import NOW, Raw, batch, record, sealed
from tests.broker.conftest import Start
from tests.broker.lane_scene import LaneScene, running
from tests.broker.mirror import SOON, assert_copied, await_held
from tests.broker.planted import old_message, plant
from tests.broker.topic_pair import TopicPair
from tests.kafka_io import Kafka, numbered, records

pytestmark = pytest.mark.slow

COUNT = 10
"""Records in each of three batches, of which the second one is odd."""
NEIGHBOURS = 50
"""In partition 1."""
LARGE = 20_000
"""Bytes of a record with which a batch goes whole, without anybody looking into it."""


def raws(prefix: str, count: int = COUNT, size: int = 20) -> list[Raw]:
    return [Raw(b"k%d" % at, f"{prefix} {at} ".encode().ljust(size, b"."), NOW + at) for at in range(count)]


def held(several: Sequence[Raw]) -> bytes:
    """As many records as these, whatever the header says."""
    return b"".join(record(raw, at, NOW) for at, raw in enumerate(several))


def turned(found: bytearray, at: int, bits: int) -> bytearray:
    found[at] ^= bits
    return found


def said(prefix: str, size: int, inside: Sequence[Raw], codec: str = "none") -> bytearray:
    """A batch that says that it has ten records, with the checksum that belongs to it."""
    return sealed(batch(raws(prefix, size=size), COUNT, codec, records=held(inside)))


def bomb(codec: str) -> bytearray:
    return sealed(batch([Raw(b"k", bytes(14_500_000), NOW) for _ in range(COUNT)], COUNT, codec))


DAMAGED = {
    "crc": (turned(sealed(batch(raws("b"), COUNT)), -5, 1), "its checksum is wrong"),
    "crc-of-header": (turned(sealed(batch(raws("b"), COUNT)), 22, 0x20), "its checksum is wrong"),
    "crc-large": (turned(sealed(batch(raws("b", size=LARGE), COUNT)), -5, 1), "its checksum is wrong"),
    "crc-zstd": (turned(sealed(batch(raws("b"), COUNT, "zstd")), -5, 1), "its checksum is wrong"),
    "cut": (sealed(batch(raws("b"), COUNT, records=held(raws("b"))[:150])), "does not"),
    "cut-large": (sealed(batch(raws("b"), COUNT, records=held(raws("b", size=LARGE))[:-9])), "does not"),
    "more": (said("b", 20, raws("b", 12)), "more bytes than records"),
    "more-large": (said("b", LARGE, raws("b", 12, LARGE)), "more bytes than records"),
    "fewer": (said("b", 20, raws("b", 8)), "does not end where it should"),
    "fewer-large": (said("b", LARGE, raws("b", 8, LARGE)), "does not end where it should"),
    "count": (sealed(batch(raws("b", 12), COUNT, last_delta=9)), "says that it has 12 records on 9 + 1 offsets"),
    "codec": (sealed(turned(batch(raws("b"), COUNT), 22, 7)), "unknown codec"),
    "codec-large": (sealed(turned(batch(raws("b", size=LARGE), COUNT), 22, 7)), "unknown codec"),
    "bomb": (bomb("zstd"), "of zstd are more than 134217728 bytes"),
    "junk": (sealed(batch(raws("b"), COUNT, "zstd", records=b"junk" * 9)), "or are damaged"),
    "junk-large": (sealed(batch(raws("b"), COUNT, "zstd", records=b"junk" * 9000)), "or are damaged"),
}
"""Kind → the second batch of a log, and what is said of it."""

OLD = b"".join(old_message(COUNT + at, NOW + at, b"k%d" % at, b"old %d" % at) for at in range(COUNT))
HARMLESS = {
    "old": (OLD, 3 * COUNT),
    "empty": (sealed(batch([], COUNT, last_delta=COUNT - 1)), 2 * COUNT),
    "gaps-at-its-end": (sealed(batch(raws("b", 4), COUNT, last_delta=COUNT - 1)), 2 * COUNT + 4),
    "large": (sealed(batch(raws("b", size=LARGE), COUNT)), 3 * COUNT),
}
"""Kind → the second batch, and how many records the log has."""


@pytest.fixture(scope="module")
def source() -> Iterator[LocalKafka]:
    """A topic of each kind, named by it: three batches in partition 0, of which the second one is odd."""
    kinds = {kind: odd for kind, (odd, _) in {**DAMAGED, **HARMLESS}.items()}
    with LocalKafka("odd") as broker:
        kafka = Kafka(broker)
        for kind in kinds:
            kafka.create(kind, 2)
            kafka.write(kind, [one._replace(partition=1) for one in numbered(NEIGHBOURS)])
        first, third = sealed(batch(raws("a"))), sealed(batch(raws("c"), 2 * COUNT))
        plant(broker, {kind: bytes(first) + bytes(odd) + bytes(third) for kind, odd in kinds.items()})
        yield broker


def pair_of(source: KafkaCluster, target: KafkaCluster, kind: str) -> TopicPair:
    return TopicPair(source, target, kind, 2, remote=f"{kind}-{uuid.uuid4().hex[:8]}")


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_partition_waits_in_front_of_a_damaged_batch_and_its_neighbours_are_copied(
    source: LocalKafka, secondary: KafkaCluster, kind: str
) -> None:
    pair = pair_of(source, secondary, kind)
    for start in (0, COUNT):  # whether it comes behind others, or as the next one
        reports = pair.copy({0: (start, 3 * COUNT), 1: (0, NEIGHBOURS if not start else 0)})
        report, neighbour = reports[0], reports[1]
        assert report.failure is None
        assert report.hold is not None
        assert report.hold.offset == report.reached(start, 3 * COUNT) == COUNT
        assert report.hold.why.kind is FailureKind.BROKEN_BATCH
        sentence = report.hold.why.sentence
        assert sentence.startswith(f"{kind}-0: the batch at offset {COUNT}"), sentence
        assert DAMAGED[kind][1] in sentence
        assert report.intervals == ([] if start else [Interval(0, 0, COUNT)])
        assert neighbour.is_complete
    found = records(pair.target.read(pair.remote))
    assert [one.value for one in found[0]] == [raw.value for raw in raws("a")]
    assert [one.value for one in found[1]] == [one.value for one in numbered(NEIGHBOURS)]


@pytest.mark.parametrize("kind", ["crc", "junk-large"])
def test_a_lane_waits_in_front_of_a_damaged_batch_and_its_neighbours_are_copied(
    source: LocalKafka, secondary: KafkaCluster, kind: str
) -> None:
    scene = LaneScene(source, secondary, kind, 2)
    task = scene.task(scene.fence())
    with running(task):
        await_until(lambda: scene.target.given(scene.remote) == COUNT + NEIGHBOURS, SOON, "the neighbours")
    (held,) = [one.report.hold for one in scene.told(task) if one.report is not None and one.report.hold is not None]
    assert (held.offset, held.why.kind) == (COUNT, FailureKind.BROKEN_BATCH)
    assert DAMAGED[kind][1] in held.why.sentence


@pytest.mark.parametrize("kind", HARMLESS)
def test_a_lane_copies_an_odd_batch_that_can_be_read(source: LocalKafka, secondary: KafkaCluster, kind: str) -> None:
    scene = LaneScene(source, secondary, kind, 2)
    with running(scene.task(scene.fence())):
        wanted = HARMLESS[kind][1] + NEIGHBOURS
        await_until(lambda: scene.target.given(scene.remote) == wanted, SOON, f"{wanted} copies")
    assert records(scene.target.read(scene.remote)) == records(scene.source.read(kind))


@pytest.mark.parametrize("kind", HARMLESS)
def test_an_odd_batch_that_can_be_read_is_copied(source: LocalKafka, secondary: KafkaCluster, kind: str) -> None:
    """Of an old message format, left empty by compaction, without its last offsets, or as it should be."""
    pair = pair_of(source, secondary, kind)
    at = 0
    for end in (COUNT + 3, COUNT + 9, 3 * COUNT):
        report = pair.copy({0: (at, end)})[0]
        assert (report.failure, report.hold) == (None, None)
        assert report.reached(at, end) == end
        at = end
    found = records(pair.target.read(pair.remote))[0]
    assert found == records(pair.source.read(kind))[0]
    assert len(found) == HARMLESS[kind][1]


def test_a_batch_beyond_the_targets_limit_is_packed_anew_and_a_record_beyond_it_waits(
    source: LocalKafka, secondary: KafkaCluster
) -> None:
    pair = pair_of(source, secondary, "large")
    pair.target.configure(pair.remote, max_message_bytes="50000")
    pair.limits = Limits(max_bytes=50_000)
    report = pair.copy({0: (0, 3 * COUNT)})[0]
    assert report.intervals == [Interval(0, 0, 3 * COUNT)]
    assert records(pair.target.read(pair.remote))[0] == records(pair.source.read("large"))[0]
    pair = pair_of(source, secondary, "large")
    pair.target.configure(pair.remote, max_message_bytes="15000")
    pair.limits = Limits(max_bytes=15_000)
    reports = pair.copy({0: (0, 3 * COUNT), 1: (0, NEIGHBOURS)})
    hold = reports[0].hold
    assert hold is not None
    assert (hold.offset, hold.why.kind) == (COUNT, FailureKind.TOO_LARGE)
    assert reports[1].records == NEIGHBOURS


def test_a_flow_says_which_batch_is_damaged_and_copies_everything_else(
    source: LocalKafka, secondary: KafkaCluster, start: Start, unique: str
) -> None:
    kinds = ("crc", "more-large", "bomb", "junk-large", "old", "empty")
    clusters = {f"a{unique}": source, f"b{unique}": secondary}
    alias, target = next(iter(clusters)), Kafka(secondary)
    driver = start(clusters, [f"{alias}->b{unique}"], {"topics": ", ".join(kinds)})
    held = await_held(driver, [f"{kind}-0" for kind in kinds[:4]])
    for kind in kinds[:4]:
        assert f"{kind}-0: the batch at offset {COUNT}" in held[f"{kind}-0"]
    for kind in kinds[4:]:
        assert_copied(Kafka(source), kind, target, f"{alias}.{kind}")
    for kind in kinds[:4]:
        found = records(target.read(f"{alias}.{kind}"))
        assert [len(found[0]), len(found[1])] == [COUNT, NEIGHBOURS]
    assert driver.status()[0].state is FlowState.RUNNING
