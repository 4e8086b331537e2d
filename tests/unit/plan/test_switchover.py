"""Flows of one site move together: none before all can, the fence once, and what stopped goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from srm_spark.cli.moves_view import site_plan_text, undo_text
from srm_spark.config.load import load_settings
from srm_spark.config.settings import FlowSettings
from srm_spark.core.acls import Acl
from srm_spark.core.cluster import Committed
from srm_spark.core.model import Flow, OffsetRange, TopicPartition
from srm_spark.errors import MoveError
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.remote_acls import record_staged
from srm_spark.plan import Move, MoveKind, MoveOutcome, SiteStatement, Stage, Switchover, last_failover, past_moves
from srm_spark.plan.document import site_plan_document, site_statement_document, undo_document
from srm_spark.plan.drain import Stillness
from tests.memory_cluster import MemoryGroups, MemoryLog, MemoryTopic
from tests.unit.memory_flow import HERE, THERE, MemoryLease
from tests.unit.memory_run import World

FILE = """clusters = A, B, C
A.bootstrap.servers = nowhere:1
B.bootstrap.servers = nowhere:2
C.bootstrap.servers = nowhere:3
A->B.enabled = true
A->C.enabled = true
B->A.enabled = true
topics = t
sync.topic.acls.write.policy = failover
replication.factor = 1
offset.storage.replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
"""
SYNCED = {"emit.checkpoints.enabled": "true", "sync.group.offsets.enabled": "true"}


class Scene:
    """Site A with a flow to B and one to C, each with its own group."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.told = folder, list[str]()
        self.worlds = {"B": World(SYNCED), "C": World(SYNCED)}
        self.owners = dict.fromkeys(("A->B", "A->C"), "driver")
        for alias, world in self.worlds.items():
            world.flow.write(b"a", b"b", b"c")
            world.copied()
            world.flow.source.group_calls.committed[f"to-{alias}"] = {HERE: Committed(2)}
        file = folder / "srm.properties"
        file.write_text(FILE)
        self.settings = load_settings([file])

    def reach(self, settings: FlowSettings) -> Clusters:
        if settings.flow.target == "A":
            there = self.worlds[settings.flow.source].flow
            ends = replace(there.reach(settings), source=there.target, target=there.source, policy=settings.policy())
        else:
            ends = self.worlds[settings.flow.target].flow.reach(settings)
        return replace(ends, settings=settings, make_lease=lambda: MemoryLease(self.owners.get(str(settings.flow))))  # type: ignore[arg-type, return-value]

    def switchover(self, kind: MoveKind = MoveKind.FAILOVER, *targets: str, **more: object) -> Switchover:
        options = {"folder": self.folder, "wait_seconds": 0.0, "tell": self.told.append, "reach": self.reach, **more}
        return Switchover(self.settings, "A", targets=targets, kind=kind, **options)  # type: ignore[arg-type]

    def apply(self, kind: MoveKind = MoveKind.FAILOVER, *targets: str, **more: object) -> SiteStatement:
        with self.switchover(kind, *targets, **more) as move:
            return move.apply(move.plan())

    def moved(self) -> dict[str, int]:
        """Group → where it stands on its target."""
        targets = (world.flow.target.group_calls.committed for world in self.worlds.values())
        return {group: at[THERE].offset for groups in targets for group, at in groups.items() if at}

    def states(self) -> set[str]:
        """Which flows have a state file."""
        paths = self.folder.glob("srm-*.json")
        return {document["id"]["flow"] for path in paths if "id" in (document := json.loads(path.read_text()))}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_all_groups_of_a_site_that_is_gone_go_on_elsewhere(scene: Scene) -> None:
    done = scene.apply()
    assert (done.unsafe, scene.moved(), scene.states()) == ((), {"to-B": 2, "to-C": 2}, set())
    assert [document["flow"] for document in site_statement_document(done)["flows"]] == ["A->B", "A->C"]  # type: ignore[attr-defined]
    for statement in done.statements:
        assert last_failover(scene.folder, statement.flow) is not None
    assert {text for text in scene.told if Stage.COMMIT.value in text} == {
        f"A->{alias}: {Stage.COMMIT.value}" for alias in "BC"
    }


def test_only_the_flows_to_one_target(scene: Scene) -> None:
    assert scene.apply(MoveKind.FAILOVER, "C").unsafe == ()
    assert scene.moved() == {"to-C": 2}


def test_no_group_moves_before_every_flow_is_drained_and_the_fence_runs_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srm_spark.plan.move.Stillness", lambda: Stillness(0.0))
    fenced = scene.folder / "fenced"
    more: dict[str, object] = {"fence": f"echo stopped >> {fenced}", "wait_seconds": 0.3}
    scene.worlds["C"].flow.write(b"d")
    done = scene.apply(MoveKind.PLANNED_FAILOVER, **more)
    assert (scene.moved(), scene.states()) == ({}, {"A->B", "A->C"})
    b, c = done.statements
    assert b.unsafe == ("not drained: A->C; no flow of A goes on before all are",)
    assert "without a copy: 1 record; " in c.unsafe[0]
    scene.worlds["C"].copied()
    with scene.switchover(MoveKind.PLANNED_FAILOVER, **more) as move:
        plan = move.plan()
        assert plan.stages == (Stage.DRAIN, Stage.COMMIT, Stage.CHECK)
        assert move.apply(plan).unsafe == ()
    assert (scene.moved(), scene.states(), fenced.read_text()) == ({"to-B": 2, "to-C": 2}, set(), "stopped\n")


def test_what_was_lost_before_the_newest_commit_is_in_the_statement(scene: Scene) -> None:
    world = scene.worlds["C"]
    world.flow.write(b"d", b"e", b"f")
    world.flow.log.delete_before(5)
    world.copied()
    world.flow.write(b"g")
    world.copied()
    with scene.switchover(MoveKind.FAILOVER, "C") as move:
        (statement,) = move.apply(move.plan()).statements
    assert statement.snapshot is not None
    assert [one.lost for one in statement.snapshot.ranges if one.partition == HERE] == [(OffsetRange(3, 5),)]


def test_a_fence_that_fails_moves_nothing_and_runs_again(scene: Scene) -> None:
    fenced = scene.folder / "fenced"
    done = scene.apply(MoveKind.PLANNED_FAILOVER, fence=f"echo tried >> {fenced}; exit 3")
    assert {text for one in done.statements for text in one.unsafe} == {
        "the fence command ended with exit code 3; nothing was moved"
    }
    assert scene.moved() == {}
    with scene.switchover(MoveKind.PLANNED_FAILOVER, fence="true") as move:
        assert move.plan().fences


def test_where_one_flow_refuses_nothing_is_touched(scene: Scene) -> None:
    del scene.owners["A->C"]
    fenced = scene.folder / "fenced"
    with scene.switchover(MoveKind.PLANNED_FAILOVER, fence=f"touch {fenced}") as move:
        plan = move.plan()
        done = move.apply(plan)
    (refusal,) = plan.refusals
    assert refusal.startswith("A->C: nobody runs the flow A->C")
    assert site_plan_document(plan)["refusals"] == [refusal]
    assert [one.unsafe for one in done.statements] == [
        (f"nothing was done: {refusal}",), (refusal.removeprefix("A->C: "),)
    ]  # fmt: skip
    assert (fenced.exists(), scene.moved(), scene.states()) == (False, {}, set())


def test_a_flow_without_groups_is_in_order_but_a_site_without_any_is_none(scene: Scene) -> None:
    del scene.worlds["C"].flow.source.group_calls.committed["to-C"]
    assert scene.apply().unsafe == ()
    assert scene.moved() == {"to-B": 2}
    assert scene.apply(groups=("to-B",)).unsafe == (), "of a group that is named, too"
    with scene.switchover(groups=("to-B", "nobody")) as move:
        plan = move.plan()
        unseen = "group nobody: no offset of it on a topic of a flow from A is known"
        assert (plan.refusals, plan.unsafe, move.apply(plan).unsafe) == ((), (unseen,), (unseen,))
    assert scene.states() == set()
    del scene.worlds["B"].flow.source.group_calls.committed["to-B"]
    with scene.switchover() as move:
        plan = move.plan()
        assert plan.refusals == ("no group stands on a topic of a flow from A; check --group and the configuration",)
        assert (plan.stages, site_plan_document(plan)["stages"]) == ((), [])


def busy(scene: Scene) -> MemoryGroups:
    """A group of the flow to C has members there, which keep the site's move from its end."""
    calls = scene.worlds["C"].flow.target.group_calls
    calls.committed["to-C"] = {THERE: Committed(1)}
    calls.live["to-C"] = ("reader",)
    assert scene.apply().unsafe
    assert (scene.moved(), scene.states()) == ({"to-B": 2, "to-C": 1}, {"A->B", "A->C"})
    return calls


def test_a_flow_that_has_ended_is_not_moved_again_with_the_others(scene: Scene) -> None:
    """Its consumers may read by then, and how long it took is known."""
    calls = busy(scene)
    (first,) = past_moves(scene.folder, Flow("A", "B"))
    scene.worlds["B"].flow.target.group_calls.committed["to-B"] = {THERE: Committed(3)}
    scene.worlds["B"].flow.target.group_calls.live["to-B"] = ("reader",)
    del calls.live["to-C"]
    with scene.switchover() as move:
        plan = move.plan()
        assert ([str(one.flow) for one in plan.plans], plan.ended) == (["A->C"], (Flow("A", "B"),))
        assert "done by an earlier call: all of A->B" in site_plan_text(plan)
        assert move.apply(plan).unsafe == ()
    assert (scene.moved(), scene.states()) == ({"to-B": 3, "to-C": 2}, set())
    assert past_moves(scene.folder, Flow("A", "B")) == [first]


def test_a_switchover_that_has_not_ended_is_undone_in_all_flows(scene: Scene) -> None:
    busy(scene)
    with scene.switchover() as move:
        assert [str(one.flow) for one in move.undo()] == ["A->B", "A->C"]
    assert (scene.moved(), scene.states()) == ({"to-C": 1}, set())
    with scene.switchover() as move, pytest.raises(MoveError, match="nothing to undo: no failover of a flow from A"):
        move.undo()


def test_a_cluster_that_goes_away_keeps_no_other_flow_from_its_end(scene: Scene) -> None:
    c = scene.worlds["C"].flow.target
    c.happens = lambda asked: setattr(c, "down", "no broker answers") if scene.told else None
    done = scene.apply()
    b, gone = done.statements
    assert (b.unsafe, scene.moved()) == ((), {"to-B": 2})
    assert "no broker answers" in gone.unsafe[0]
    with pytest.raises(MoveError, match="A->C cannot be looked at, so nothing is done; --to names other targets"):
        scene.apply()
    with scene.switchover() as move:
        undone = {str(one.flow): one for one in move.undo()}
    assert (undone["A->B"].left, scene.moved(), scene.states()) == ((), {}, {"A->C"})
    assert "no broker answers" in undone["A->C"].left[0]


@pytest.mark.parametrize("how", ["alone", "--to", "--undo"])
def test_what_has_ended_counts_for_its_own_switchover_only(scene: Scene, how: str) -> None:
    """The other flow was finished by itself, and nothing was left to go on with: the next one moves both."""
    calls = busy(scene)
    options: dict[str, Any] = {"folder": scene.folder, "reach": scene.reach}
    ended = pytest.raises(MoveError, match="srm-control switchover goes on with it")
    with Move(scene.settings, "A->B", MoveKind.FAILOVER, **options) as again, ended:
        again.plan()
    calls.live.clear()
    if how == "--to":
        assert scene.apply(MoveKind.FAILOVER, "C").unsafe == ()
    else:
        with Move(scene.settings, "A->C", MoveKind.FAILOVER, **options) as one:
            assert one.apply(one.plan()).unsafe == () if how == "alone" else one.undo().left == ()
    assert scene.states() == {"A->B"}
    for world in scene.worlds.values():
        world.flow.target.group_calls.committed.clear()  # a failback and a while later
    assert scene.apply().unsafe == ()
    assert (scene.moved(), scene.states()) == ({"to-B": 2, "to-C": 2}, set())


@pytest.mark.parametrize("is_away", [False, True])
def test_a_flow_whose_undo_is_not_over_is_moved_anew_and_its_fence_runs_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_away: bool
) -> None:
    """The other one as well, where its cluster is away: both are under way still."""
    monkeypatch.setattr("srm_spark.plan.move.Stillness", lambda: Stillness(0.0))
    calls = scene.worlds["C"].flow.target.group_calls
    calls.committed["to-C"], calls.live["to-C"] = {THERE: Committed(1)}, ("reader",)
    assert scene.apply(MoveKind.PLANNED_FAILOVER, fence="true").unsafe
    assert scene.moved() == {"to-B": 2, "to-C": 1}
    here = scene.worlds["B"].flow.target.group_calls
    here.live["to-B"] = ("reader",)
    with scene.switchover(MoveKind.PLANNED_FAILOVER) as move:
        scene.worlds["C"].flow.target.down = "no broker answers" if is_away else None
        assert [bool(one.left) for one in move.undo()] == [True, is_away]
    scene.worlds["C"].flow.target.down = None
    assert scene.states() == ({"A->B", "A->C"} if is_away else {"A->B"})
    with scene.switchover(MoveKind.PLANNED_FAILOVER, fence="true") as move:
        plan = move.plan()
    assert (plan.fences, plan.ended) == (True, ())


def test_where_a_group_stood_is_not_nowhere_because_the_target_did_not_say(scene: Scene) -> None:
    target = scene.worlds["B"].flow.target.group_calls
    target.committed["to-B"] = {THERE: Committed(1)}
    target.refused["to-B"] = Failure(FailureKind.GROUP_DENIED, "not authorized")
    assert scene.apply(MoveKind.FAILOVER, "B").unsafe
    target.refused.clear()
    scene.worlds["B"].flow.source.group_calls.committed["stays"] = {HERE: Committed(3)}
    target.live["stays"] = ("reader",)
    assert scene.apply(MoveKind.FAILOVER, "B").unsafe
    assert scene.moved() == {"to-B": 2}
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        (undo,) = move.undo()
    assert (undo.left, scene.moved()) == ((), {"to-B": 1})


def test_a_group_that_read_on_at_the_source_between_two_calls_goes_back_as_well(scene: Scene) -> None:
    flow = scene.worlds["B"].flow
    flow.source.group_calls.committed["stays"] = {HERE: Committed(3)}
    flow.target.group_calls.live["stays"] = ("reader",)
    assert scene.apply(MoveKind.FAILOVER, "B").unsafe
    flow.source.group_calls.committed["to-B"] = {HERE: Committed(3)}
    flow.target.group_calls.joining["to-B"] = ("late",)  # the second call was about to set it, and could not
    assert scene.apply(MoveKind.FAILOVER, "B").unsafe
    assert scene.moved() == {"to-B": 2}
    flow.target.group_calls.live.clear()
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        (undo,) = move.undo()
    assert (undo.left, scene.moved(), scene.states()) == ((), {}, set())


def test_a_group_that_an_open_transaction_may_move_is_left_by_an_undo_until_that_is_over(scene: Scene) -> None:
    flow = scene.worlds["B"].flow
    flow.source.group_calls.committed["stays"] = {HERE: Committed(3)}
    flow.target.group_calls.live["stays"] = ("reader",)
    assert scene.apply(MoveKind.FAILOVER, "B").unsafe
    flow.target.group_calls.unsettled["to-B"] = {THERE}
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        (undo,) = move.undo()
    assert [one.left for one in undo.groups] == ["a transaction that may move its offset there is open"]
    assert (scene.moved(), scene.states()) == ({"to-B": 2}, {"A->B"})
    flow.target.group_calls.unsettled.clear()
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        (undo,) = move.undo()
    assert (undo.left, scene.moved(), scene.states()) == ((), {}, set())


def test_a_statement_that_cannot_be_written_keeps_no_other_from_being(scene: Scene) -> None:
    stamp = "20261128T000000Z"
    scene.worlds["C"].flow.write(b"d")
    assert scene.apply(MoveKind.PLANNED_FAILOVER).unsafe
    for path in scene.folder.glob("srm-planned_failover-A-?.json"):
        path.write_text(path.read_text().replace(json.loads(path.read_text())["began"], "2026-11-28T00:00:00Z"))
    (scene.folder / f"srm-planned_failover-A-B-{stamp}.json").mkdir()
    with pytest.raises(MoveError, match=f"A-B-{stamp}.json: cannot be written"):
        scene.apply(MoveKind.PLANNED_FAILOVER)
    said = json.loads((scene.folder / f"srm-planned_failover-A-C-{stamp}.json").read_text())
    assert "without a copy: 1 record" in said["unsafe"][0]


def test_what_a_failing_flow_has_moved_is_in_its_statement(scene: Scene) -> None:
    flow = scene.worlds["C"].flow
    commit = flow.target.group_calls.commit

    def commits(group: str, offsets: Mapping[TopicPartition, Committed]) -> dict[TopicPartition, Any]:
        answer = commit(group, offsets)
        flow.target.down = "no broker answers"
        return answer

    flow.target.group_calls.commit = commits  # type: ignore[method-assign]
    _, gone = scene.apply().statements
    assert [(one.group, one.outcome) for one in gone.snapshot.moves] == [("to-C", MoveOutcome.MOVED)]
    assert "no broker answers" in gone.unsafe[0]


def test_the_state_file_of_an_older_version_says_what_to_undo(scene: Scene) -> None:
    busy(scene)
    path = scene.folder / "srm-failover-A-B.json"
    document = json.loads(path.read_text())
    path.write_text(
        json.dumps({name: document[name] for name in document if name not in ("set_to", "allowed", "ended")})
    )
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        (undo,) = move.undo()
    assert [(one.group, one.moved, one.left) for one in undo.groups] == [("to-B", 2, "")]
    assert scene.moved() == {"to-C": 1}


def test_a_move_that_was_killed_amid_its_groups_is_undone(scene: Scene) -> None:
    flow = scene.worlds["B"].flow
    flow.source.group_calls.committed["zeta"] = {HERE: Committed(3)}

    class Killed(MemoryGroups):
        def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> dict[TopicPartition, Any]:
            if group == "zeta":
                raise KeyboardInterrupt
            return super().commit(group, offsets)

    flow.target.group_calls = Killed()
    with pytest.raises(KeyboardInterrupt):
        scene.apply(MoveKind.FAILOVER, "B")
    assert scene.moved() == {"to-B": 2}
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        (undo,) = move.undo()
    assert [(one.group, one.moved, one.left) for one in undo.groups] == [("to-B", 2, ""), ("zeta", 3, "")]
    assert (scene.moved(), scene.states()) == ({}, set())


def test_what_the_sync_of_the_flow_has_set_stays_where_it_is(scene: Scene) -> None:
    scene.worlds["C"].flow.write(b"d")
    assert scene.apply(MoveKind.PLANNED_FAILOVER).unsafe  # nothing was moved
    scene.worlds["B"].flow.target.group_calls.committed["to-B"] = {THERE: Committed(2)}
    assert scene.apply(MoveKind.PLANNED_FAILOVER).unsafe
    with scene.switchover(MoveKind.PLANNED_FAILOVER) as move:
        assert [one.groups for one in move.undo()] == [(), ()]
    assert scene.moved() == {"to-B": 2}


def test_a_move_that_was_given_up_meanwhile_does_nothing_more(scene: Scene) -> None:
    """The one that runs is amid its wait for the last records when somebody else gives it up."""
    scene.worlds["C"].flow.write(b"d")
    assert scene.apply(MoveKind.PLANNED_FAILOVER).unsafe
    with scene.switchover(MoveKind.PLANNED_FAILOVER) as move:
        plan = move.plan()
        with scene.switchover(MoveKind.PLANNED_FAILOVER) as other:
            other.undo()
        done = move.apply(plan)
    assert all("another call has given this move up; nothing more is done" in one.unsafe[0] for one in done.statements)
    assert (scene.moved(), scene.states()) == ({}, set())


def test_a_fence_that_ran_for_one_flow_alone_runs_for_the_site(scene: Scene) -> None:
    scene.worlds["B"].flow.write(b"d")
    fenced = scene.folder / "fenced"
    options: dict[str, Any] = {"folder": scene.folder, "wait_seconds": 0.0, "reach": scene.reach}
    with Move(scene.settings, "A->B", MoveKind.PLANNED_FAILOVER, fence="true", **options) as one:
        assert one.apply(one.plan()).unsafe
    with scene.switchover(MoveKind.PLANNED_FAILOVER, fence=f"touch {fenced}") as move:
        plan = move.plan()
        assert plan.fences
        assert f"done by an earlier call, A->B: {Stage.FENCE.value}" in site_plan_text(plan)
        move.apply(plan)
    assert fenced.exists()


def test_groups_of_a_move_that_has_not_ended_stand_again_where_they_stood(scene: Scene) -> None:
    source, target = (side.group_calls for side in (scene.worlds["B"].flow.source, scene.worlds["B"].flow.target))
    source.committed["new"] = {HERE: Committed(3)}
    source.committed["stays"] = {HERE: Committed(1)}
    target.committed["to-B"] = {THERE: Committed(1)}
    target.live["stays"] = ("reader",)
    assert scene.apply(MoveKind.FAILOVER, "B").unsafe
    assert scene.moved() == {"to-B": 2, "new": 3}
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        (told,) = move.undo(commits=False)
        assert (told.left, scene.moved(), scene.states()) == ((), {"to-B": 2, "new": 3}, {"A->B"})
    target.live["new"] = ("reader",)
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        (half,) = move.undo()
    assert half.left == ("group new on A.t-0: it has members; stop them and run the same command again",)
    assert (scene.moved(), scene.states()) == ({"to-B": 1, "new": 3}, {"A->B"})
    del target.live["new"]
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        (whole,) = move.undo()
        (statement,) = scene.folder.glob("srm-failover-A-B-*.json")
    assert [(one.group, one.before, one.moved) for one in whole.groups] == [("new", None, 3), ("to-B", 1, 2)]
    assert (whole.left, scene.moved(), scene.states()) == ((), {"to-B": 1}, set())
    assert json.loads(statement.read_text())["unsafe"] == ["the move was given up before it ended"]
    assert last_failover(scene.folder, whole.flow) is None


def test_who_may_write_since_a_move_that_is_given_up_may_not_any_more(scene: Scene) -> None:
    flow, acl = scene.worlds["B"].flow, Acl("A.t", "LITERAL", "User:ann", "*", "WRITE", "ALLOW")
    by_hand = acl._replace(principal="User:bob")
    earlier = acl._replace(principal="User:eve")
    record_staged(flow.clusters, set(), {earlier, by_hand})
    flow.target.entries = {by_hand}
    assert scene.apply(MoveKind.FAILOVER, "B").unsafe == (), "what this one let her do stays"
    record_staged(flow.clusters, {earlier, by_hand}, {earlier, acl, by_hand})
    flow.target.group_calls.committed["to-B"] = {THERE: Committed(1)}
    flow.target.group_calls.live["to-B"] = ("reader",)
    assert scene.apply(MoveKind.FAILOVER, "B").unsafe
    assert flow.target.entries == {by_hand, earlier, acl}
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        assert move.undo(commits=False)[0].withdrawn == (acl,)
        assert flow.target.entries == {by_hand, earlier, acl}
        flow.target.forbidden["A.t"] = "not allowed"
        (refused,) = move.undo()
        assert (refused.left, scene.states()) == ((f"{acl} is in force still: not allowed",), {"A->B"})
    flow.target.forbidden.clear()
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        (undo,) = move.undo()
    assert (undo.left, undo.withdrawn, scene.states()) == ((), (acl,), set())
    assert flow.target.entries == {by_hand, earlier}
    assert f"  who may no longer write remote topics: {acl}" in undo_text([undo], is_done=True)


def test_a_group_that_went_on_since_is_left_and_does_not_keep_the_undo_from_its_end(scene: Scene) -> None:
    target = scene.worlds["B"].flow.target.group_calls
    scene.worlds["B"].flow.source.group_calls.committed["stays"] = {HERE: Committed(1)}
    target.live["stays"] = ("reader",)
    assert scene.apply(MoveKind.FAILOVER, "B").unsafe
    target.committed["to-B"] = {THERE: Committed(3)}
    with scene.switchover(MoveKind.FAILOVER, "B") as move:
        (undo,) = move.undo()
    went_on = "the move has set it to 2, and it is at 3 now: its consumers, or the flow's sync, went on"
    assert undo.left == (f"group to-B on A.t-0: {went_on}",)
    assert (scene.moved(), scene.states()) == ({"to-B": 3}, set())
    assert undo_text([undo], is_done=True).splitlines() == [
        "undo of a failover of A->B", f"  group to-B on A.t-0: left: {went_on}"
    ]  # fmt: skip


def test_a_fence_that_ran_is_told_of_when_a_move_is_given_up(scene: Scene) -> None:
    scene.worlds["C"].flow.write(b"d")
    assert scene.apply(MoveKind.PLANNED_FAILOVER, fence="true").unsafe
    with scene.switchover(MoveKind.PLANNED_FAILOVER) as move:
        undone = move.undo()
    assert [str(one.flow) for one in undone] == ["A->B", "A->C"]
    assert {note for one in undone for note in one.notes} == {
        "the fence command has run: start the producers and consumers on A again"
    }
    assert "no group was moved" in undo_text(undone, is_done=True)
    assert undo_document(undone[0]) == {
        "move": "planned failover",
        "flow": "A->B",
        "groups": [],
        "withdrawn_acls": [],
        "left": [],
        "notes": list(undone[0].notes),
    }


@pytest.mark.parametrize(
    ("site", "targets", "why"),
    [
        ("D", (), "no flow from D is enabled in these files; enabled: A->B, A->C, B->A"),
        ("A", ("B", "D"), "no flow from A to D is enabled"),
        ("B", ("C",), "no flow from B to C is enabled"),
    ],
)
def test_a_site_without_such_flows_is_an_error(scene: Scene, site: str, targets: tuple[str, ...], why: str) -> None:
    with pytest.raises(MoveError, match=why):
        Switchover(scene.settings, site, targets=targets, reach=scene.reach)


@pytest.mark.parametrize(("groups", "is_overtaken"), [((".*",), True), (("to-B",), False)])
def test_a_failover_that_did_not_end_is_no_part_of_the_next_one_once_it_was_led_back(
    scene: Scene, groups: tuple[str, ...], *, is_overtaken: bool
) -> None:
    """Else its fence would not run again, and groups would go by where they stood then."""
    options: dict[str, Any] = {"folder": scene.folder, "wait_seconds": 0.0, "reach": scene.reach}
    scene.worlds["B"].flow.target.group_calls.live["to-B"] = ("consumer",)
    fenced = {**options, "fence": f"echo stopped >> {scene.folder / 'fenced'}"}
    for _ in range(2):
        with Move(scene.settings, "A->B", MoveKind.FAILOVER, **fenced) as move:
            assert move.apply(move.plan()).unsafe
    assert (scene.folder / "fenced").read_text() == "stopped\n"
    scene.owners["B->A"] = "driver"
    for topic in ("mm2-offsets.B.internal", "mm2-offset-map.B.internal"):  # the way back has run
        scene.worlds["B"].flow.source.held[topic] = MemoryTopic([MemoryLog()], {})
    with Move(scene.settings, "A->B", MoveKind.FAILBACK, groups=groups, tell=scene.told.append, **options) as back:
        back.apply(replace(back.plan(), refusals=(), stages=(Stage.CHECK,)))
    told = [text for text in scene.told if "failover of A->B had not ended" in text]
    assert bool(told) is is_overtaken
    asides = list(scene.folder.glob("srm-failover-A-B.json.until-*"))
    assert [one.name in text for one in asides for text in told] == [True] * is_overtaken
    with Move(scene.settings, "A->B", MoveKind.FAILOVER, **fenced) as move:
        assert (Stage.FENCE in move.plan().stages) is is_overtaken
