"""Parked records between clusters in memory: each comes once, or says why it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from srm_spark.core.filters import NameFilter
from srm_spark.core.model import OffsetRange, PausedPartition, TopicPartition
from srm_spark.core.quarantine import end_key
from srm_spark.core.tail import TailRecord
from srm_spark.core.verification import Checked, Reason
from srm_spark.errors import LeaseHeld, LeaseLost, TargetUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.refused.replay import Appender, Means, Replayed, drop_from_quarantine, list_quarantine, replay
from srm_spark.kafka.fencing import FencingToken, TokenNote
from srm_spark.kafka.lease import Lease
from srm_spark.look.verify import verify
from tests.memory_cluster import MemoryProducer
from tests.unit.memory_flow import HERE, THERE, MemoryFlow, flow_settings

PARK = {"refused.record.policy": "park"}
ALL = NameFilter((".*",))
TOO_LARGE = Failure(FailureKind.TOO_LARGE, "it takes 5000 bytes")
BIG = 3
"""Its offset."""


class Aside:
    """A flow that has put the fourth of seven records aside; its limit still refuses it."""

    def __init__(self, keys: Mapping[str, str] | None = None) -> None:
        self.flow = MemoryFlow(flow_settings({**PARK, **(keys or {})}))
        self.flow.write(b"0", b"1", b"2", b"x" * 5000, b"4", b"5", b"6")
        self.flow.start()
        self.limit("2000")
        self.flow.record(*self.flow.copy(BIG))
        self.flow.park(BIG)
        self.flow.start()
        self.flow.record(*self.flow.copy(aside=[BIG]))

    def limit(self, size: str) -> None:
        self.flow.target.held["A.t"].configs["max.message.bytes"] = size

    def listed(self) -> list[int]:
        """Offsets of what is parked."""
        return [one.place.offset for one in list_quarantine(self.flow.settings, ALL, self.flow.reach)]

    def replayed(self, topics: NameFilter = ALL, *, is_dry_run: bool = False) -> list[Replayed]:
        return list(self.replaying(topics, is_dry_run=is_dry_run))

    def replaying(self, topics: NameFilter = ALL, *, is_dry_run: bool = False) -> Iterator[Replayed]:
        means = Means(self.flow.reach, self._fence, lambda _, remotes, **__: self._ends(remotes), self._writer)
        return replay(self.flow.settings, topics, is_dry_run=is_dry_run, means=means)

    def _fence(self, _: Clusters, lease: Lease, slots: int) -> FencingToken:
        return FencingToken(lease.group, self.flow.settings.leases_topic, TokenNote("now", slots), {}, 1.0)

    def _ends(self, remotes: Mapping[TopicPartition, TopicPartition]) -> dict[TopicPartition, int]:
        return self.flow.target.end_offsets(remotes.values())

    def _writer(self, *_: Any) -> Appender:
        return MemoryProducer(self.flow.target)

    def copies(self) -> list[bytes | None]:
        """What readers of committed records find."""
        everything = OffsetRange(0, self.flow.remote.end)
        return [one.value for one in self.flow.target.records(THERE, everything, committed=True)]


def checked(flow: MemoryFlow) -> Checked:
    """What verify finds in its only partition."""
    (found,) = verify(flow.settings, lambda _: True, None, reach=flow.reach).partitions
    return found.checked


def test_a_record_that_the_target_still_refuses_stays() -> None:
    aside = Aside()
    (one,) = aside.replayed()
    assert one.downstream is None
    assert (one.refusal or "").startswith("the target still refuses it: the record takes ")
    assert aside.listed() == [BIG]


def test_each_record_comes_once_and_the_flow_goes_on_behind_it() -> None:
    aside = Aside()
    flow, end = aside.flow, aside.flow.remote.end
    aside.limit("9000")
    (tried,) = aside.replayed(is_dry_run=True)
    assert (tried.downstream, tried.refusal, flow.remote.end) == (None, None, end), "nothing was written"
    (kept,) = list_quarantine(flow.settings, ALL, flow.reach)
    (done,) = aside.replayed()
    assert (done.remote, done.downstream, done.refusal) == (THERE, end, None)
    assert aside.listed() == []
    assert aside.replayed() == [], "nothing is left to do"
    assert contents(flow) == {end_key(kept.place)}, "of it is kept what became of it"
    flow.write(b"later")
    flow.run()
    assert aside.copies() == [b"0", b"1", b"2", b"4", b"5", b"6", b"x" * 5000, b"later"]
    flow.start()
    known = flow.recorded.maps.maps[HERE]
    assert [known.copy_of(offset) for offset in range(8)] == [0, 1, 2, None, 3, 4, 5, flow.remote.end - 1]
    assert flow.paused is not None
    assert flow.paused.partitions == {}, "the copy is not taken for somebody else's"
    found = checked(flow)
    assert (found.equal, found.explained, found.differences) == (7, {Reason.REPLAYED: 1}, {})


def contents(flow: MemoryFlow) -> set[bytes | None]:
    """Keys of what compaction would leave of the quarantine."""
    newest = {
        one.key: one.value
        for log in flow.target.held[flow.settings.quarantine_topic].partitions
        for one in log.records.values()
    }
    return {key for key, value in newest.items() if value is not None}


def test_a_partition_that_waits_goes_on_waiting() -> None:
    aside = Aside()
    aside.limit("9000")
    flow = aside.flow
    flow.write(b"refused")
    flow.start()
    pause = PausedPartition(7, Failure(FailureKind.NO_KEY, "no key"))
    flow.record(OffsetRange(7, 7), [], pause)
    aside.replayed()
    flow.recorded.refresh()
    assert flow.recorded.progress.positions[HERE].hold == pause


def test_a_replay_that_dies_has_done_nothing() -> None:
    aside = Aside()
    aside.limit("9000")
    aside.flow.target.forbidden[aside.flow.settings.quarantine_topic] = "killed"  # what the transaction writes last
    with pytest.raises(TargetUnavailable, match="killed"):
        aside.replayed()
    aside.flow.target.forbidden.clear()
    assert aside.copies() == [b"0", b"1", b"2", b"4", b"5", b"6"]
    assert aside.listed() == [BIG]


def test_a_record_that_was_copied_after_all_is_forgotten_and_not_written() -> None:
    """A crash behind the parking, and a limit that was raised before the next start."""
    flow = MemoryFlow(flow_settings(PARK))
    aside = object.__new__(Aside)
    aside.flow = flow
    flow.write(b"0", b"1", b"x" * 5000)
    flow.start()
    parked = aside.flow.park(2)
    flow.record(*flow.copy())
    end = flow.remote.end
    assert [one.downstream for one in aside.replayed(is_dry_run=True)] == [2]
    assert aside.listed() == [2], "a dry run changes nothing"
    assert aside.replayed() == [Replayed(parked, THERE, 2)]
    assert (flow.remote.end, aside.listed()) == (end, [])


def test_nothing_is_replayed_while_a_driver_runs_the_flow() -> None:
    aside = Aside()
    aside.limit("9000")
    aside.flow.lease.owner = "driver@host"
    with pytest.raises(LeaseHeld, match="a driver runs it: driver@host"):
        aside.replayed()
    assert len(aside.replayed(is_dry_run=True)) == 1, "to look is allowed"


def test_who_has_lost_the_lease_writes_nothing_more() -> None:
    aside = Aside()
    aside.limit("9000")
    aside.flow.park(BIG + 1)
    course = aside.replaying()
    next(course)
    aside.flow.lease.owner = "another"
    with pytest.raises(LeaseLost):
        next(course)
    assert aside.listed() == [BIG + 1]


def test_unrecorded_copies_keep_it_waiting() -> None:
    aside = Aside()
    aside.limit("9000")
    aside.flow.remote.append(TailRecord(0, 1, b"who", b"am I"))
    (one,) = aside.replayed()
    assert "has records that are not recorded; start the flow once" in (one.refusal or "")


def test_without_progress_nobody_knows_what_is_ours() -> None:
    aside = Aside()
    aside.limit("9000")
    flow = aside.flow
    flow.target.delete(flow.settings.progress_topic)
    flow.recorded.progress.ensure()
    (one,) = aside.replayed()
    assert "it is not recorded how much of A.t-0 is the flow's own" in (one.refusal or "")


def test_without_a_remote_topic_it_says_so() -> None:
    aside = Aside()
    aside.flow.target.delete("A.t")
    (one,) = aside.replayed()
    assert one.refusal == "B has no topic A.t"


def test_only_topics_that_are_named_are_touched() -> None:
    aside = Aside()
    aside.limit("9000")
    assert aside.replayed(NameFilter(("other",))) == []
    assert list_quarantine(aside.flow.settings, NameFilter(("other",)), aside.flow.reach) == ()
    assert aside.listed() == [BIG]


def test_what_is_dropped_is_forgotten() -> None:
    aside = Aside()
    aside.flow.park(BIG + 1)
    first, _ = list_quarantine(aside.flow.settings, ALL, aside.flow.reach)
    drop_from_quarantine(aside.flow.settings, [first], aside.flow.reach)
    assert aside.listed() == [BIG + 1]
    aside.flow.start()
    assert checked(aside.flow).explained == {Reason.FORGOTTEN: 1}


def test_what_was_replayed_while_somebody_was_asked_is_not_given_up() -> None:
    aside = Aside()
    aside.limit("9000")
    (entry,) = list_quarantine(aside.flow.settings, ALL, aside.flow.reach)
    aside.replayed()
    drop_from_quarantine(aside.flow.settings, [entry], aside.flow.reach)
    aside.flow.start()
    assert checked(aside.flow).explained == {Reason.REPLAYED: 1}


def test_a_timestamp_is_fixed_where_the_policy_says_so_by_now() -> None:
    aside = Aside()
    aside.limit("9000")
    aside.flow.target.held["A.t"].configs["message.timestamp.before.max.ms"] = "3600000"
    (refused,) = aside.replayed()
    assert "timestamp" in (refused.refusal or "")
    aside.flow.change(flow_settings({**PARK, "policy.fix.topics": "t"}))
    (done,) = aside.replayed()
    assert done.refusal is None
    (headers,) = [one.headers for one in aside.flow.remote.records.values() if one.value == b"x" * 5000]
    assert cast("bytes", dict(headers)["srm-original-timestamp"]) == b"1000"
