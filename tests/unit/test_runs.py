"""What a reader of records does with what brokers answer. No socket: the cluster is in memory."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.errors import SourceChanged, SourceDenied, SourceUnavailable
from srm_spark.failure import FailureKind
from srm_spark.kafka.batches.runs import RunReader
from srm_spark.kafka.batches.source_pool import keep_source
from srm_spark.kafka.batches.ways import best
from srm_spark.kafka.fetch import Fetch, fetch_options
from srm_spark.kafka.ranges import RangeReader
from tests.batch_bytes import NOW, Raw, batch, raws_of, sealed, varint
from tests.broker.planted import old_message
from tests.unit.memory_logs import DENIED, OTHER_ID, P, Q, good, log_of, raws, three
from tests.unit.memory_source import NO_ID, NOT_LEADER, UNKNOWN_TOPIC, MemoryConnection, MemorySource

VERSIONS = pytest.mark.parametrize("version", [13, 12])


def reader_of(
    source: MemorySource,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    isolation: str = "",
    *,
    is_live: bool = False,
) -> RunReader:
    options: dict[str, Any] = {"isolation.level": isolation} if isolation else {}
    fetch = Fetch(fetch_options(options), "a", 0.0)
    brokers: Any = source
    return RunReader(brokers, fetch, {p: OffsetRange(*one) for p, one in ranges.items()}, wait_ms=10, is_live=is_live)


def taken(reader: RunReader, looks: int = 20) -> dict[TopicPartition, list[int]]:
    """Offsets, once everything is read that is read here."""
    found: dict[TopicPartition, list[int]] = {}
    for _ in range(looks):
        for run in reader.runs(0.01):
            found.setdefault(run.partition, []).extend(run.offsets.tolist())
            for offset, raw in raws_of(run):
                assert raw == raws(offset, 1)[0]
        if not reader.is_busy:
            break
    return found


@VERSIONS
def test_the_records_of_ranges_are_read(version: int) -> None:
    source = MemorySource({P: three(), Q: three(topic_id=OTHER_ID)}, version)
    reader = reader_of(source, {P: (3, 27), Q: (12, 13)})
    assert taken(reader) == {P: list(range(3, 27)), Q: [12]}
    assert not reader.unread
    assert reader.is_over, "nothing is under way"
    assert source.looks <= 2 + (version < 13) * 3


def test_topics_without_ids_are_fetched_by_their_names_from_brokers_that_know_ids() -> None:
    """As in a cluster whose inter.broker.protocol.version is before 2.8; one of another kind stands beside it here."""
    source = MemorySource({P: three(topic_id=NO_ID), Q: three(topic_id=OTHER_ID)})
    reader = reader_of(source, {P: (3, 30), Q: (12, 13)})
    assert taken(reader) == {P: list(range(3, 30)), Q: [12]}
    assert not reader.unread


def test_small_batches_come_as_one_run() -> None:
    """A run costs the same, however few records it has."""
    source = MemorySource({P: log_of(*(good(at, 1) for at in range(500)), end=500)})
    (run,) = list(reader_of(source, {P: (0, 500)}).runs(0.0))
    assert run.offsets.tolist() == list(range(500))


@pytest.mark.parametrize("is_live", [True, False])
def test_the_next_answer_is_asked_for_before_what_came_is_taken_apart_or_behind_it(*, is_live: bool) -> None:
    source = MemorySource({P: three()})
    reader = reader_of(source, {P: (0, 40)}, is_live=is_live)
    next(reader.runs(0.0))
    assert bool(list(reader.waiting)) is not is_live


def test_answers_of_many_brokers_are_not_all_held_at_once() -> None:
    """Each may be of 16 MiB, in each task of an executor."""
    big = bytes(sealed(batch([Raw(b"k", bytes(10_000_000), NOW)])))
    several = [TopicPartition("t", number) for number in range(8)]
    source = MemorySource({p: log_of(big, end=1) for p in several})
    source.leads = {p: 11 + p.partition for p in several}
    fetch, brokers = Fetch(fetch_options({}), "a", 0.0), cast("Any", source)
    reader = RunReader(brokers, fetch, dict.fromkeys(several, OffsetRange(0, 2**62)), wait_ms=10)
    found, waiting = [], []
    for run in reader.runs(0.0):
        found.append(run.partition)
        waiting.append(len(list(reader.waiting)))
    assert waiting == [4, 8, 8, 8], "the others wait, and who gave something is asked for more once there is room"
    found += [run.partition for run in reader.runs(0.0)]
    assert sorted(found) == several


def test_what_holds_no_record_is_passed_and_a_range_ends_there() -> None:
    """A compacted tail, and a marker."""
    marker = sealed(batch([Raw(b"\0\0\0\0", b"\0" * 6)], 10))
    marker[22] |= 0x30
    source = MemorySource({P: log_of(good(0, 10), sealed(marker), end=30)})
    reader = reader_of(source, {P: (0, 30)})
    assert taken(reader) == {P: list(range(10))}
    assert not reader.unread


def test_an_end_in_front_of_the_ranges_end_is_none() -> None:
    """A new leader may know of fewer records for a moment; to take that for the end would lose the others."""
    log = log_of(good(0, 10), end=10)
    reader = reader_of(MemorySource({P: log}), {P: (0, 30)})
    assert taken(reader) == {P: list(range(10))}
    assert reader.unread == {P}
    assert "t-0 gave nothing for 7 s at offset 10 of 30; " in reader.silence(7)
    assert "holds offsets 0 to 10" in reader.silence(7)
    log.batches.append(good(10, 20))
    log.end = 30
    assert taken(reader) == {P: list(range(10, 30))}
    assert not reader.unread


@pytest.mark.parametrize("preferred", [-1, 2])
@pytest.mark.parametrize("late", [1, 3])
def test_an_answer_without_records_is_no_end_of_what_lies_in_remote_storage(late: int, preferred: int) -> None:
    """A broker that reads too slowly there says where the log ends, and that nothing is wrong (KIP-405)."""
    log = three(local=25, late=late, preferred=preferred)
    source = MemorySource({P: log})
    reader = reader_of(source, {P: (0, 30)})
    assert taken(reader) == {P: list(range(30))}
    assert not log.late
    assert source.local_looks == 1, "what lies there once does not come back"


def test_where_nobody_says_what_lies_in_remote_storage_a_range_stays_open() -> None:
    source = MemorySource({P: log_of(good(0, 10), local=None, late=0)})
    reader = reader_of(source, {P: (0, 30)})
    assert taken(reader) == {P: list(range(10))}
    assert reader.unread == {P}
    source.logs[P].local = 5
    assert taken(reader) == {}
    assert not reader.unread, "a compacted tail on the broker's own disks"


def test_a_broker_without_remote_storage_is_not_asked_what_lies_there() -> None:
    source = MemorySource({P: log_of(good(0, 10))})
    source.knows_tiers = False
    reader = reader_of(source, {P: (0, 30)})
    assert taken(reader) == {P: list(range(10))}
    assert not reader.unread
    assert not source.local_looks


@pytest.mark.parametrize(("isolation", "end"), [("read_committed", 10), ("read_uncommitted", 20)])
def test_open_and_aborted_transactions_are_left_out_of_what_is_committed(isolation: str, end: int) -> None:
    aborted = batch(raws(5, 5), 5)
    aborted[22] |= 0x10
    aborted[43:51] = (77).to_bytes(8, "big")
    log = log_of(good(0, 5), sealed(aborted), good(10, 10), end=20, stable=10, aborted=[(77, 5)])
    log.batches = log.batches[: 2 if isolation == "read_committed" else 3]
    reader = reader_of(MemorySource({P: log}), {P: (0, end)}, isolation)
    assert taken(reader) == {P: list(range(5 if isolation == "read_committed" else 20))}
    assert not reader.unread


def test_a_long_stretch_of_aborted_transactions_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that may be read comes of it, for longer than a source may be silent."""
    aborted = batch(raws(0, 1))
    aborted[22] |= 0x10
    aborted[43:51] = (77).to_bytes(8, "big")
    several = [bytearray(aborted) for _ in range(10)]
    for offset, one in enumerate(several):
        one[:8] = offset.to_bytes(8, "big")

    class Slow(MemoryConnection):
        """Each answer takes 4 s."""

        def receive(self) -> memoryview:
            pass_time(monkeypatch, 4)
            return super().receive()

    source = MemorySource({P: log_of(*map(sealed, several), good(10, 5), end=15, aborted=[(77, 0)])})
    source.connections[1] = Slow(source, 1)
    options = fetch_options(
        {"isolation.level": "read_committed", "max.partition.fetch.bytes": 1, "bootstrap.servers": "aborted"}
    )
    brokers: Any = source
    keep_source(options, brokers)
    reader = RangeReader(Fetch(options, "a", 10.0), {P: OffsetRange(0, 15)})
    assert [offset for run in reader for offset in run.offsets.tolist()] == list(range(10, 15))
    assert not reader.open


def test_a_replica_in_our_rack_is_asked_and_the_leaders_empty_answer_is_no_end() -> None:
    """The leader names it (KIP-392) in an answer without records, which says where the log ends, too."""
    source = MemorySource({P: three(preferred=2)})
    reader = reader_of(source, {P: (0, 30)})
    assert taken(reader) == {P: list(range(30))}
    assert set(source.connections) == {1, 2}


def test_a_replica_that_has_fallen_behind_is_left_after_five_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing of it; who leads names another one by then, or none."""
    log = three(preferred=2, stuck=10)
    reader = reader_of(MemorySource({P: log}), {P: (0, 2**62)}, is_live=True)
    assert taken(reader, 5) == {P: list(range(10))}
    log.preferred = -1
    assert taken(reader, 5) == {}
    pass_time(monkeypatch, 301)
    assert taken(reader, 5) == {P: list(range(10, 30))}


@VERSIONS
def test_a_connection_that_breaks_off_is_made_anew(version: int) -> None:
    source = MemorySource({P: three()}, version)
    source.losses = 1
    reader = reader_of(source, {P: (0, 30)})
    assert taken(reader, 100) == {P: list(range(30))}
    assert "closed" in reader.last_error


def test_a_broker_that_cannot_be_reached_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """To try takes seconds, in which nothing else is read."""
    best()  # to load it takes a second or two, and time counts here
    source = MemorySource({P: three(), Q: three(topic_id=OTHER_ID)})
    source.leads[Q], source.dead[9] = 9, 0
    reader = reader_of(source, {P: (0, 2**62), Q: (0, 30)}, is_live=True)
    assert taken(reader, 1) == {P: list(range(30))}
    for seconds in (0.2, 0.4, 0.6):
        pass_time(monkeypatch, seconds)
        assert taken(reader, 1) == {}
    assert source.looks == 4, "another one may lead by now"
    assert source.dead == {9: 1}
    assert "broker 9" in reader.last_error
    pass_time(monkeypatch, 2)
    assert taken(reader, 1) == {}
    assert source.dead == {9: 2}
    source.leads.clear()
    pass_time(monkeypatch, 0.2)
    assert taken(reader, 3) == {Q: list(range(30))}


class Hung(MemoryConnection):
    """A broker that takes requests and does not answer, until `wake`."""

    has_more = False

    def __init__(self, source: MemorySource, node: int) -> None:
        super().__init__(source, node)
        self._ours, self._theirs = socket.socketpair()

    def fileno(self) -> int:
        """For `multiprocessing.connection.wait`."""
        return self._ours.fileno()

    def wake(self) -> None:
        """Its answer is here."""
        self._theirs.send(b"!")

    def close(self) -> None:
        super().close()
        self._ours.close()
        self._theirs.close()


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """As if so much time had gone by."""
    now = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now() + seconds)


def test_a_broker_that_hangs_is_left_after_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its partitions would stand still for ever, whoever leads them by now."""
    source = MemorySource({P: three()})
    source.connections[1] = hung = Hung(source, 1)
    reader = reader_of(source, {P: (0, 2**62)}, is_live=True)
    assert taken(reader, 1) == {}
    pass_time(monkeypatch, 29)
    assert taken(reader, 1) == {}
    assert hung.is_open
    pass_time(monkeypatch, 2)
    assert taken(reader, 3) == {P: list(range(30))}
    assert not hung.is_open
    assert source.looks == 2
    assert reader.last_error == "broker 1 has not answered a fetch for 30.01 s"


def test_an_answer_that_waited_for_us_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came before it may have taken minutes to be written."""
    source = MemorySource({P: three()})
    source.connections[1] = hung = Hung(source, 1)
    reader = reader_of(source, {P: (0, 2**62)}, is_live=True)
    assert taken(reader, 1) == {}
    hung.wake()
    pass_time(monkeypatch, 600)
    assert taken(reader, 1) == {P: list(range(30))}
    assert hung.is_open
    hung.close()


def test_a_broker_that_does_not_lead_any_more_is_not_asked_again() -> None:
    log = three(error=NOT_LEADER)
    source = MemorySource({P: log})
    reader = reader_of(source, {P: (0, 30)})
    assert taken(reader, 2) == {}
    assert reader.last_error == "t-0: NOT_LEADER_FOR_PARTITION: Broker: Not leader for partition"
    log.error = 0
    assert taken(reader, 100) == {P: list(range(30))}
    assert source.looks == 2


def test_what_the_source_has_deleted_is_a_gap() -> None:
    reader = reader_of(MemorySource({P: log_of(good(20, 10), first=20)}), {P: (0, 30)})
    assert taken(reader) == {P: list(range(20, 30))}
    reader = reader_of(MemorySource({P: log_of(good(20, 10), first=20)}), {P: (0, 15)})
    assert taken(reader) == {}
    assert not reader.unread


def test_a_log_that_went_back_is_not_read() -> None:
    reader = reader_of(MemorySource({P: log_of(good(0, 5), end=5)}), {P: (7, 9)})
    with pytest.raises(SourceChanged, match="a: t-0 ends at offset 5 where 7 was next: its log went back"):
        taken(reader)


@VERSIONS
def test_a_topic_that_was_created_anew_gives_nothing(version: int) -> None:
    source = MemorySource({P: three()}, version)
    reader = reader_of(source, {P: (0, 40)})
    assert taken(reader, 1) == {P: list(range(30))}
    source.logs[P] = log_of(good(30, 10), end=40, topic_id=OTHER_ID)
    expected: Any = {"t": "AAAAAAAAAAAAAAAAAAAABw"}
    brokers: Any = source
    known = RunReader(
        brokers, Fetch(fetch_options({}), "a", 0.0, topic_ids=expected), {P: OffsetRange(30, 40)}, wait_ms=10
    )
    with pytest.raises(SourceChanged, match="topic t was created anew"):
        taken(known)


def test_topics_that_may_not_be_read_are_named_together() -> None:
    """Those that may not be seen, and those that may be seen and not read."""
    source = MemorySource({P: three(error=DENIED), Q: three(missing=DENIED, topic_id=OTHER_ID)})
    reader = reader_of(source, {P: (0, 30), Q: (0, 30)})
    with pytest.raises(SourceDenied, match=r"Not authorized to access topics: \[t, u\]; allow READ on topic t, u") as e:
        taken(reader)
    assert list(e.value.topics) == ["t", "u"]


def test_a_topic_that_is_not_there_is_told() -> None:
    reader = reader_of(MemorySource({P: three(missing=UNKNOWN_TOPIC)}), {P: (0, 30)})
    assert taken(reader, 1) == {}
    assert reader.last_error == "t-0: the topic does not exist"
    assert not reader.is_gone, "a broker may not know a new one yet"


def test_another_refusal_is_told() -> None:
    reader = reader_of(MemorySource({P: three(error=42)}), {P: (0, 30)})  # INVALID_REQUEST
    with pytest.raises(SourceUnavailable, match=r"a: cannot read t-0: INVALID_REQUEST"):
        taken(reader)


def damaged(how: str) -> bytearray:
    """The second batch."""
    if how == "its checksum is wrong":
        found = good(10, 10)
        found[-5] ^= 1
        return found
    if how == "or are damaged":
        return sealed(batch(raws(10, 10), 10, "zstd", records=b"junk" * 9))
    good_records = bytes(batch(raws(10, 10))[61:])
    return sealed(batch(raws(10, 10), 10, records=varint(100) + good_records[1:]))


@pytest.mark.parametrize("how", ["its checksum is wrong", "or are damaged", "does not fit"])
def test_a_partition_waits_in_front_of_a_damaged_batch(how: str) -> None:
    source = MemorySource({P: log_of(good(0, 10), damaged(how), good(20, 10)), Q: three(topic_id=OTHER_ID)})
    for start in (0, 10, 12):
        reader = reader_of(source, {P: (start, 30), Q: (0, 30)})
        assert taken(reader) == {Q: list(range(30)), **({P: list(range(10))} if not start else {})}
        assert reader.holds[P].offset == max(start, 10)
        assert reader.holds[P].why.kind is FailureKind.BROKEN_BATCH
        assert reader.holds[P].why.sentence.startswith("t-0: the batch at offset 10")
        assert how in reader.holds[P].why.sentence
        assert not reader.unread


OLD = [old_message(10 + at, NOW + at, b"k", b"v") for at in range(10)]
FAR = sealed(batch([Raw(b"k", b"v", NOW), Raw(b"k", b"v", NOW + 2**61)], 10))
FARTHER = sealed(batch([Raw(b"k", b"v", 2**62)], 10))


@pytest.mark.parametrize("odd", [OLD, [FAR], [FARTHER]], ids=["an old format", "a far time", "a farther time"])
def test_what_cannot_be_read_here_is_handed_over_with_everything_behind_it(odd: Sequence[bytes]) -> None:
    source = MemorySource({P: log_of(good(0, 10), *odd, good(20, 10)), Q: three(topic_id=OTHER_ID)})
    reader = reader_of(source, {P: (0, 30), Q: (0, 30)})
    assert taken(reader) == {P: list(range(10)), Q: list(range(30))}
    assert reader.unread == {P}
    assert reader.hand_over() == {P: OffsetRange(10, 30)}
    assert not reader.unread


def test_a_broker_that_is_too_old_is_left_to_others() -> None:
    reader = reader_of(MemorySource({P: three()}, 0), {P: (3, 30)})
    assert taken(reader) == {}
    assert reader.hand_over() == {P: OffsetRange(3, 30)}


def test_a_cluster_that_was_never_reached_is_left_to_others_and_one_that_goes_away_is_waited_for() -> None:
    source = MemorySource({P: three()})
    source.is_away = True
    reader = reader_of(source, {P: (3, 30)})
    assert taken(reader) == {}
    assert not reader.is_busy
    assert reader.hand_over() == {P: OffsetRange(3, 30)}
    source.is_away = False
    reader = reader_of(source, {P: (3, 40)})
    assert taken(reader) == {P: list(range(3, 30))}
    source.is_away, source.losses = True, 1
    assert taken(reader, 3) == {}
    assert reader.is_busy
    source.is_away = False
    source.logs[P].batches.append(good(30, 10))
    source.logs[P].end = 40
    assert taken(reader, 100) == {P: list(range(30, 40))}


THREE = [TopicPartition("t", number) for number in range(3)]


def live_of(version: int = 13) -> tuple[MemorySource, RunReader]:
    """A reader of three partitions, which has read what there was."""
    source = MemorySource({p: three() for p in THREE}, version)
    reader = reader_of(source, dict.fromkeys(THREE, (0, 2**62)), is_live=True)
    assert taken(reader, 3) == {p: list(range(30)) for p in THREE}
    return source, reader


def grow(source: MemorySource, partition: TopicPartition) -> None:
    log = source.logs[partition]
    log.batches.append(good(log.end, 10))
    log.end += 10


@VERSIONS
def test_who_reads_for_ever_tells_a_broker_what_has_changed_and_no_more(version: int) -> None:
    source, reader = live_of(version)
    assert source.named == [[0, 1, 2], [0, 1, 2], []], "all, what has come of each, and nothing"
    grow(source, THREE[1])
    assert taken(reader, 3) == {THREE[1]: list(range(30, 40))}
    assert source.named[3:] == [[], [1], []]


def test_a_range_is_read_without_a_session() -> None:
    source = MemorySource({p: three() for p in THREE})
    assert taken(reader_of(source, dict.fromkeys(THREE, (0, 30)))) == {p: list(range(30)) for p in THREE}
    assert not source.sessions


def test_a_partition_that_another_broker_leads_is_not_wanted_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    source, reader = live_of()
    source.leads[THREE[0]] = 2
    source.logs[THREE[0]].error = NOT_LEADER
    assert taken(reader, 1) == {}
    source.logs[THREE[0]].error = 0
    grow(source, THREE[0])
    pass_time(monkeypatch, 0.2)
    assert taken(reader, 5) == {THREE[0]: list(range(30, 40))}
    assert [-1] in source.named[4:], "broker 1 is told"
    assert [0] in source.named[4:], "and so is broker 2"


@pytest.mark.parametrize("how", ["it has forgotten", "it counts otherwise", "it breaks off", "it has no room"])
def test_a_session_that_ends_is_begun_anew(how: str) -> None:
    source, reader = live_of()
    source.has_room = how != "it has no room"
    if how == "it counts otherwise":
        source.sessions[1].epoch += 1
    elif how == "it breaks off":
        source.losses = 1
    else:
        source.sessions.clear()
    for partition in THREE:
        grow(source, partition)
    assert taken(reader, 100) == {p: list(range(30, 40)) for p in THREE}
    assert [0, 1, 2] in source.named[3:]
    grow(source, THREE[2])
    before = len(source.named)
    assert taken(reader, 3) == {THREE[2]: list(range(40, 50))}
    assert source.named[before:] == ([[0, 1, 2]] * 3 if how == "it has no room" else [[], [2], []])
    assert reader.last_error in {"no error", "the broker closed the connection"}


def test_a_broker_that_has_not_got_the_last_request_is_not_taken_to_know_it() -> None:
    """It would give what was read once more."""
    source, reader = live_of()
    for partition in THREE:
        grow(source, partition)
    assert taken(reader, 1) == {p: list(range(30, 40)) for p in THREE}
    source.losses = 1
    assert taken(reader, 100) == {}
    assert source.named[3:6] == [[], [0, 1, 2], []]
    assert not reader.hand_over(), "nobody else has to read what is stuck"
