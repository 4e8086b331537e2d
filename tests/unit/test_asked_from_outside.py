"""What commands ask of a flow without a driver, of clusters in memory: lag, losses, rights, groups, kept positions."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from srm_spark.core.cluster import Committed
from srm_spark.core.filters import NameFilter
from srm_spark.core.model import LossCause, OffsetRange, TopicPartition
from srm_spark.errors import LeaseHeld, LeaseLost, TargetUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.groups.consumer_groups import ConsumerGroups
from srm_spark.flow.groups.kept_outside import translate_positions
from srm_spark.flow.groups.report import report_groups
from srm_spark.flow.lag import LagReader
from srm_spark.flow.owned import owned
from srm_spark.flow.topics.losses import kept_losses
from srm_spark.flow.topics.rights import not_readable
from tests.unit.memory_flow import HERE, THERE, MemoryFlow, flow_settings

GROUPS = {
    "emit.offset-syncs.enabled": "true",
    "emit.checkpoints.enabled": "true",
    "sync.group.offsets.enabled": "true",
    "A->B.groups": "g.*",
}
ALL = NameFilter((".*",))


def copied(keys: Mapping[str, str] | None = None, count: int = 10) -> MemoryFlow:
    """A flow that has copied so many records."""
    flow = MemoryFlow(flow_settings(keys))
    flow.write(*(b"%d" % number for number in range(count)))
    flow.run()
    return flow


# Lag


def test_lag_is_what_no_progress_is_recorded_for() -> None:
    flow = copied()
    with LagReader(flow.settings, flow.source, flow.target) as reader:
        assert reader.lag(["t"]) == 0
        flow.write(b"a", b"b")
        assert reader.lag(["t"]) == 2
        assert reader.lag(["t", "other"]) == 2, "there is none"
        flow.run()
        assert reader.lag(["t"]) == 0


def test_a_topic_that_was_never_copied_is_behind_by_all_of_it() -> None:
    flow = copied(count=1)
    flow.source.grow({"t": 2})
    with LagReader(flow.settings, flow.source, flow.target) as reader:
        flow.write(b"a")
        assert reader.lag(["t"]) == 1
        flow.target.delete(flow.settings.progress_topic)
    with (
        LagReader(flow.settings, flow.source, flow.target) as reader,
        pytest.raises(TargetUnavailable, match="is not there"),
    ):
        reader.lag(["t"])


# Losses


def test_losses_are_told_in_the_order_in_which_they_were_found_and_without_the_source() -> None:
    flow = copied()
    for offset in (12, 15):
        flow.write(b"a", b"b", b"c")
        flow.log.delete_before(offset)
        flow.run()
    flow.source.down = "no route"
    losses = kept_losses(flow.settings, flow.reach)
    assert [(kept.partition, kept.loss.offsets, kept.loss.cause) for kept in losses] == [
        (HERE, OffsetRange(10, 12), LossCause.DELETED),
        (HERE, OffsetRange(13, 15), LossCause.DELETED),
    ]
    flow.target.down = "no route either"
    with pytest.raises(TargetUnavailable, match="no route either"):
        kept_losses(flow.settings, flow.reach)


# Rights


def test_topics_that_may_not_be_read_are_those_of_which_that_is_certain() -> None:
    flow = copied()
    allowed = {"read": frozenset({"READ", "DESCRIBE"}), "seen": frozenset({"DESCRIBE"}), "none": frozenset[str]()}
    found = not_readable(flow.clusters, ["read", "seen", "none", "unknown"], lambda *_: {**allowed, "unknown": None})
    assert found == {"seen", "none"}


# The lease of a command


def test_a_command_has_the_flow_while_its_block_lasts() -> None:
    flow = copied()
    with owned(flow.clusters) as (mine, lease):
        assert lease.is_held()
        mine.require_lease()
        flow.lease.owner = "another"
        with pytest.raises(LeaseLost):
            mine.require_lease()
    assert not flow.lease.held


def test_a_command_does_not_take_it_from_anybody() -> None:
    flow = copied()
    flow.lease.owner = "driver@host"
    with pytest.raises(LeaseHeld, match="a driver runs it: driver@host; stop the flow"), owned(flow.clusters):
        pytest.fail("it is not ours")


def test_a_command_that_another_driver_outruns_says_so() -> None:
    flow = copied()
    flow.lease.acquire = lambda: False
    with pytest.raises(LeaseHeld, match="it was faster"), owned(flow.clusters):
        pytest.fail("it is not ours")


# Groups


def test_a_report_says_where_groups_stand_and_what_sync_would_make_of_them() -> None:
    flow = copied(GROUPS)
    flow.source.group_calls.committed["g1"] = {HERE: Committed(4)}
    flow.source.group_calls.committed["g2"] = {HERE: Committed(10)}
    flow.source.group_calls.committed["other"] = {HERE: Committed(1)}
    flow.source.group_calls.committed["gx"] = {HERE: Committed(1)}
    flow.source.group_calls.refused["gx"] = Failure(FailureKind.GROUP_DENIED, "not authorized")
    flow.target.group_calls.committed["g2"] = {THERE: Committed(7)}
    report = report_groups(flow.settings, ALL, flow.reach)
    assert report.source_down is None
    assert [(row.group, row.upstream, row.downstream, row.source_lag, row.sync) for row in report.rows] == [
        ("g1", 4, 4, 6, "to be synced"),
        ("g2", 10, 10, 0, "to be synced"),
    ]
    assert [(row.target_offset, row.target_lag) for row in report.rows] == [(None, None), (7, 3)]
    assert report.refusals == ("gx: not authorized",)
    assert report.left_out == {"other": "no pattern of groups matches, nor an entry of their list"}
    assert flow.target.group_calls.committed == {"g2": {THERE: Committed(7)}}, "nothing was committed"
    (row,) = report_groups(flow.settings, NameFilter(("g1",)), flow.reach).rows
    assert row.group == "g1"


def test_where_the_source_is_down_checkpoints_are_all_there_is() -> None:
    flow = copied(GROUPS)
    flow.source.group_calls.committed["g1"] = {HERE: Committed(4)}
    ConsumerGroups(flow.clusters, flow.recorded.maps).round()
    flow.source.down = "no route"
    report = report_groups(flow.settings, ALL, flow.reach)
    assert "no route" in (report.source_down or "")
    (row,) = report.rows
    assert (row.group, row.remote, row.upstream, row.downstream) == ("g1", THERE, 4, 4)
    assert (row.translation, row.source_lag, row.sync) == ("checkpoint", None, None)
    flow.target.down = "no route either"
    with pytest.raises(TargetUnavailable):
        report_groups(flow.settings, ALL, flow.reach)


def test_groups_that_are_not_synced_say_so() -> None:
    flow = copied({**GROUPS, "sync.group.offsets.enabled": "false"})
    flow.source.group_calls.committed["g1"] = {HERE: Committed(4)}
    (row,) = report_groups(flow.settings, ALL, flow.reach).rows
    assert row.sync == "not synced: sync.group.offsets.enabled is false"


# Positions that are kept outside of Kafka


def test_kept_positions_are_translated_by_the_map() -> None:
    flow = copied()
    flow.log.mark()
    flow.write(b"a", b"b")
    flow.run()
    done = translate_positions(flow.settings, [(HERE, 4), (HERE, 12), (HERE, 0)], flow.reach)
    assert done.translated == {(HERE, 4): (THERE, 4), (HERE, 12): (THERE, 11), (HERE, 0): (THERE, 0)}
    assert done.refusals == done.remarks == {}


def test_beginning_and_end_stay_what_they_are() -> None:
    flow = copied()
    done = translate_positions(flow.settings, [(HERE, -2), (HERE, -1)], flow.reach)
    assert done.translated == {(HERE, -2): (THERE, -2), (HERE, -1): (THERE, -1)}
    assert all("that is no position" in remark for remark in done.remarks.values())


def test_what_does_not_flow_says_why() -> None:
    flow = copied()
    other = TopicPartition("other", 0)
    done = translate_positions(flow.settings, [(other, 3)], flow.reach)
    assert done.translated == {}
    assert done.refusals[other, 3].startswith("it does not flow A->B: ")


def test_a_partition_that_is_not_replicated_yet_has_no_counterpart() -> None:
    flow = copied()
    flow.source.grow({"t": 2})
    new = TopicPartition("t", 1)
    done = translate_positions(flow.settings, [(new, 0), (new, -2)], flow.reach)
    assert done.translated == {}
    assert set(done.refusals.values()) == {"the partition is not replicated yet"}


def test_what_was_not_copied_yet_goes_on_where_copies_end_and_says_so() -> None:
    flow = copied()
    flow.write(b"a", b"b")
    done = translate_positions(flow.settings, [(HERE, 12)], flow.reach)
    assert done.translated == {(HERE, 12): (THERE, 10)}
    assert done.remarks == {(HERE, 12): "ahead of replication: translated up to where replication stands"}


def test_a_source_that_is_down_hinders_nothing() -> None:
    flow = copied()
    flow.source.down = "no route"
    assert translate_positions(flow.settings, [(HERE, 4)], flow.reach).translated == {(HERE, 4): (THERE, 4)}
