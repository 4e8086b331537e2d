"""Rounds of the groups' thread between clusters in memory: checkpoints, offsets on the target, and why not."""

from __future__ import annotations

from srm_spark.core.cluster import Committed
from srm_spark.core.codec import decode_checkpoint
from srm_spark.core.model import Checkpoint
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.groups.consumer_groups import ConsumerGroups
from srm_spark.flow.groups.sync import SyncState
from tests.unit.memory_flow import HERE, THERE, MemoryFlow, flow_settings

CHECKPOINTS = "A.checkpoints.internal"
KEYS = {
    "emit.offset-syncs.enabled": "true",
    "emit.checkpoints.enabled": "true",
    "sync.group.offsets.enabled": "true",
    "A->B.groups": ".*",
}


class Rounds:
    """A flow that has copied ten records and a group that stands at the fourth."""

    def __init__(self, **keys: str) -> None:
        self.flow = MemoryFlow(flow_settings({**KEYS, **{key.replace("_", "."): value for key, value in keys.items()}}))
        self.flow.write(*(b"%d" % number for number in range(10)))
        self.flow.run()
        self.here, self.there = self.flow.source.group_calls, self.flow.target.group_calls
        self.here.committed["g"] = {HERE: Committed(4, "note")}
        self.groups = ConsumerGroups(self.flow.clusters, self.flow.recorded.maps)

    def round(self) -> dict[str, tuple[SyncState, str]]:
        """Group → what came of it."""
        self.groups.round()
        assert self.groups.report is not None
        return {one.position.group: (one.state, one.detail) for one in self.groups.report.synced}

    def checkpoints(self) -> list[Checkpoint]:
        """All that were ever written."""
        log = self.flow.target.held[CHECKPOINTS].partitions[0]
        return [decode_checkpoint(one.key, one.value) for one in log.ever.values()]


def test_a_group_moves_with_its_checkpoint() -> None:
    rounds = Rounds()
    assert rounds.round() == {"g": (SyncState.SYNCED, "")}
    assert rounds.there.committed["g"][THERE].offset == 4
    (checkpoint,) = rounds.checkpoints()
    assert (checkpoint.group, checkpoint.partition, checkpoint.upstream, checkpoint.downstream) == ("g", THERE, 4, 4)
    assert checkpoint.metadata == "note"


def test_a_group_with_members_on_the_target_is_left_alone() -> None:
    rounds = Rounds()
    rounds.there.live["g"] = ("someone",)
    rounds.there.committed["g"] = {THERE: Committed(2)}
    state, _ = rounds.round()["g"]
    assert state is SyncState.ACTIVE
    assert rounds.there.committed["g"][THERE].offset == 2


def test_a_group_that_may_not_be_read_does_not_hide_the_others() -> None:
    rounds = Rounds()
    rounds.here.committed["secret"] = {HERE: Committed(1)}
    rounds.here.refused["secret"] = Failure(FailureKind.GROUP_DENIED, "not authorized")
    assert rounds.round()["g"] == (SyncState.SYNCED, "")
    assert "secret" not in rounds.there.committed


def test_a_group_that_is_further_on_the_target_is_left_alone() -> None:
    rounds = Rounds()
    rounds.there.committed["g"] = {THERE: Committed(9)}
    assert rounds.round()["g"][0] is SyncState.AHEAD


def test_positions_go_on_with_what_is_replicated() -> None:
    rounds = Rounds()
    rounds.round()
    rounds.flow.write(b"more")
    rounds.flow.run()
    rounds.here.committed["g"] = {HERE: Committed(11)}
    rounds.groups = ConsumerGroups(rounds.flow.clusters, rounds.flow.recorded.maps)
    assert rounds.round() == {"g": (SyncState.SYNCED, "")}
    assert [one.downstream for one in rounds.checkpoints()] == [4, 11]
