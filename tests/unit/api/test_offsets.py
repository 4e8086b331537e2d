"""Other offsets over HTTP: what would be is said, typed, written as acts, and answered by the driver alone."""

from __future__ import annotations

import html
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.api.acting import Site
from tests.unit.api.forms_filled import Browser


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def planned(site: Site, status: int = 200, user: str = "ada", **body: object) -> dict[str, Any]:
    document: dict[str, Any] = site.post(
        "A/B/offsets/plan", user, status, **{"way": "rewind", "topic": "t", "by": 2, **body}
    )
    return document


def begin(site: Site, plan: str, status: int = 200, user: str = "ada", **other: object) -> Any:
    return site.post("A/B/offsets", user, status, **{"plan": plan, "confirm": "A->B", **other})


def paused(site: Site) -> Site:
    site.post("A/B/pause", topic="t")
    return site


def position(site: Site) -> int | None:
    (one,) = site.get("A/B/offsets")["partitions"]
    found: int | None = one["position"]
    return found


@contextmanager
def driven(site: Site) -> Iterator[None]:
    """A driver begins to run the flow again and again, as long as this lasts."""
    over = threading.Event()

    def drive() -> None:
        while not over.is_set():
            with site.world.run() as run:
                run.begin()
            over.wait(0.05)

    thread = threading.Thread(target=drive, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(20)


def test_where_partitions_stand(site: Site) -> None:
    found = site.get("A/B/offsets")
    assert (found["total"], found["source_down"]) == (1, None)
    assert found["partitions"] == [
        {
            "topic": "t",
            "partition": 0,
            "position": 3,
            "source_start": 0,
            "source_end": 3,
            "lag": 0,
            "paused": None,
            "waiting": None,
        }
    ]
    assert site.get("A/B/offsets?search=x")["total"] == site.get("A/B/offsets?partition=1")["total"] == 0
    site.world.flow.source.down = "no route"
    found = site.get("A/B/offsets")
    assert "no route" in found["source_down"]
    assert (found["partitions"][0]["position"], found["partitions"][0]["lag"]) == (3, None)


def test_a_driver_carries_out_what_was_planned(site: Site) -> None:
    plan = planned(paused(site))
    (one,) = plan["partitions"]
    assert (plan["is_change"], one["to"], one["copied_again"], one["records_there"]) == (True, 1, 2, 2)
    assert site.get("A/B/offsets")["partitions"][0]["waiting"] is None
    begun = begin(site, plan["id"], reason="once more")
    assert begun["partitions"] == [
        {
            "topic": "t",
            "partition": 0,
            "position": 3,
            "to": 1,
            "carried_out_by": None,
            "declined": None,
            "answered_at": None,
        }
    ]
    assert site.last("does", "result", "why", "reason") == (
        "set offsets",
        "begun",
        "rewind of 1 partition, 0 carried out",
        "once more",
    )
    (found,) = site.get("A/B/offsets")["partitions"]
    assert (found["position"], found["waiting"]) == (3, 1)
    assert "an act waits" in planned(site)["partitions"][0]["declined"]
    with site.world.run() as run:
        run.begin()
    assert position(site) == 1
    event = site.get("A/B/events")["events"][0]
    assert (event["kind"], event["who"], event["why"], event["is_waiting"]) == (
        "offsets",
        "ada@testclient",
        "once more",
        False,
    )
    assert event["answered_by"] is not None
    assert begin(site, plan["id"], 409)["kind"] == "no-plan"


def test_the_answer_of_a_driver_is_waited_for(site: Site) -> None:
    plan = planned(paused(site), way="skip", to="latest", by=None)
    assert (plan["is_change"], begin(site, plan["id"], 409)["kind"]) == (False, "refused-plan")
    plan = planned(site)
    site.control.means = replace(site.control.means, patience=20.0)
    with driven(site):
        (one,) = begin(site, plan["id"])["partitions"]
    assert (one["declined"], one["carried_out_by"] is not None, one["answered_at"] is not None) == (None, True, True)
    assert site.last("result", "why") == ("done", "rewind of 1 partition, 1 carried out")
    assert position(site) == 1


def test_what_cannot_be_done_is_said_with_its_reason(site: Site) -> None:
    plan = planned(site)
    assert "it is not paused" in plan["partitions"][0]["declined"]
    assert (plan["is_change"], begin(site, plan["id"], 409)["kind"]) == (False, "refused-plan")
    declined = planned(paused(site), to="99", by=None)["partitions"][0]["declined"]
    assert declined == "the source has offsets 0 to 3 now, and not 99"
    assert planned(site, 404, topic="none")["kind"] == "no-position"
    assert planned(site, 404, partition=7)["kind"] == "no-position"
    for wrong in ({"to": "1"}, {"by": None}, {"by": None, "to": "soon"}, {"by": None, "to": "9" * 30}):
        assert planned(site, 400, **wrong)["kind"] == "no-place"
    site.world.flow.source.down = "no route"
    assert planned(site, 503)["kind"] == "source-away"
    assert site.get("A/B/events")["total"] == 1


def test_a_plan_that_is_not_true_any_more_is_refused(site: Site) -> None:
    plan = planned(paused(site))
    site.post("A/B/resume", topic="t")
    assert begin(site, plan["id"], 409)["kind"] == "plan-changed"
    assert site.last("does", "result") == ("set offsets", "failed")
    plan = planned(paused(site))
    assert begin(site, plan["id"])["partitions"]
    plan = planned(site, user="olga")
    assert begin(site, plan["id"], 409)["kind"] == "no-plan", "it is of another user"
    assert position(site) == 3


@pytest.mark.parametrize("typed", ["", "A->C", "a->b"])
def test_it_takes_an_admin_who_types_the_name_of_the_flow(site: Site, typed: str) -> None:
    plan = planned(paused(site), user="ada")
    assert begin(site, plan["id"], 409, confirm=typed)["kind"] == "not-confirmed"
    assert begin(site, plan["id"], 403, "olga")["kind"] == "role"
    assert site.last("who", "does", "result") == ("olga", "set offsets", "refused")
    assert site.get("A/B/offsets")["partitions"][0]["waiting"] is None
    assert begin(site, plan["id"])["partitions"], "it can be begun yet"


def test_the_page_of_it(site: Site) -> None:
    ada = Browser(paused(site), "ada")
    assert "t-0" in ada.get("/offsets?search=t")
    assert "No position of such a topic" in ada.get("/offsets?search=none")
    page = ada.send("offsets/plan", way="rewind", topic="t", by="2", reason="once more")
    assert "t-0: from 3 back to 1: 2 offsets copied again; the target has 2 of them now" in page
    plan = html.unescape(page.partition('name="plan" value="')[2].partition('"')[0])
    assert "not-confirmed" not in ada.send("offsets", 409, plan=plan, confirm="x")
    assert "no driver has said yet" in ada.send("offsets", plan=plan, confirm="A->B", reason="once more")
    assert "to go on at 1" in ada.get("/offsets")
    assert "There is nothing to begin" in ada.send("offsets/plan", way="set", topic="t", to="3")
    olga = Browser(site, "olga")
    site.post("A/B/resume", topic="t")
    paused(site)
    assert "To begin it takes the role admin" in olga.send("offsets/plan", way="rewind", topic="t", by="1")
    assert "Plan other offsets" not in Browser(site, "victor").get("/offsets")
