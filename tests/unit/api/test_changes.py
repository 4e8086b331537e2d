"""Plan and apply over HTTP: what was read is done, or nothing is; and what was interrupted goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from srm_spark.change.document import load_plan
from tests.unit.api.acting import Site

OLD = "0" * 64


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.world.topic("orders", b"1")
    return made


def planned(site: Site) -> dict[str, Any]:
    document: dict[str, Any] = site.post("A/B/plan", "olga")
    return document


def apply(site: Site, plan: str, status: int = 200, **other: object) -> Any:
    return site.post("A/B/apply", "abe", status, **{"plan": plan, "confirm": "A->B", **other})


def created(document: dict[str, Any]) -> list[str]:
    return [one["topic"] for one in document["steps"] if one["does"] == "create-topic"]


def test_what_was_planned_is_done_once(site: Site, tmp_path: Path) -> None:
    plan = planned(site)
    assert (plan["flow"], plan["prune"], created(plan)) == ("A->B", False, ["A.orders"])
    assert "matches the topic filter" in plan["steps"][-1]["reason"]
    assert "A.orders" not in site.world.flow.target.held
    assert list(tmp_path.glob("plan-*")) == []
    assert planned(site) == plan
    done = apply(site, plan["id"])
    assert (done["is_changed"], done["refused"], done["id"]) == (True, [], plan["id"])
    assert done["done"] == plan["steps"]
    assert done["told"][-1] == "A->B: remote topics: 1 step"
    assert "A.orders" in site.world.flow.target.held
    assert site.last("who", "does", "flow", "result", "why", "plan") == (
        "abe",
        "apply a plan",
        "A->B",
        "done",
        f"{len(plan['steps'])} steps done",
        plan["id"],
    )
    assert load_plan(tmp_path / f"plan-{plan['id']}.json").id == plan["id"]  # srm-control apply can have it
    again = apply(site, plan["id"])
    assert (again["is_changed"], again["done"], again["told"]) == (False, done["done"], [])
    assert site.last("result", "why") == ("declined", "nothing is left to do")
    assert planned(site)["steps"] == []


def test_it_is_done_again_where_all_is_as_it_was_when_it_was_planned(site: Site) -> None:
    plan = planned(site)
    apply(site, plan["id"])
    again = planned(site)
    site.world.topic("more", b"1")
    apply(site, planned(site)["id"])
    assert again["id"] != plan["id"]
    site.world.flow.target.delete("A.more")
    undone = planned(site)
    assert created(undone) == ["A.more"]
    assert apply(site, undone["id"])["is_changed"]
    site.world.flow.target.delete("A.more")
    assert planned(site)["id"] == undone["id"]
    assert apply(site, undone["id"])["is_changed"]
    assert "A.more" in site.world.flow.target.held


def test_a_plan_that_has_changed_is_refused(site: Site) -> None:
    plan = planned(site)
    site.world.topic("late", b"1")
    refused = apply(site, plan["id"], 409)
    assert (refused["kind"], "plan again" in refused["detail"]) == ("plan-changed", True)
    assert site.last("does", "result") == ("apply a plan", "failed")
    assert apply(site, OLD, 409)["kind"] == "plan-changed"
    assert apply(site, planned(site)["id"], 409, prune=True)["kind"] == "plan-changed"
    assert not {"A.orders", "A.late"} & site.world.flow.target.held.keys()


@pytest.mark.parametrize("typed", ["", "a->b", "A->B ", "B->A"])
def test_it_takes_the_name_of_the_flow(site: Site, typed: str) -> None:
    assert apply(site, planned(site)["id"], 409, confirm=typed)["kind"] == "not-confirmed"
    assert "A.orders" not in site.world.flow.target.held


@pytest.mark.parametrize("plan", ["../../etc/passwd", "", "x" * 64, "0" * 65, "A" * 64])
def test_an_id_is_a_digest_and_no_path(site: Site, plan: str) -> None:
    assert "plan" in apply(site, plan, 400)["detail"]


def test_who_plans_is_an_operator_and_who_applies_an_admin(site: Site) -> None:
    plan = planned(site)
    assert site.post("A/B/apply", "olga", 403, plan=plan["id"], confirm="A->B")["kind"] == "role"
    assert site.last("who", "does", "result") == ("olga", "apply a plan", "refused")
    assert site.post("A/B/plan", "victor", 403)["kind"] == "role"
    assert "A.orders" not in site.world.flow.target.held


def test_what_a_cluster_refuses_is_told_and_tried_again(site: Site) -> None:
    target = site.world.flow.target
    plan = planned(site)
    create, target.create = target.create, lambda specs: dict.fromkeys((one.name for one in specs), "no room")  # type: ignore[method-assign]
    done = apply(site, plan["id"])
    assert [(one["step"]["topic"], one["why"]) for one in done["refused"]] == [
        (one["topic"], "no room") for one in plan["steps"]
    ]
    assert site.last("result", "why") == ("declined", f"0 steps done, {len(plan['steps'])} refused")
    target.create = create  # type: ignore[method-assign]
    assert apply(site, plan["id"])["refused"] == []
    assert "A.orders" in target.held


def test_what_was_interrupted_goes_on_even_in_another_process(site: Site, tmp_path: Path) -> None:
    target = site.world.flow.target
    plan = planned(site)
    create = target.create

    def create_and_die(specs: Any) -> Any:
        create(specs)
        target.down = "no route"
        raise target.refused("create", "no route")

    target.create = create_and_die  # type: ignore[method-assign]
    assert apply(site, plan["id"], 503)["kind"] == "target-away"
    assert site.last("result") == ("failed",)
    report = json.loads((tmp_path / f"plan-{plan['id']}.report.json").read_text())
    assert not report["flows"]["A->B"]["ended"]
    target.create, target.down = create, None  # type: ignore[method-assign]
    assert site.post("B/A/apply", "ada", 409, plan=plan["id"], confirm="B->A")["kind"] == "plan-changed"
    done = apply(site, plan["id"])
    assert (done["is_changed"], done["done"]) == (True, plan["steps"])
    assert planned(site)["steps"] == []


def test_one_plan_is_applied_at_a_time(site: Site) -> None:
    plan = planned(site)
    with site.control.applying:
        assert apply(site, plan["id"], 409)["kind"] == "another-plan"
    assert apply(site, plan["id"])["is_changed"]
