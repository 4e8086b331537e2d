"""Records that quarantine forgets, over HTTP and on its page: those that were read, by who types the flow's name."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.api.acting import Site, put_aside
from tests.unit.api.forms_filled import Browser


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    put_aside(made, "schlüssel".encode(), b"other")
    return made


def planned(site: Site, *topics: str) -> dict[str, Any]:
    document: dict[str, Any] = site.post("A/B/quarantine/drop/plan", topics=topics)
    return document


def forget(site: Site, plan: str, status: int = 200, user: str = "ada", **other: object) -> Any:
    return site.post("A/B/quarantine/drop", user, status, **{"plan": plan, "confirm": "A->B", **other})


def aside(site: Site) -> list[int]:
    """Offsets of what is in quarantine."""
    return [one["offset"] for one in site.get("A/B/quarantine")["records"]]


def test_what_was_planned_is_forgotten_once_while_the_flow_runs(site: Site) -> None:
    plan = planned(site, "t")
    assert [(one["source_topic"], one["offset"], one["kind"]) for one in plan["records"]] == [
        ("t", 3, "too-large"),
        ("t", 4, "too-large"),
    ]
    assert (plan["flow"], aside(site)) == ("A->B", [3, 4])
    site.world.flow.lease.owner = "host pid 7"
    assert forget(site, plan["id"], reason="of a test")["records"] == plan["records"]
    assert site.last("who", "does", "flow", "result", "why", "plan", "reason") == (
        "ada",
        "forget quarantine",
        "A->B",
        "done",
        "2 records forgotten: t-0 offset 3, t-0 offset 4",
        plan["id"],
        "of a test",
    )
    assert aside(site) == []
    site.get("A/B/quarantine/record?topic=t&partition=0&offset=3", "olga", 404)
    assert forget(site, plan["id"], 409)["kind"] == "no-plan"
    assert "schl" not in site.audit_path.read_text()


def test_what_was_not_read_stays(site: Site) -> None:
    plan = planned(site)
    flow = site.world.flow
    flow.write(b"later")
    flow.park(5)
    assert aside(site) == [3, 4, 5]
    forget(site, plan["id"])
    assert aside(site) == [5]


def test_topics_are_named_and_there_has_to_be_something(site: Site) -> None:
    assert site.post("A/B/quarantine/drop/plan", "olga", 400, topics=[".*"])["kind"] == "no-topic"
    plan = planned(site, "other")
    assert (plan["records"], forget(site, plan["id"], 409)["kind"]) == ([], "refused-plan")
    assert aside(site) == [3, 4]


def test_a_plan_of_which_a_record_was_replayed_forgets_nothing(site: Site) -> None:
    plan, other = planned(site), planned(site)
    site.post("A/B/quarantine/replay", "olga", topics=["t"])
    flow = site.world.flow
    flow.write(b"later")
    flow.park(5)
    refused = forget(site, plan["id"], 409)
    assert (refused["kind"], "2 records of it (t-0 offset 3, t-0 offset 4)" in refused["detail"]) == (
        "plan-changed",
        True,
    )
    assert site.last("does", "result") == ("forget quarantine", "failed")
    assert aside(site) == [5]
    site.world.flow.target.down = "no route"
    assert forget(site, other["id"], 503)["kind"] == "target-away"


@pytest.mark.parametrize("typed", ["", "a->b", "A->B ", "B->A"])
def test_it_takes_an_admin_who_types_the_name_of_the_flow(site: Site, typed: str) -> None:
    plan = planned(site)
    assert forget(site, plan["id"], 409, confirm=typed)["kind"] == "not-confirmed"
    assert forget(site, plan["id"], 403, "olga")["kind"] == "role"
    assert site.last("who", "does", "result") == ("olga", "forget quarantine", "refused")
    assert forget(site, plan["id"], 409, "abe")["kind"] == "no-plan", "it is of another user"
    assert site.post("A/B/quarantine/drop/plan", "victor", 403)["kind"] == "role"
    assert aside(site) == [3, 4]
    forget(site, plan["id"])


def test_the_page_of_it(site: Site) -> None:
    ada = Browser(site, "ada")
    assert "Plan to forget" in ada.get("/quarantine")
    page = ada.send("quarantine/drop/plan", topic="t", reason="of a test")
    assert "t-0 offset 3, " in page
    plan = _hidden(page, "plan")
    assert "nothing was changed" in ada.send("quarantine/drop", 409, plan=plan, confirm="yes")
    assert aside(site) == [3, 4]
    done = ada.send("quarantine/drop", plan=plan, confirm="A->B", reason=_hidden(page, "reason"))
    assert "Forgotten: 2 records" in done
    assert site.last("reason") == ("of a test",)
    assert "Nothing is in quarantine" in ada.get("/quarantine")
    assert "There is nothing to forget" in ada.send("quarantine/drop/plan")


def test_an_operator_reads_the_plan_and_a_viewer_has_no_form(site: Site) -> None:
    page = Browser(site, "olga").send("quarantine/drop/plan")
    assert "t-0 offset 4" in page
    assert "To begin it takes the role admin; here it is operator" in page
    assert 'name="plan"' not in page
    assert "<form" not in Browser(site, "victor").get("/quarantine")


def _hidden(page: str, name: str) -> str:
    (value,) = re.findall(rf'type="hidden" name="{name}" value="([^"]*)"', page)
    return html.unescape(value)
