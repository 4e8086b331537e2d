"""Audits by the driver: what a flow has copied since the last one, and again what was not right."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from srm_spark.config.settings import AuditSettings
from srm_spark.core.audit import (
    Audit,
    Reached,
    audit_key,
    audit_of,
    audited_topic,
    decode_audit,
    decode_reached,
    encode_audit,
    encode_reached,
)
from srm_spark.core.model import Flow, OffsetRange, TopicPartition
from srm_spark.core.tail import TailRecord
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.look.auditing import Auditor
from srm_spark.look.verify import Verification, verify
from tests.awaiting import await_until
from tests.unit.memory_flow import MemoryFlow, flow_settings
from tests.unit.shifted import Shifted

FLOW = Flow("A", "B")
RUNNING = FlowStatus(FLOW, FlowState.RUNNING)
MINUTE = 60_000


class Scene:
    """A flow, and the auditor of its driver at a clock that is set."""

    def __init__(self, flow: MemoryFlow | None = None, seconds: float | None = 60.0, now: float = 1_000.0) -> None:
        self.flow = flow or MemoryFlow(flow_settings())
        self.told: list[Audit] = []
        self.status = RUNNING
        self.now = now
        self.settings = replace(self.flow.settings, audit=AuditSettings(seconds))
        self.auditor = Auditor(self.settings, lambda: self.status, self.told.append, self.flow.reach, lambda: self.now)

    def look(self, *values: bytes) -> Audit:
        """Copy these, then audit."""
        if values:
            self.flow.write(*values)
            self.flow.run()
        self.now += 61
        self.auditor.look()
        return self.told[-1]

    def alter(self, offset: int, value: bytes) -> None:
        """Another value in a copy."""
        records = self.flow.remote.records
        records[offset] = records[offset]._replace(value=value)

    def kept(self) -> Mapping[bytes, bytes | None]:
        """What of it lies in the status topic."""
        (log,) = self.flow.target.held[self.settings.status_topic].partitions
        return {record.key or b"": record.value for record in log.records.values()}


def test_each_one_goes_on_where_the_last_one_ended() -> None:
    scene = Scene()
    assert scene.look(b"a", b"b", b"c").records == 3
    assert scene.look().records == 3, "nothing is counted twice"
    assert scene.look(b"d").records == 4
    reached = decode_reached(scene.kept()[audit_key("t")])
    assert reached is not None
    assert reached.ends == {0: 4}
    assert (scene.told[-1].differences, scene.told[-1].first, scene.told[-1].unchecked) == (0, None, None)


def test_another_driver_goes_on_behind_it() -> None:
    before = Scene()
    before.look(b"a", b"b", b"c")
    after = Scene(before.flow, now=2_000.0)
    audit = after.look(b"d")
    assert (audit.records, audit.since) == (4, 2_061_000)


def test_a_copy_that_differs_is_told_until_it_does_no_more(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.look(b"a", b"b", b"c")
    scene.flow.write(b"d", b"e")
    scene.flow.run()
    scene.alter(4, b"!")
    for _ in range(2):
        audit = scene.look()
        assert (audit.records, audit.differences) == (4, 1)
        assert audit.first is not None
        assert audit.first.startswith("t-0: 1 changed; source offset 4, target offset 4: ")
    assert [one.levelno for one in caplog.records] == [logging.ERROR], "once"
    scene.alter(4, b"e")
    audit = scene.look()
    assert (audit.records, audit.differences, audit.first) == (4, 0, None)


def test_behind_a_difference_it_goes_on_and_looks_at_that_alone_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.flow.write(*(b"%d" % number for number in range(6)))
    scene.flow.run()
    scene.alter(1, b"!")
    del scene.flow.remote.records[3]
    audit = scene.look()
    assert (audit.records, audit.differences) == (4, 2)
    reached = decode_reached(scene.kept()[audit_key("t")])
    assert reached is not None
    assert (reached.ends, reached.again) == ({0: 6}, {0: (OffsetRange(1, 2), OffsetRange(3, 4))})

    after = Scene(scene.flow, now=2_000.0)
    read: list[OffsetRange] = []
    pieces = after.flow.source.pieces

    def pieces_told(partition: TopicPartition, offsets: OffsetRange, **more: Any) -> object:
        read.append(offsets)
        return pieces(partition, offsets, **more)

    monkeypatch.setattr(after.flow.source, "pieces", pieces_told)
    audit = after.look(b"6")
    assert (audit.records, audit.differences) == (5, 2)
    assert read == [OffsetRange(6, 7), OffsetRange(1, 2), OffsetRange(3, 4)]
    after.alter(1, b"1")
    audit = after.look()
    assert audit.differences == 1
    assert audit.first == "t-0: 1 lost; source offset 3: its copy at target offset 3 is gone"
    after.flow.remote.records[3] = after.flow.remote.records[2]._replace(offset=3, value=b"3")
    assert after.look().differences == 0
    assert decode_reached(after.kept()[audit_key("t")]) == Reached(reached.topic_id, {0: 7})


def test_what_was_lost_and_is_copied_again_is_right_and_what_lies_before_the_second_copies_is_not_asked() -> None:
    """Behind a rewind the second copies lie behind all others."""
    world = Shifted()
    world.copied_to(6)
    scene = Scene(world.flow)
    del scene.flow.remote.records[2], scene.flow.remote.records[3]
    assert scene.look().differences == 2
    world.done(6, 2)
    world.copied()
    world.copied_to(7)
    audit = scene.look()
    assert (audit.differences, audit.first) == (0, None)


def test_what_is_too_much_on_the_target_keeps_its_partition() -> None:
    scene = Scene(MemoryFlow(flow_settings({"foreign.writer.policy": "resume"})))
    scene.look(b"a")
    scene.flow.remote.append(TailRecord(0, 1, None, b"theirs"))
    for value in (b"b", b"c"):
        audit = scene.look(value)
        assert (audit.records, audit.differences) == (1, 1)
    assert (audit.first or "").startswith("t-0: 1 foreign; target offset 1: ")
    del scene.flow.remote.records[1]
    audit = scene.look()
    assert (audit.records, audit.differences) == (3, 0)


def test_what_cannot_be_looked_at_again_now_is_told_and_kept() -> None:
    scene = Scene()
    scene.flow.write(b"a", b"b", b"c")
    scene.flow.run()
    scene.alter(1, b"!")
    assert scene.look().differences == 1
    scene.flow.remote.open_since = 1
    audit = scene.look()
    assert (audit.found_differing(audit.since), audit.unchecked) == (
        None,
        "t-0: source offset 1 cannot be looked at again now",
    )
    scene.flow.remote.open_since = None
    assert scene.look().differences == 1


def test_what_was_right_long_ago_is_no_answer_of_today() -> None:
    good = Audit(60.0, 0, ended=1000)
    assert [good.found_differing(now) for now in (1000, 181_000, 182_000)] == [0, 0, None]
    assert replace(good, differences=2).found_differing(10**9) == 2


def test_a_difference_whose_record_is_deleted_is_none_any_more() -> None:
    scene = Scene()
    scene.look(b"a", b"b")
    scene.flow.write(b"c", b"d")
    scene.flow.run()
    scene.alter(2, b"!")
    assert scene.look().differences == 1
    scene.flow.log.delete_before(3)
    scene.flow.remote.delete_before(3)
    assert scene.look().differences == 0


def test_what_was_found_before_is_known_while_the_source_is_away(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    ended = scene.look(b"a").ended
    scene.flow.source.down = "no route"
    for _ in range(2):
        audit = scene.look()
        assert (audit.records, audit.ended) == (1, ended)
        assert "no route" in (audit.failed or "")
    assert len(caplog.records) == 1
    scene.flow.source.down = None
    assert scene.look().failed is None


def test_what_was_found_by_the_driver_before_is_known_at_once_and_the_next_audit_comes_in_time() -> None:
    before = Scene()
    first = before.look(b"a")
    after = Scene(before.flow, now=before.now + 10)
    after.auditor.look()
    assert after.told == [replace(first, since=1_071_000)], "and none is due yet"
    after.now += 51
    after.auditor.look()
    assert after.told[-1].ended == 1_122_000


def test_one_that_had_the_flow_in_between_is_heard() -> None:
    one = Scene()
    one.look(b"a")
    one.status = replace(RUNNING, state=FlowState.WAITING)
    one.auditor.look()
    other = Scene(one.flow, now=one.now)
    other.look(b"b", b"c")
    one.status, one.now = RUNNING, other.now
    assert one.look(b"d").records == 4


def test_an_audit_that_is_ended_is_kept_as_far_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.flow.write(b"a", b"b")
    scene.flow.run()

    def ended(*arguments: Any, **named: Any) -> Verification:
        found = verify(*arguments, **named)
        scene.auditor.stop()
        return found

    monkeypatch.setattr("srm_spark.look.auditing.verify", ended)
    scene.auditor.look()
    assert (scene.told[-1].ended, scene.told[-1].records) == (None, 2)
    reached = decode_reached(scene.kept()[audit_key("t")])
    assert reached is not None
    assert reached.ends == {0: 2}


def test_once_it_is_over_nothing_is_read() -> None:
    flow, over = MemoryFlow(flow_settings()), threading.Event()
    flow.write(b"a")
    flow.run()
    over.set()
    found = verify(flow.settings, lambda _: True, over=over, reach=flow.reach)
    assert [one.unchecked for one in found.partitions] == ["it was ended before"]


@pytest.mark.parametrize("state", [state for state in FlowState if state is not FlowState.RUNNING])
def test_only_who_runs_the_flow_looks(state: FlowState) -> None:
    scene = Scene()
    scene.flow.write(b"a")
    scene.flow.run()
    scene.status = replace(RUNNING, state=state)
    scene.auditor.look()
    assert scene.told == []


def test_one_that_loses_the_flow_meanwhile_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.flow.write(b"a")
    scene.flow.run()

    def lost(*_: object) -> Mapping[str, str]:
        scene.status = replace(RUNNING, state=FlowState.STALLED)
        return {"t": "id"}

    monkeypatch.setattr(scene.flow.source, "topic_ids", lost)
    scene.auditor.look()
    assert [audit.ended for audit in scene.told] == [None]
    assert scene.settings.status_topic not in scene.flow.target.held


def test_without_an_interval_nobody_looks() -> None:
    scene, tasks = Scene(seconds=None), Periodic()
    scene.auditor.start(tasks)
    scene.auditor.stop()
    assert scene.told == []


def test_it_begins_at_once_and_ends_with_the_driver() -> None:
    scene, tasks = Scene(seconds=3600.0), Periodic()
    scene.flow.write(b"a")
    scene.flow.run()
    tasks.start()
    try:
        scene.auditor.start(tasks)
        assert scene.told[0].ended is None
        await_until(lambda: scene.told[-1].records == 1, 10, "an audit")
        scene.auditor.stop()
        told = len(scene.told)
        scene.now += 7200
        scene.auditor.look()
        assert len(scene.told) == told
    finally:
        tasks.stop(1)


@pytest.mark.parametrize(
    ("audit", "said"),
    [
        (Audit(60, 0), None),
        (Audit(60, 0, ended=10 * MINUTE - 180_000), None),
        (Audit(60, 0, ended=MINUTE), "no audit has ended since 1970-01-01T00:01:00Z: one is at it still"),
        (Audit(60, 0, failed="no route"), "no audit has ended since 1970-01-01T00:00:00Z: no route"),
        (Audit(60, 9 * MINUTE, ended=MINUTE), None),  # nor is what it found then an answer of today
    ],
    ids=["begins", "in time", "slow", "failed", "another driver"],
)
def test_that_none_ended_for_too_long_is_told(audit: Audit, said: str | None) -> None:
    now = 3 * MINUTE if audit == Audit(60, 0) else 10 * MINUTE
    assert audit.late(now) == said
    assert (audit.found_differing(now) is None) == (audit.ended in (None, MINUTE))


WHOLE = Audit(60.0, 1, 2, 3, 4, "t-0", 5, "t-1", "no route")


def test_these_are_its_bytes() -> None:
    assert audit_key() == b'["audit"]'
    assert audit_key("t") == b'["audit","t"]'
    assert encode_audit(WHOLE) == (
        b'{"v":1,"seconds":60.0,"since":1,"ended":2,"records":3,"differences":4,"first":"t-0","uncovered":5,'
        b'"unchecked":"t-1","failed":"no route"}'
    )
    assert encode_reached(Reached("id", {1: 7, 0: 5})) == b'{"v":1,"id":"id","ends":[[0,5],[1,7]]}'
    doubted = Reached("id", {1: 7}, {1: (OffsetRange(2, 3), OffsetRange(5, 7)), 2: ()})
    assert encode_reached(doubted) == b'{"v":2,"id":"id","ends":[[1,7]],"again":[[1,[[2,3],[5,7]]]]}'


@pytest.mark.parametrize("audit", [WHOLE, Audit(1, 2)])
def test_what_was_written_is_read(audit: Audit) -> None:
    assert decode_audit(encode_audit(audit)) == audit
    for reached in (Reached("id", {1: 7}), Reached("id", {1: 7}, {1: (OffsetRange(2, 3),)})):
        assert decode_reached(encode_reached(reached)) == reached
    assert (audited_topic(audit_key()), audited_topic(audit_key("t"))) == ((None,), ("t",))


@pytest.mark.parametrize("decode", [decode_audit, decode_reached])
@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\xff",
        b"[]",
        b"7",
        b"{}",
        b'{"v":3,"seconds":60,"since":1,"id":"x","ends":[]}',
        b'{"v":1}',
        b'{"v":1,"seconds":"x","since":1}',
        b'{"v":1,"seconds":true,"since":1}',
        b'{"v":1,"seconds":1,"since":1,"first":7,"id":"x","ends":7}',
        b'{"v":1,"id":"x","ends":[[1]]}',
        b'{"v":1,"id":"x","ends":[[Infinity,1]]}',
        b'{"v":1,"seconds":NaN,"since":1}',
        b'{"v":1,"seconds":1,"since":1,"ended":[]}',
        b'{"v":1,"seconds":1,"since":1,"ended":1.5}',
        b'{"v":1,"seconds":1,"since":1,"first":[]}',
    ],
)
def test_anything_else_is_none(decode: Callable[[bytes | None], object], value: bytes | None) -> None:
    assert decode(value) is None


@pytest.mark.parametrize("key", [None, b"", b"[]", b'["audit",1]', b'["status","x"]', b'["audit","a","b"]', b"\xff"])
def test_records_of_others_are_passed_over(key: bytes | None) -> None:
    assert audited_topic(key) is None


def test_fields_that_are_new_are_passed_over() -> None:
    assert audit_of({"seconds": 1.0, "since": 2, "colour": "red"}) == Audit(1.0, 2)
