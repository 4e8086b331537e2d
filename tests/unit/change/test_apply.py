"""A plan is applied while it is true, goes on where a run stopped, and a second run changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from srm_spark.change.report import report_path
from srm_spark.core.cluster import TopicSpec
from srm_spark.errors import PlanError, TargetUnavailable
from tests.unit.change.examples import COPY, DAY, READS, WEEK, add, drive, flow_of, held, planned, run_plan, write_plan
from tests.unit.memory_flow import MemoryFlow


def of_every_stage() -> MemoryFlow:
    """A flow with steps in each stage; two topics to create, two to grow, two to configure, two ACLs."""
    flow = flow_of()
    for topic in ("t2", "t3", "t4"):
        add(flow.source, topic, 2, retention_ms=DAY)
    flow.source.entries = {READS, READS._replace(name="t2")}
    for remote in ("A.t3", "A.t4"):
        add(flow.target, remote, 1, retention_ms=WEEK)
    return flow


@pytest.fixture
def flow() -> MemoryFlow:
    return of_every_stage()


@pytest.fixture
def path(flow: MemoryFlow, tmp_path: Path) -> Path:
    return write_plan(flow, tmp_path / "plan.json")


def as_driven() -> object:
    flow = of_every_stage()
    drive(flow)
    return held(flow)


def test_it_does_what_a_flow_does_and_then_nothing(flow: MemoryFlow, path: Path) -> None:
    said: list[str] = []
    report = run_plan(flow, path, said.append)
    assert said == [
        "A->B: internal topics: 8 steps",
        "A->B: remote topics: 2 steps",
        "A->B: partitions: 2 steps",
        "A->B: configs: 2 steps",
        "A->B: ACLs: 2 steps",
    ]
    assert (len(report.of("A->B").done), report.refused, report.of("A->B").is_ended) == (16, 0, True)
    after = held(flow)
    assert after == as_driven()
    said.clear()
    assert run_plan(flow, path, said.append).of("A->B").done == report.of("A->B").done
    assert (held(flow), said) == (after, [])


def without_acls(flow: MemoryFlow) -> None:
    flow.source.entries = set()


MOVES: dict[str, tuple[Callable[[MemoryFlow], object], str]] = {
    "a topic": (lambda flow: add(flow.source, "t5"), "not in the plan: create-topic on B: A.t5"),
    "partitions": (
        lambda flow: add(flow.source, "t2", 3, retention_ms=DAY),
        "topics t2 partitions: 2 in the plan, 3 now",
    ),
    "a remote topic": (
        lambda flow: add(flow.target, "A.t2", 2, retention_ms=DAY),
        "no longer to do: create-topic on B: A.t2: 2 partitions",
    ),
    "a config": (
        lambda flow: flow.source.held["t"].configs.update({"retention.ms": WEEK}),
        f"topics t configs retention.ms: {DAY} in the plan, {WEEK} now",
    ),
    "a config by hand": (
        lambda flow: flow.target.held["A.t3"].configs.update({"segment.bytes": "7"}),
        "topics t3 remote configs segment.bytes: nothing in the plan, 7 now",
    ),
    "an ACL": (
        without_acls,
        "ACLs wanted: ALLOW READ on topic A.t to User:ann from * is gone",
    ),
    "the settings": (
        lambda flow: flow.change(flow_of(replication_factor="2").settings),
        "not in the plan: create-topic on B: A.t: 1 partition, factor 2",
    ),
}


@pytest.mark.parametrize("moved", MOVES)
def test_where_the_world_has_moved_nothing_is_changed_and_every_difference_is_told(
    flow: MemoryFlow, path: Path, moved: str
) -> None:
    move, told = MOVES[moved]
    move(flow)
    before = held(flow)
    with pytest.raises(PlanError, match="nothing was changed") as caught:
        run_plan(flow, path)
    assert told in str(caught.value)
    assert (held(flow), report_path(path).exists()) == (before, False)


ASKED = {
    "internal topics": "create topics",
    "remote topics": "create topics",
    "partitions": "add partitions",
    "configs": "change configs",
    "ACLs": "add ACLs",
}


@pytest.mark.parametrize("is_done", [False, True], ids=["before the change", "behind it"])
@pytest.mark.parametrize("stage", ASKED)
def test_what_was_interrupted_is_finished_by_the_next_run(
    flow: MemoryFlow, path: Path, stage: str, is_done: bool
) -> None:
    """As Ctrl-C does it, once the first half of a stage is done or all of it, and nobody has written that down."""
    entered = ""

    def tell(said: str) -> None:
        nonlocal entered
        entered = said

    def happens(what: str) -> None:
        if f" {stage}:" in entered and what == ASKED[stage]:
            if is_done:
                half_of(flow, stage)
            raise KeyboardInterrupt

    flow.target.happens = happens
    with pytest.raises(KeyboardInterrupt):
        run_plan(flow, path, tell)
    flow.target.happens = lambda _: None
    report = json.loads(report_path(path).read_text())["flows"]["A->B"]
    assert (report["stage"] is None, report["ended"]) == (False, False)
    run_plan(flow, path)
    after = held(flow)
    assert after == as_driven()
    assert run_plan(flow, path).of("A->B").is_ended
    assert held(flow) == after


def half_of(flow: MemoryFlow, stage: str) -> None:
    """The cluster does one of two."""
    flow.target.happens = lambda _: None
    if stage == "internal topics":
        flow.target.create([TopicSpec(flow.settings.map_topic, 1, 1, {"cleanup.policy": "compact"})])
    elif stage == "remote topics":
        flow.target.create([TopicSpec("A.t", 1, 1, {"retention.ms": DAY})])
    elif stage == "partitions":
        flow.target.grow({"A.t3": 2})
    elif stage == "configs":
        flow.target.held["A.t3"].configs["retention.ms"] = DAY
    else:
        flow.target.add_acls([COPY])


def test_what_is_refused_is_told_the_others_go_on_and_the_next_run_finishes(flow: MemoryFlow, path: Path) -> None:
    flow.target.forbidden = dict.fromkeys(["A.t", "A.t3"], "not allowed")
    said: list[str] = []
    report = run_plan(flow, path, said.append)
    refused = report.of("A->B").refused
    assert [(str(step), why) for step, why in refused.items()] == [
        (f"A.t: 1 partition, factor 1, retention.ms={DAY}", "not allowed"),
        (f"A.t3: retention.ms {WEEK} -> {DAY}", "not allowed"),
        ("ALLOW READ on topic A.t to User:ann from *", "not allowed"),
    ]
    assert (len(report.of("A->B").done), report.refused) == (13, 3)
    assert held(flow)["ours"] == {remote: {"retention.ms": DAY} for remote in ("A.t2", "A.t4")}, (
        "what was refused is not"
    )
    assert "A->B: refused: ALLOW READ on topic A.t to User:ann from *: not allowed" in said
    assert run_plan(flow, path).refused == 3
    flow.target.forbidden = {}
    report = run_plan(flow, path)
    assert (len(report.of("A->B").done), report.refused) == (16, 0)
    assert held(flow) == as_driven()


def test_a_plan_that_was_begun_does_not_go_on_at_other_clusters(flow: MemoryFlow, path: Path) -> None:
    flow.target.forbidden = {"A.t3": "not allowed"}
    run_plan(flow, path)
    flow.target.forbidden, flow.target.bootstrap_servers = {}, "other:9092"
    with pytest.raises(PlanError, match=r"target: .* now"):
        run_plan(flow, path)


def test_what_was_refused_and_somebody_did_by_hand_is_no_difference(flow: MemoryFlow, path: Path) -> None:
    flow.target.forbidden = {"A.t3": "not allowed"}
    run_plan(flow, path)
    flow.target.forbidden = {}
    flow.target.held["A.t3"].configs["retention.ms"] = DAY
    assert run_plan(flow, path).refused == 0


def test_an_acl_that_was_refused_and_somebody_made_by_hand_is_his(flow: MemoryFlow, path: Path) -> None:
    flow.target.forbidden = {"A.t": "not allowed"}
    run_plan(flow, path)
    assert held(flow)["made"] == {COPY._replace(name="A.t2")}
    flow.target.forbidden = {}
    flow.target.add_acls([COPY])
    run_plan(flow, path)
    assert held(flow)["made"] == {COPY._replace(name="A.t2")}


def test_nothing_is_made_that_cannot_be_recorded(flow: MemoryFlow, path: Path) -> None:
    flow.target.forbidden = {flow.settings.map_topic: "not allowed"}
    report = run_plan(flow, path)
    assert (report.refused, flow.target.entries) == (5, set())
    flow.target.forbidden = {}
    assert run_plan(flow, path).refused == 0
    assert held(flow) == as_driven()


def test_a_cluster_that_dies_amid_a_stage_is_no_refusal(flow: MemoryFlow, path: Path) -> None:
    """A client's answers say that each step failed; a sign of life says whether it is the cluster that refuses."""

    def happens(what: str) -> None:
        if what == "change configs":
            flow.target.forbidden = dict.fromkeys(["A.t3", "A.t4"], "timed out")
        if what == "reach it":
            flow.target.down = "no broker answers"

    flow.target.happens = happens
    with pytest.raises(TargetUnavailable, match="cannot reach it: no broker answers"):
        run_plan(flow, path)
    flow.target.happens, flow.target.down, flow.target.forbidden = lambda _: None, None, {}
    flow.target.held["A.t4"].configs["retention.ms"] = DAY  # that answer was lost
    assert run_plan(flow, path).refused == 0
    assert held(flow) == as_driven()


def test_a_step_that_is_undone_between_two_runs_is_told(flow: MemoryFlow, path: Path) -> None:
    run_plan(flow, path)
    assert flow.target.entries is not None
    flow.target.entries.discard(COPY)
    with pytest.raises(PlanError, match=r"done before, and to do again: add-acl on B: ALLOW READ on topic A.t"):
        run_plan(flow, path)


def test_a_new_plan_begins_anew_whatever_a_report_of_before_says(flow: MemoryFlow, path: Path) -> None:
    run_plan(flow, path)
    add(flow.source, "t5")
    write_plan(flow, path)
    (step,) = run_plan(flow, path).of("A->B").done
    assert str(step) == "A.t5: 1 partition, factor 1"


def test_pruned_acls_are_taken_back_and_forgotten(flow: MemoryFlow, tmp_path: Path) -> None:
    drive(flow)
    flow.source.entries = set()
    path = write_plan(flow, tmp_path / "prune.json", prune=True)
    assert run_plan(flow, path).refused == 0
    assert (flow.target.entries, held(flow)["made"]) == (set(), set())
    assert planned(flow, prune=True).is_alike


def test_a_topic_that_was_deleted_and_made_anew_is_recorded_anew(flow: MemoryFlow, path: Path, tmp_path: Path) -> None:
    run_plan(flow, path)
    del flow.target.held["A.t"]
    run_plan(flow, write_plan(flow, tmp_path / "other.json"))
    del flow.source.held["t"]
    (orphan,) = planned(flow).world.orphans
    assert (orphan.remote, orphan.is_ours) == ("A.t", True)
