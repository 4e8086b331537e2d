"""What guards the promises is switched off, one thing at a time, and the checker of the soak must say so.

Each case runs as it is, and broken. A checker that finds nothing in the broken run would prove nothing elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

import pytest
from confluent_kafka import KafkaException

from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.tail import TailMatch
from srm_spark.errors import LeaseLost
from srm_spark.flow.recovery import starts
from srm_spark.flow.recovery.guard import Checked, SourceGuard
from srm_spark.kafka.clients import LastError
from srm_spark.kafka.fencing import FencingToken, TokenNote, newest_token, open_producer
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_count, await_lag_zero
from tests.kafka_io import Log, Record, produce, records
from tests.soak.load import compare

pytestmark = pytest.mark.slow

ONCE = pytest.mark.parametrize("is_broken", [False, True], ids=["as it is", "broken"])


def told_apart(start: int, end: int) -> list[Record]:
    """Records as the load of the soak writes them."""
    return [Record(b"k", b"v%d" % n, headers=(("number", b"%d" % n),)) for n in range(start, end)]


@ONCE
def test_without_the_tail_match_records_are_doubled(
    is_broken: bool, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), told_apart(0, 10))
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    driver.stop()
    pair.source.write(pair.topic(), told_apart(10, 20))
    (written,) = records(pair.source.read(pair.topic())).values()
    pair.target.write(pair.remote(), written[10:14])  # by a batch that died before it recorded
    if is_broken:

        def nothing_landed(_: object, __: object, source_start: int, *___: object, **____: object) -> TailMatch:
            return TailMatch(source_start)

        monkeypatch.setattr("srm_spark.flow.recovery.unrecorded.match_tail", nothing_landed)
    driver = pair.replicate()
    await_until(lambda: _last(pair) == written[-1], SOON, "all records")
    driver.stop()
    verdict = compare(pair.source.read(pair.topic()), pair.target.read(pair.remote()))
    assert (verdict.lost, verdict.doubled) == (0, 4 if is_broken else 0), str(verdict)


def _initialised_before(pair: Pair, fencing: FencingToken) -> Callable[[], None]:
    """A writer that has its transactional id already; only `fence` stands in its way."""
    producer = open_producer(fencing, _IDLE_SLOT, {}, LastError())

    def write() -> None:
        producer.begin_transaction()
        produce(producer, pair.remote(), _late(pair))
        producer.commit_transaction(30)

    return write


def _initialised_after(pair: Pair, fencing: FencingToken) -> Callable[[], None]:
    """A writer that comes so late that nothing fences it any more; it has to look at the token."""

    def write() -> None:
        _initialised_before(pair, fencing)()

    return write


_IDLE_SLOT = 1
"""One partition is written by slot 0: the heir itself never initialises this one."""


def _late(pair: Pair) -> list[Record]:
    return records(pair.source.read(pair.topic()))[0][10:]


@ONCE
@pytest.mark.parametrize(
    ("old_writer", "guarded_by"),
    [
        (_initialised_before, "srm_spark.flow.recovery.fencing.fence"),
        (_initialised_after, "srm_spark.kafka.fencing.newest_token"),
    ],
)
def test_without_the_fencing_a_writer_that_comes_back_doubles_records(
    is_broken: bool,
    old_writer: Callable[[Pair, FencingToken], Callable[[], None]],
    guarded_by: str,
    pair: Pair,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = {f"{pair.flow}.exactly.once.support": "required"}
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), told_apart(0, 10))
    driver = pair.replicate(keys)
    await_until(lambda: _copied(pair) == 10, SOON, "the first records")
    fencing = _fencing(pair)
    write_late = old_writer(pair, fencing)
    driver.stop()
    if is_broken:
        monkeypatch.setattr(guarded_by, lambda asked, *_: asked.note)  # nobody is fenced, everybody is the newest
    driver = pair.replicate(keys)
    pair.source.write(pair.topic(), told_apart(10, 20))
    await_until(lambda: _copied(pair) == 20, SOON, "all records")
    with suppress(KafkaException, LeaseLost):
        write_late()
    driver.stop()
    verdict = compare(pair.source.read(pair.topic()), pair.target.read(pair.remote(), committed=True))
    assert (verdict.lost, verdict.doubled) == (0, 10 if is_broken else 0), str(verdict)


@ONCE
def test_without_the_identity_guard_records_of_a_topic_created_anew_are_lost(
    is_broken: bool, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_broken:

        def nothing_found(_: SourceGuard, ranges: Mapping[TopicPartition, OffsetRange], *__: object) -> Checked:
            return Checked(dict(ranges), {}, {})

        monkeypatch.setattr(SourceGuard, "before", nothing_found)
        monkeypatch.setattr(starts, "is_recreated", lambda *_: False)
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), told_apart(0, 3))
    driver = pair.replicate({"refresh.topics.interval.seconds": "600"})
    await_until(lambda: driver.status()[0].records == 3, SOON, "what is copied is recorded")
    pair.source.delete(pair.topic())
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), told_apart(3, 23))  # longer than it was: the recorded offset is there again
    (written,) = records(pair.source.read(pair.topic())).values()
    await_until(lambda: _last(pair) == written[-1], SOON, "the last record")
    driver.stop()
    anew: Log = {0: pair.target.read(pair.remote())[0][3:]}
    verdict = compare(pair.source.read(pair.topic()), anew)
    assert (verdict.lost, verdict.doubled) == (3 if is_broken else 0, 0), str(verdict)


def _fencing(pair: Pair) -> FencingToken:
    """That of the generation that runs now."""
    options = {"bootstrap.servers": pair.target.bootstrap_servers}
    fencing = FencingToken(f"srm-{pair.flow}", f"mm2-leases.{pair.alias}.internal", TokenNote("", 0), options, 30.0)
    note = newest_token(fencing)
    assert note is not None
    return replace(fencing, note=note)


def _copied(pair: Pair) -> int:
    if pair.remote() not in pair.target.topics():
        return 0
    return sum(map(len, pair.target.read(pair.remote(), committed=True).values()))


def _last(pair: Pair) -> Record | None:
    (log,) = pair.target.read(pair.remote()).values()
    return log[-1].record if log else None
