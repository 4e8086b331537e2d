"""Starts of a flow whose clusters are in memory: whatever died in between, every record is copied once."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.model import Interval, LogIdentity, LossCause, OffsetRange, ProgressDetail
from srm_spark.core.tail import TailRecord
from srm_spark.errors import LeaseLost, SourceUnavailable, TargetUnavailable
from srm_spark.failure import FailureKind
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.topics.losses import kept_losses, retract
from tests.memory_cluster import MemoryLog, MemoryTopic
from tests.unit.memory_flow import HERE, MemoryFlow, flow_settings

FOREIGN = TailRecord(0, 1, b"who", b"am I")
VALUES = st.lists(st.sampled_from([b"same", b"same", b"a", b"b", b"c"]), min_size=1, max_size=12)
"""Equal records in a row are the hard ones: which of them has a copy?"""


SETTINGS = flow_settings()


def flow_of(copied: int = 10, **policies: str) -> MemoryFlow:
    """A flow that has copied and recorded so many records."""
    flow = MemoryFlow(flow_settings({f"{key.replace('_', '.')}.policy": policy for key, policy in policies.items()}))
    flow.write(*(b"%d" % number for number in range(copied)))
    flow.run()
    return flow


@pytest.mark.parametrize("silent", ["log_ends", "topic_ids"])
def test_a_target_that_does_not_know_a_topic_for_a_moment_has_lost_nothing(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a broker that has just started: nothing is recorded as lost, and the next start goes on."""
    flow = flow_of()
    with monkeypatch.context() as patched:
        patched.setattr(flow.target, silent, lambda *_, **__: {})
        with pytest.raises(TargetUnavailable, match=r"does not know A\.t"):
            flow.start()
    assert flow.position().next_offset == 10
    assert flow.losses() == []


class Deaths(RuleBasedStateMachine):
    """A driver that is killed between any two of its steps, on clusters that lose what they may lose."""

    def __init__(self) -> None:
        super().__init__()
        self.flow = MemoryFlow(SETTINGS)
        self.has_run = False
        self.recorded = 0

    @rule(values=VALUES)
    def write(self, values: list[bytes]) -> None:
        self.flow.write(*values)

    @rule()
    def end_a_transaction(self) -> None:
        self.flow.log.mark()

    @rule()
    def run_to_the_end(self) -> None:
        self.flow.run()
        self.has_run, self.recorded = True, self.flow.log.end

    @rule(recorded=st.integers(0, 9), unrecorded=st.integers(0, 9))
    def die_with_copies_that_are_not_recorded(self, recorded: int, unrecorded: int) -> None:
        self.flow.start()
        offsets, intervals = self.flow.copy(recorded)
        self.flow.record(offsets, intervals)
        self.flow.copy(unrecorded, offsets.end)
        self.has_run, self.recorded = True, offsets.end

    @rule(copied=st.integers(1, 9))
    def die_with_the_map_written_and_no_progress(self, copied: int) -> None:
        self.flow.start()
        self.flow.target.forbidden[self.flow.settings.progress_topic] = "killed"
        with pytest.raises(Exception, match="killed"):
            self.flow.record(*self.flow.copy(copied))
        del self.flow.target.forbidden[self.flow.settings.progress_topic]
        self.has_run = True

    @precondition(lambda self: self.has_run)
    @rule()
    def lose_progress(self) -> None:
        self.flow.target.delete(self.flow.settings.progress_topic)
        self.flow.run()  # later losses shall not come together
        self.recorded = self.flow.log.end

    @precondition(lambda self: self.has_run)
    @rule(offset=st.integers(0, 40))
    def trim_the_source(self, offset: int) -> None:
        self.flow.log.delete_before(min(offset, self.recorded))

    @precondition(lambda self: self.has_run)
    @rule(offset=st.integers(0, 40))
    def trim_the_target(self, offset: int) -> None:
        flow = self.flow
        known = flow.recorded.progress.positions[HERE].target_end or 0
        flow.remote.delete_before(min(offset, known))

    @rule()
    def elect_a_leader_that_has_everything(self) -> None:
        self.flow.log.cut(self.flow.log.end)
        if self.has_run:
            self.flow.remote.cut(self.flow.remote.end)

    def teardown(self) -> None:
        self.flow.run()
        self.flow.assert_once()


TestDeaths = Deaths.TestCase
TestDeaths.settings = settings(max_examples=100, stateful_step_count=12, deadline=None)


def test_a_foreign_record_pauses_its_partition() -> None:
    flow = flow_of()
    flow.write(b"later")
    flow.remote.append(FOREIGN)
    pause = flow.pause()
    assert (pause.offset, pause.why.kind) == (10, FailureKind.FOREIGN_WRITER)
    assert "delete the remote topic" in pause.why.sentence


def test_a_foreign_record_amid_copies_is_passed_over_where_the_policy_says_so() -> None:
    flow = flow_of(foreign_writer="resume")
    flow.write(b"a", b"b", b"c")
    flow.start()
    flow.copy(1)
    flow.remote.append(FOREIGN)
    flow.copy(1, 11)
    position = flow.position()
    assert (position.next_offset, position.target_end) == (12, 13)
    flow.run()
    assert [one.value for one in flow.remote.records.values()][10:] == [b"a", b"am I", b"b", b"c"]


@pytest.mark.parametrize("policy", ["resume", "stop"])
def test_a_source_topic_made_anew(policy: str) -> None:
    flow = flow_of(source_recreated=policy)
    flow.source.held["t"] = MemoryTopic([MemoryLog()], {})
    flow.write(*(b"new %d" % number for number in range(12)))  # longer than it was: the offset is there again
    if policy == "stop":
        assert flow.pause().why.kind is FailureKind.SOURCE_RECREATED
        return
    flow.run()
    assert [one.value for one in flow.remote.records.values()][10:] == [one.value for one in flow.log.records.values()]


@pytest.mark.parametrize("policy", ["resume", "stop"])
def test_records_deleted_before_they_were_copied(policy: str) -> None:
    flow = flow_of(source_truncated=policy)
    flow.write(b"a", b"b", b"c")
    flow.log.delete_before(12)
    if policy == "stop":
        pause = flow.pause()
        assert (pause.offset, pause.why.kind) == (10, FailureKind.SOURCE_TRUNCATED)
        return
    flow.run()
    assert flow.remote.records[10].value == b"c"
    assert [loss.offsets for loss in flow.losses()] == [OffsetRange(10, 12)]


@pytest.mark.parametrize("policy", ["resume", "stop"])
def test_a_source_that_went_back_in_an_election(policy: str) -> None:
    flow = flow_of(source_diverged=policy)
    flow.log.cut(7)
    flow.write(b"other")
    if policy == "stop":
        assert flow.pause().why.kind is FailureKind.SOURCE_DIVERGED
        return
    flow.run()
    assert [one.value for one in flow.remote.records.values()][7:] == [b"7", b"8", b"9", b"other"]
    (loss,) = flow.losses()
    assert (loss.offsets, loss.cause, loss.target) == (OffsetRange(7, 10), LossCause.DIVERGED, OffsetRange(7, 10))


@pytest.mark.parametrize("policy", ["resume", "stop"])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_target_that_lost_its_copies(policy: str, is_deleted: bool) -> None:
    flow = flow_of(target_changed=policy)
    flow.write(b"later")
    kept = 0 if is_deleted else 6
    if is_deleted:
        flow.target.held["A.t"] = MemoryTopic([MemoryLog()], {})
    else:
        flow.remote.cut(kept)
    if policy == "stop":
        assert flow.pause().why.kind is FailureKind.COPIES_GONE
        return
    flow.run()
    assert flow.remote.records[kept].value == b"later"
    assert [(loss.offsets, loss.cause) for loss in flow.losses()] == [(OffsetRange(kept, 10), LossCause.TARGET)]


def copies_are(flow: MemoryFlow, *values: bytes) -> bool:
    """Whether the newest copies are these, in order."""
    return [one.value for one in flow.remote.records.values()][-len(values) :] == list(values)


def lost_for_ever(flow: MemoryFlow) -> list[OffsetRange]:
    """What anybody reads of losses who asks for them."""
    return [kept.loss.offsets for kept in kept_losses(flow.settings, flow.reach)]


@pytest.mark.parametrize("policy", ["stop", "resume"])
@pytest.mark.parametrize("is_recorded", [True, False])
def test_copies_under_way_that_the_new_leader_took_behind_lost_ones(policy: str, is_recorded: bool) -> None:
    """It never heard of our producer id, or of a new one that librdkafka took: it does not know what is missing."""
    flow = flow_of(foreign_writer=policy)
    flow.write(b"a", b"b", b"c", b"d", b"e")
    flow.start()
    flow.copy(2)  # and nobody was told
    flow.remote.cut(8 if is_recorded else 10)
    flow.copy(2, 12)
    flow.run()
    assert copies_are(flow, b"c", b"d", b"e")
    lost = [OffsetRange(8, 10), OffsetRange(10, 12)] if is_recorded else [OffsetRange(10, 12)]
    assert [loss.offsets for loss in flow.losses()] == lost
    assert {loss.cause for loss in flow.losses()} == {LossCause.TARGET}
    assert lost_for_ever(flow) == lost
    recorded = Recorded(flow.clusters)
    recorded.refresh()
    known = recorded.maps.maps[HERE]
    end = flow.remote.end
    assert [known.copy_of(offset) for offset in (7, 11, 12, 13, 14)] == [7, None, end - 3, end - 2, end - 1]


def test_a_replica_that_was_cut_off_brings_copies_back_that_lie_elsewhere() -> None:
    """Those of a writer that was fenced off by a marker which that replica never got."""
    flow = flow_of(8)
    flow.write(b"8", b"9", b"later")
    flow.start()
    flow.remote.mark()
    flow.record(*flow.copy(2))
    flow.remote.cut(8)
    flow.copy(2, 8)
    flow.run()
    assert copies_are(flow, b"7", b"8", b"9", b"later")
    assert (flow.losses(), lost_for_ever(flow)) == ([], [])
    recorded = Recorded(flow.clusters)
    recorded.refresh()
    assert [recorded.maps.maps[HERE].copy_of(offset) for offset in range(7, 11)] == [7, 8, 9, 10]


def test_copies_that_were_lost_come_back_with_another_election() -> None:
    flow = flow_of()
    flow.remote.cut(5)
    flow.write(b"later", b"latest")
    flow.run()
    assert copies_are(flow, b"4", b"later", b"latest")
    assert lost_for_ever(flow) == [OffsetRange(5, 10)]
    flow.remote.cut(5)
    flow.copy(4, 5)
    flow.write(b"newest")
    flow.start()
    assert flow.recorded.progress.positions[HERE].target_end == 9, "what is recorded of it can be read"
    flow.record(*flow.copy())
    assert copies_are(flow, b"4", b"5", b"6", b"7", b"8", b"newest")
    assert sorted(lost_for_ever(flow)) == [OffsetRange(9, 10), OffsetRange(10, 12)]
    recorded = Recorded(flow.clusters)
    recorded.refresh()
    assert [recorded.maps.maps[HERE].copy_of(offset) for offset in range(4, 13)] == [4, 5, 6, 7, 8, None, None, None, 9]


def test_a_loss_is_taken_back_only_while_the_flow_is_ours() -> None:
    flow = flow_of()
    flow.remote.cut(5)
    flow.write(b"later")
    flow.run()
    recorded = Recorded(flow.clusters)
    recorded.refresh()
    logs = LogIdentity(flow.source.held["t"].topic_id)
    found = ProgressDetail(OffsetRange(5, 9), 9, (Interval(5, 5, 4),), logs=logs)
    flow.lease.owner = "another driver"
    with pytest.raises(LeaseLost):
        retract(flow.clusters, None, recorded.maps.losses, {HERE: found})
    assert lost_for_ever(flow) == [OffsetRange(5, 10)]
    flow.lease.owner = None
    retract(flow.clusters, None, recorded.maps.losses, {HERE: found})
    assert lost_for_ever(flow) == [OffsetRange(9, 10)]


def test_a_foreign_record_behind_an_election_pauses_its_partition_all_the_same() -> None:
    flow = flow_of()
    flow.remote.cut(8)
    flow.remote.append(FOREIGN)
    assert flow.pause().why.kind is FailureKind.FOREIGN_WRITER


def test_a_remote_topic_that_is_gone_waits_where_the_policy_says_so() -> None:
    flow = flow_of(target_changed="stop")
    flow.target.delete("A.t")
    assert HERE not in flow.start().assignment.starts
    assert flow.paused is not None
    assert "is gone on B" in flow.paused.topics["t"]


def test_without_progress_and_without_a_map_both_logs_are_compared() -> None:
    flow = flow_of()
    flow.write(b"a", b"b")
    for topic in (flow.settings.progress_topic, flow.settings.map_topic):
        flow.target.delete(topic)
    flow.run()
    flow.assert_once()


def test_copies_of_somebody_else_that_cannot_be_matched_are_left_and_all_is_copied_behind_them() -> None:
    flow = MemoryFlow(SETTINGS)
    flow.write(b"a", b"b")
    flow.target.held["A.t"] = MemoryTopic([MemoryLog()], {})
    flow.remote.append(FOREIGN)
    flow.run()
    assert [one.value for one in flow.remote.records.values()] == [b"am I", b"a", b"b"]


def test_latest_begins_at_the_end_and_stays_there() -> None:
    flow = MemoryFlow(flow_settings({"A->B.consumer.auto.offset.reset": "latest"}))
    flow.write(b"before")
    assert flow.position().next_offset == 1
    flow.write(b"between")
    assert flow.position().next_offset == 1, "the first start has recorded it"


def test_a_policy_with_another_name_copies_anew_or_goes_on() -> None:
    for rename, offset in (("resume", 10), ("recopy", 0)):
        flow = flow_of()
        now = flow_settings({"replication.policy.separator": "-", "target.renamed.policy": rename})
        flow.change(now)
        position = flow.position()
        assert (position.next_offset, position.target_end) == (offset, 0)


def test_a_cluster_that_is_down_fails_the_start_and_nothing_is_recorded() -> None:
    flow = flow_of()
    flow.write(b"later")
    before = {name: topic.partitions[0].end for name, topic in flow.target.held.items() if "internal" in name}
    flow.source.down = "no route"
    with pytest.raises(SourceUnavailable, match="no route"):
        flow.start()
    flow.source.down = None
    now = {name: topic.partitions[0].end for name, topic in flow.target.held.items() if "internal" in name}
    assert now == {**before, flow.settings.progress_topic: now[flow.settings.progress_topic]}
    flow.run()
    flow.assert_once()


def test_lost_progress_is_the_end_of_the_map_though_neither_log_has_all_of_it() -> None:
    flow = flow_of()
    flow.target.delete(flow.settings.progress_topic)
    flow.log.delete_before(4)
    flow.remote.delete_before(6)
    flow.write(b"later 0", b"later 1")
    flow.run()
    assert [one.value for one in flow.remote.records.values()] == [b"6", b"7", b"8", b"9", b"later 0", b"later 1"]


def test_without_progress_and_without_syncs_the_logs_themselves_tell() -> None:
    flow = MemoryFlow(flow_settings({"emit.offset-syncs.enabled": "false"}))
    flow.write(*(b"%d" % number for number in range(10)))
    flow.target.held["A.t"] = MemoryTopic([MemoryLog()], {})
    for offset in range(6):
        flow.remote.append(flow.log.records[offset])
    flow.run()
    flow.assert_once()


@pytest.mark.parametrize("has_syncs", ["true", "false"])
@pytest.mark.parametrize("unrecorded", [0, 2])
def test_mirror_maker_s_records_behind_its_last_flush_are_not_copied_again(has_syncs: str, unrecorded: int) -> None:
    """It flushes offsets once a minute: its newest one is behind what it has written."""
    flow = MemoryFlow(flow_settings({"emit.offset-syncs.enabled": has_syncs}))
    flow.write(*(b"%d" % number for number in range(10)))
    flow.run()
    flow.target.delete(flow.settings.progress_topic)
    flow.recorded.progress.ensure()
    key = b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]'
    writer = flow.target.writer("mirror maker", TargetUnavailable)
    writer.write([ControlRecord(flow.settings.progress_topic, key, b'{"offset":3}')])
    flow.write(*(b"later %d" % number for number in range(5)))
    for offset in range(10, 10 + unrecorded):
        flow.remote.append(flow.log.records[offset])
    flow.run()
    flow.assert_once()


def test_a_flow_that_starts_at_the_end_knows_that_nothing_before_was_copied() -> None:
    flow = MemoryFlow(flow_settings({"A->B.consumer.auto.offset.reset": "latest"}))
    flow.write(*(b"%d" % number for number in range(7)))
    flow.run()
    assert parts_of(flow) == [(OffsetRange(0, 7), [])]
    flow.write(b"a", b"b", b"c")
    flow.run()
    assert parts_of(flow) == [(OffsetRange(0, 10), [Interval(7, 0, 3)])]


def test_a_topic_made_anew_has_a_map_of_its_own() -> None:
    flow = flow_of(5, source_recreated="resume")
    flow.source.held["t"] = MemoryTopic([MemoryLog()], {})
    flow.write(*(b"again %d" % number for number in range(4)))
    flow.run()
    assert parts_of(flow) == [(OffsetRange(0, 4), [Interval(0, 5, 4)])]


def parts_of(flow: MemoryFlow) -> list[tuple[OffsetRange, list[Interval]]]:
    flow.recorded.refresh()
    return [(part.source, list(part.intervals)) for part in flow.recorded.maps.maps[HERE].parts()]
