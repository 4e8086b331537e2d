"""What the service does to flows: the acts of srm-control, for who may, and recorded whatever comes of them."""

from __future__ import annotations

import json
import os
import re
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.api.control import Control
from srm_spark.api.moves import recovery_of
from srm_spark.core.cluster import Committed, ControlRecord
from srm_spark.core.losses import loss_key, loss_value
from srm_spark.core.model import Flow, Loss, LossCause, OffsetRange
from srm_spark.errors import ProgressFailed
from srm_spark.flow.groups.consumer_groups import ConsumerGroups
from srm_spark.look.alerting import Recovery
from tests.awaiting import await_until
from tests.unit.api.acting import USERS, Site, put_aside
from tests.unit.api.logins import JSON, login, users_of
from tests.unit.memory_flow import HERE

SLOW = r"(a+)+b"
CHANGES: dict[str, dict[str, Any]] = {
    "pause": {},
    "resume": {"topic": "t"},
    "restart": {},
    "lists/topics": {"add": ["x"]},
    "lists/groups": {"remove_deny": ["x"]},
    "quarantine/replay": {},
    "quarantine/drop/plan": {},
    "quarantine/drop": {"plan": "x", "confirm": "A->B"},
    "moves/plan": {"kind": "failover"},
    "moves": {"plan": "x", "confirm": "A->B"},
    "plan": {},
    "apply": {"plan": "0" * 64, "confirm": "A->B"},
    "offsets/plan": {"way": "rewind", "topic": "t", "by": 1},
    "offsets": {"plan": "x", "confirm": "A->B"},
}
"""Everything that changes something, with a body that is right."""
LOOKS = (
    "group-positions",
    "losses",
    "quarantine",
    "quarantine/record?topic=t&partition=0&offset=1",
    "explain/topic?name=t",
    "events",
    "pauses",
    "lists/topics",
    "offsets?search=t",
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_every_change_is_tested_here(site: Site) -> None:
    paths = site.app.openapi()["paths"]
    changes = {path for path, of in paths.items() if set(of) - {"get"}}
    prefix = "/v3/flows/{source}/{target}/"
    assert changes == {prefix + path.replace("topics", "{kind}") for path in CHANGES if path != "lists/groups"}


def test_a_flow_is_paused_and_resumed_once(site: Site) -> None:
    done = site.post("A/B/pause", "olga", topic="t", reason="maintenance")
    assert (done["is_changed"], done["declined"], done["taken_by"]) == (True, None, None)
    assert site.last("who", "from", "does", "flow", "result", "scope", "reason") == (
        "olga",
        "testclient",
        "pause",
        "A->B",
        "done",
        "t",
        "maintenance",
    )
    (pause,) = site.get("A/B/pauses")["pauses"]
    assert (pause["topic"], pause["held"]) == ("t", "paused by olga@testclient: maintenance")
    with site.world.run() as run:
        run.begin()
        assert site.world.held == {"t": "paused by olga@testclient: maintenance"}
    again = site.post("A/B/pause", "olga", topic="t")
    assert (again["is_changed"], "already" in again["remarks"][0]) == (False, True)
    assert site.post("A/B/resume", "olga", topic="t")["is_changed"]
    declined = site.post("A/B/resume", "olga", topic="t")
    assert declined["declined"] == "t is not paused"
    assert site.last("does", "result", "why") == ("resume", "declined", "t is not paused")
    events = site.get("A/B/events")["events"]
    assert [(one["kind"], one["who"], one["scope"]) for one in events] == [
        ("resume", "olga@testclient", "t"),
        ("pause", "olga@testclient", "t"),
    ]


def test_lists_are_changed_by_the_engine_of_srm_control(site: Site) -> None:
    tried = site.post("A/B/lists/topics", "olga", add_deny=["t"], dry_run=True)
    assert (tried["is_changed"], tried["deny"]) == (False, ["t"])
    assert [one["name"] for one in tried["effect"]["stops"]] == ["t"]
    assert site.get("A/B/lists/topics")["deny"] == []
    done = site.post("A/B/lists/topics", "olga", add=["orders", "pay.*"], add_deny=["t"], reason="it moves")
    assert (done["is_changed"], done["allow"], done["said"]) == (True, ["orders", "pay.*"], "+orders,pay.* deny +t")
    assert "the file takes it already" in done["remarks"][0]
    assert site.last("does", "result", "add", "add_deny", "reason") == (
        "change lists of topics",
        "done",
        "orders, pay.*",
        "t",
        "it moves",
    )
    lists = site.get("A/B/lists/topics")
    assert [(one["entry"], one["who"], one["why"]) for one in lists["deny"]] == [("t", "olga@testclient", "it moves")]
    assert (lists["include"], site.get("A/B/lists/groups")["allow"]) == ([".*"], [])
    partly = site.post("A/B/lists/topics", "olga", remove=["nothing", "orders"])
    assert (partly["is_changed"], len(partly["declined"])) == (True, 1)
    assert site.last("result") == ("done",)
    site.post("A/B/lists/topics", "olga", remove=["nothing"])
    assert site.last("result") == ("declined",)
    assert site.get("A/B/explain/topic?name=t")[0]["because"] == "denied"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({}, "no-change"),
        ({"add": ["("]}, "no-pattern"),
        ({"add": ["a"], "remove": ["a"]}, "no-pattern"),
        ({"add": ["x" * 10_001]}, "no-pattern"),
        ({"add": ["a\nb"]}, "no-pattern"),
        ({"add": [SLOW]}, "other"),
        ({"add": [""]}, None),
        ({"add": "orders"}, None),
        ({"add": ["x"] * 1001}, None),
        ({"add": ["x"], "reason": "a\nb"}, None),
        ({"add": ["x"], "colour": "red"}, None),
    ],
)
def test_a_change_that_makes_no_sense_changes_nothing(site: Site, body: dict[str, Any], kind: str | None) -> None:
    assert site.post("A/B/lists/topics", "olga", 400, **body)["kind"] == kind
    assert site.get("A/B/lists/topics")["allow"] == []
    assert site.get("A/B/events")["total"] == 0


def test_groups_are_shown_with_what_keeps_them(site: Site) -> None:
    found = site.get("A/B/group-positions")
    (row,) = found["positions"]
    assert (row["group"], row["on_source"], row["goes_on_at"], row["on_target"]) == ("billing", 2, 2, None)
    assert site.get("A/B/group-positions?search=none")["total"] == 0
    site.world.flow.target.group_calls.live["billing"] = ("somebody",)
    assert "member" in site.get("A/B/group-positions")["positions"][0]["sync"]
    site.post("A/B/lists/groups", "olga", add_deny=["billing"])
    found = site.get("A/B/group-positions")
    assert (found["positions"], [one["group"] for one in found["not_taken"]]) == ([], ["billing"])


def test_records_in_quarantine_are_listed_looked_at_and_replayed(site: Site) -> None:
    (offset,) = put_aside(site, "schlüssel".encode())
    (entry,) = site.get("A/B/quarantine")["records"]
    assert (entry["source_topic"], entry["offset"], entry["kind"]) == ("t", offset, "too-large")
    assert site.get("A/B/quarantine?search=x")["total"] == 0
    where = f"A/B/quarantine/record?topic=t&partition=0&offset={offset}"
    (record,) = site.get(where, "olga")
    assert (record["key"]["text"], record["value"]["text"], record["headers"]) == ("k", "schlüssel", [])
    assert site.get(where, "victor", 403)["kind"] == "role"
    assert site.last("who", "does", "result") == ("victor", "look at a record in quarantine", "refused")
    assert site.get(where.replace(f"offset={offset}", "offset=1"), "olga", 404)["kind"] == "not-in-quarantine"
    site.world.flow.lease.owner = "host pid 7"
    refused = site.post("A/B/quarantine/replay", "olga", 409)
    assert refused["kind"] == "lease-held"
    assert site.last("does", "result") == ("replay quarantine", "failed")
    site.world.flow.lease.owner = None
    assert site.post("A/B/quarantine/replay", "olga", dry_run=True)["records"][0]["target_offset"] is None
    assert site.post("A/B/quarantine/replay", "olga", topics=["other"])["records"] == []
    assert site.last("result", "why") == ("declined", "nothing is in quarantine")
    (done,) = site.post("A/B/quarantine/replay", "olga", topics=["t"])["records"]
    assert (done["remote_topic"], done["target_offset"], done["refusal"]) == ("A.t", 3, None)
    assert site.last("result", "why") == ("done", "1 written")
    assert site.get("A/B/quarantine")["total"] == 0
    assert "schl" not in site.audit_path.read_text()
    assert site.post("A/B/quarantine/replay", "olga", 400, topics=[".*"])["kind"] == "no-topic"


def moved(site: Site, flow: str = "A/B") -> Any:
    """The newest move, once it is over."""
    await_until(lambda: site.get(f"{flow}/moves")[0]["is_over"], 20, "the move ends")
    return site.get(f"{flow}/moves")[0]


def test_a_failover_that_took_longer_than_its_goal_is_shown_and_an_alert(tmp_path: Path) -> None:
    site = Site(tmp_path, more="rto.goal.seconds = 60\n")
    assert "goal 60 s" in site.client.get("/flows/A/B", headers=login("ada:ada")).text
    assert recovery_of(site.control, Flow("A", "B")) is None
    took = {"move": "failover", "flow": "A->B", "unsafe": [], "rto_goal_seconds": 60}
    took |= {"began": "2026-11-01T00:00:00Z", "ended": "2026-11-01T00:01:30Z"}
    (tmp_path / "srm-failover-A-B-1.json").write_text(json.dumps(took))
    assert "longer than the goal 60 s" in site.client.get("/flows/A/B", headers=login("ada:ada")).text
    assert "longer than the goal of 60 s" in site.client.get("/flows/A/B/moves", headers=login("ada:ada")).text
    assert [(one["seconds"], one["rto_goal_seconds"]) for one in site.get("A/B/moves/past")] == [(90.0, 60)]
    assert recovery_of(site.control, Flow("A", "B")) == Recovery(90.0, 60)
    assert recovery_of(site.control, Flow("B", "A")) is None


def test_a_group_is_failed_over_by_who_has_read_the_plan_and_types_the_flow(site: Site, tmp_path: Path) -> None:
    plan = site.post("A/B/moves/plan", kind="failover", groups=["billing"])
    assert ([one["group"] for one in plan["groups"]], plan["refusals"]) == (["billing"], [])
    assert [one["stage"] for one in plan["stages"]] == ["commit", "check"]
    assert site.world.flow.target.group_calls.committed == {}
    for typed in ("", "A->C", "a->b", "A->B "):
        assert site.post("A/B/moves", "ada", 409, plan=plan["id"], confirm=typed)["kind"] == "not-confirmed"
    assert site.post("A/B/moves", "ada", 409, plan="guessed", confirm="A->B")["kind"] == "no-plan"
    assert site.world.flow.target.group_calls.committed == {}
    before = site.client.get("/flows/A/B", headers=login("ada:ada"))
    assert "no statement of a failover is kept" in before.text
    assert site.get("A/B/moves/past") == []
    begun = site.post("A/B/moves", "ada", 202, plan=plan["id"], confirm="A->B")
    done = moved(site)
    assert 0 <= done["seconds"] < 20
    polled = {**login("ada:ada"), "If-None-Match": before.headers["etag"]}
    page = site.client.get("/flows/A/B", headers=polled).text
    assert re.search(r'<dd><a href="/flows/A/B/moves">(less than 1|[\d.]+) s</a>', page)
    (past,) = site.get("A/B/moves/past")
    assert (past["kind"], past["unsafe"], 0 <= past["seconds"] < 20) == ("failover", [], True)
    assert past["rto_goal_seconds"] is None
    moves = site.client.get("/flows/A/B/moves", headers=login("victor:victor")).text
    assert "everything moved" in moves
    assert (done["id"], done["failure"], done["statement"]["unsafe"]) == (begun["id"], None, [])
    assert "set the offsets of the groups on the target" in done["told"]
    assert site.get(f"A/B/moves/{begun['id']}") == done
    (offset,) = site.world.flow.target.group_calls.committed["billing"].values()
    assert offset.offset == 2
    assert [(one["does"], one["result"]) for one in site.audit[-2:]] == [("move groups", "begun"), ("failover", "done")]
    assert len(list(tmp_path.glob("srm-failover-A-B-*.json"))) == 1
    again = site.post("A/B/moves", "ada", 409, plan=plan["id"], confirm="A->B")
    assert again["kind"] == "no-plan", "a plan is used once"
    site.get("A/B/moves/none", status=404)


def test_a_plan_is_of_its_time_its_user_and_its_flow(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = site.post("A/B/moves/plan", "ada", kind="failover")["id"]
    assert site.post("A/B/moves", "abe", 409, plan=plan, confirm="A->B")["kind"] == "no-plan"
    assert site.post("B/A/moves", "ada", 409, plan=plan, confirm="B->A")["kind"] == "no-plan"
    monkeypatch.setattr(site.app.state.moves.plans, "monotonic", lambda: 1e12)
    assert site.post("A/B/moves", "ada", 409, plan=plan, confirm="A->B")["kind"] == "no-plan"
    assert site.world.flow.target.group_calls.committed == {}


def test_a_move_that_its_plan_refuses_is_not_begun(site: Site) -> None:
    plan = site.post("A/B/moves/plan", kind="planned-failover")
    assert "nobody runs the flow" in plan["refusals"][0]
    assert site.post("A/B/moves", "ada", 409, plan=plan["id"], confirm="A->B")["kind"] == "refused-plan"
    assert site.post("A/B/moves/plan", "ada", 400, kind="failover", groups=[SLOW])["kind"] == "no-pattern"


@pytest.mark.parametrize("goes", ["before the plan", "behind the plan", "amid the move"])
def test_a_source_that_is_gone_is_failed_over_from(site: Site, goes: str) -> None:
    flow = site.world.flow
    flow.start()
    ConsumerGroups(flow.clusters, flow.recorded.maps).round()  # what is known of groups once their cluster is gone
    assert flow.target.group_calls.committed["billing"]
    if goes == "before the plan":
        flow.source.down = "no route"
    plan = site.post("A/B/moves/plan", kind="failover")
    assert ([one["group"] for one in plan["groups"]], plan["refusals"]) == (["billing"], [])
    flow.target.group_calls.committed.clear()
    if goes == "behind the plan":
        flow.source.down = "no route"
    elif goes == "amid the move":

        def dies(what: str) -> None:
            if "list groups" in what and len(asked) > 1:
                flow.source.down = "no route"
            asked.append(what)

        asked: list[str] = []
        flow.source.happens = dies
    site.post("A/B/moves", "ada", 202, plan=plan["id"], confirm="A->B")
    done = moved(site)
    assert (done["failure"], flow.source.down) == (None, "no route")
    (offset,) = flow.target.group_calls.committed["billing"].values()
    assert offset.offset == 2


def test_who_is_denied_while_it_is_planned_is_not_moved(site: Site) -> None:
    """Lists are no part of the file: whoever carries a plan out has to look into them, too."""
    flow = site.world.flow
    flow.source.group_calls.committed["legacy"] = {HERE: Committed(1)}
    site.post("A/B/lists/groups", "olga", add_deny=["legacy"])
    plan = site.post("A/B/moves/plan", kind="failover")
    assert [one["group"] for one in plan["groups"]] == ["billing"]
    site.post("A/B/moves", "ada", 202, plan=plan["id"], confirm="A->B")
    assert moved(site)["statement"]["unsafe"] == []
    assert set(flow.target.group_calls.committed) == {"billing"}


def test_a_group_that_the_plan_did_not_show_is_not_moved_by_it(site: Site) -> None:
    flow = site.world.flow
    plan = site.post("A/B/moves/plan", kind="failover")
    flow.source.group_calls.committed["late"] = {HERE: Committed(1)}
    site.post("A/B/moves", "ada", 202, plan=plan["id"], confirm="A->B")
    why = "the plan would be another one now, make it again: groups that it did not show: late"
    assert moved(site)["statement"]["unsafe"] == [why]
    assert site.last("does", "result", "why") == ("failover", "declined", why)
    assert flow.target.group_calls.committed == {}
    plan = site.post("A/B/moves/plan", kind="failover")
    site.post("A/B/moves", "ada", 202, plan=plan["id"], confirm="A->B")
    assert moved(site)["statement"]["unsafe"] == []
    assert set(flow.target.group_calls.committed) == {"billing", "late"}


def test_moves_of_a_flow_come_one_after_the_other(site: Site) -> None:
    plans = [site.post("A/B/moves/plan", kind="failover")["id"] for _ in range(2)]
    goes_on = threading.Event()
    site.world.flow.target.happens = lambda _: goes_on.wait(20)
    site.post("A/B/moves", "ada", 202, plan=plans[0], confirm="A->B")
    try:
        refused = site.post("A/B/moves", "ada", 409, plan=plans[1], confirm="A->B")
        assert (refused["kind"], "ada@testclient has begun" in refused["detail"]) == ("another-move", True)
    finally:
        goes_on.set()
    assert moved(site)["failure"] is None


def test_a_move_that_has_no_thread_is_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    plans = [site.post("A/B/moves/plan", kind="failover")["id"] for _ in range(2)]
    with monkeypatch.context() as patched:
        patched.setattr("srm_spark.api.begun.threading.Thread", refused)
        headers = {**login("ada:ada"), **JSON}
        answer = site.client.post("/v3/flows/A/B/moves", json={"plan": plans[0], "confirm": "A->B"}, headers=headers)
        assert answer.status_code == 500
    assert site.get("A/B/moves") == []
    site.post("A/B/moves", "ada", 202, plan=plans[1], confirm="A->B")
    assert moved(site)["failure"] is None


def test_a_move_that_fails_says_why(site: Site) -> None:
    plan = site.post("A/B/moves/plan", kind="failover")["id"]
    site.world.flow.target.down = "no route"
    site.post("A/B/moves", "ada", 202, plan=plan, confirm="A->B")
    done = moved(site)
    assert (done["failure_kind"], "no route" in done["failure"]) == ("target-away", True)
    assert site.last("does", "result") == ("failover", "failed")


@pytest.mark.parametrize("path", CHANGES)
def test_no_viewer_changes_anything(site: Site, path: str) -> None:
    for user, flow in (("victor", "A/B"), ("abe", "B/A")):
        refused = site.post(f"{flow}/{path}", user, 403, **CHANGES[path])
        assert refused["kind"] == "role"
        assert "viewer" in refused["detail"]
        assert site.last("who", "flow", "result") == (user, flow.replace("/", "->"), "refused")
    assert site.get("A/B/events")["total"] == 0
    assert site.get("A/B/moves") == []


def test_an_operator_moves_no_groups_and_a_failback_takes_both_flows(site: Site) -> None:
    plan = site.post("A/B/moves/plan", "olga", kind="failover")["id"]
    assert site.post("A/B/moves", "olga", 403, plan=plan, confirm="A->B")["kind"] == "role"
    assert site.last("who", "does", "result") == ("olga", "move groups", "refused")
    refused = site.post("A/B/moves/plan", "abe", 403, kind="failback")
    assert "failback of A->B over it of B->A is for the role operator" in refused["detail"]
    assert site.world.flow.target.group_calls.committed == {}


@pytest.mark.parametrize("path", CHANGES)
def test_a_login_alone_changes_nothing(site: Site, path: str) -> None:
    """A browser sends it along with whatever page made it ask."""
    where, body = f"/v3/flows/A/B/{path}", CHANGES[path]
    for headers in ({}, {"content-type": "text/plain"}, {**JSON, "sec-fetch-site": "cross-site"}):
        answer = site.client.post(where, json=body, headers={**login("ada:ada"), **headers})
        assert answer.status_code == 403
    form = site.client.post(where, data={"reason": "x"}, headers=login("ada:ada"))
    assert form.status_code == 403
    assert site.get("A/B/events")["total"] == 0


@pytest.mark.parametrize("path", [*LOOKS, *CHANGES])
def test_without_a_login_nobody_looks_and_nobody_acts(site: Site, path: str) -> None:
    where = f"/v3/flows/A/B/{path}"
    assert site.client.get(where).status_code == 401
    assert site.client.post(where, json=CHANGES.get(path, {}), headers=JSON).status_code == 401


@pytest.mark.parametrize(
    "path",
    ["A/B%2F..%2FA/pauses", "A/../../etc/pauses", "A/B%00/pauses", "A/%2e%2e/pauses", "A/C/pauses", "%3Cb%3E/B/pauses"],
)
def test_a_path_leads_to_flows_only(site: Site, path: str) -> None:
    answer = site.client.get(f"/v3/flows/{path}", headers=login("ada:ada"))
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_large_bodies_and_bodies_without_a_length_are_refused(site: Site) -> None:
    headers, where = {**login("ada:ada"), **JSON, "content-type": "application/json"}, "/v3/flows/A/B/pause"
    large = b'{"reason": "' + b"x" * 70_000 + b'"}'
    assert site.client.post(where, content=large, headers=headers).status_code == 413
    assert site.client.post(where, content=iter([b"{}"]), headers=headers).status_code == 413
    both = {**headers, "content-length": "2", "transfer-encoding": "chunked"}
    assert site.client.post(where, content=b"{}", headers=both).status_code == 413
    for bad in (b"", b"[]", b"{", b'{"topic": ' + b"[" * 20_000, b"\xff"):
        assert site.client.post(where, content=bad, headers=headers).status_code == 400, bad[:20]
    assert site.get("A/B/events")["total"] == 0


def test_a_cluster_that_does_not_answer_is_a_sentence_with_its_kind(site: Site) -> None:
    site.world.flow.target.down = "no route"
    for path in ("losses", "quarantine", "events", "lists/topics", "pauses", "group-positions"):
        problem = site.get(f"A/B/{path}", status=503)
        assert (problem["kind"], "no route" in problem["detail"]) == ("target-away", True), path
    assert site.post("A/B/pause", "olga", 503)["kind"] == "target-away"
    assert site.last("does", "result") == ("pause", "failed")


def test_nothing_is_done_that_cannot_be_recorded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.control.audit, "why_not", lambda: "no space left")
    assert site.post("A/B/pause", "olga", 503)["kind"] == "no-record"
    assert site.get("A/B/events")["total"] == 0


def test_too_many_at_once_are_told_to_come_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.control, "patience_seconds", 0.0)
    with _all_places(site.control):
        assert site.get("A/B/losses", status=503)["kind"] == "busy"
        assert site.client.get("/v3/flows", headers=login("ada:ada")).status_code == 200
    assert site.get("A/B/losses")["total"] == 0


def _all_places(control: Control) -> ExitStack:
    stack = ExitStack()
    for _ in range(8):
        stack.enter_context(control.place())
    return stack


def test_without_the_settings_of_clusters_it_says_so(site: Site) -> None:
    bare = TestClient(make_app(site.filled.board, users_of(**USERS)), base_url="http://localhost")
    for path, body in CHANGES.items():
        answer = bare.post(f"/v3/flows/A/B/{path}", json=body, headers={**login("ada:ada"), **JSON})
        if path not in ("moves", "offsets", "quarantine/drop"):  # of which there can be no plan
            assert (answer.status_code, answer.json()["kind"]) == (409, "no-settings"), path
    assert site.post("C/B/pause", "ada", 409)["kind"] == "no-settings"  # told of, and not of these files


def test_losses_are_listed(site: Site) -> None:
    assert site.get("A/B/losses")["losses"] == []
    loss = Loss(OffsetRange(5, 10), LossCause.DELETED)
    flow = site.world.flow
    record = ControlRecord(
        flow.settings.map_topic, loss_key(HERE, "id", loss), loss_value(loss, 1_700_000), partition=0
    )
    flow.target.writer("loss", ProgressFailed).write([record])
    (found,) = site.get("A/B/losses")["losses"]
    assert (found["source_topic"], found["cause"], found["source"]) == ("t", "deleted", {"start": 5, "end": 10})
    assert (found["target"], found["found_at"]) == (None, "1970-01-01T00:28:20+00:00")
    assert site.get("A/B/losses?offset=1")["losses"] == []


def test_on_a_full_disk_nothing_is_changed_that_could_not_be_recorded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening the file, and writing nothing into it, succeeds there."""
    real = os.statvfs

    def full(path: str) -> os.statvfs_result:
        return os.statvfs_result((*real(path)[:4], 10, *real(path)[5:]))

    before = site.audit_path.read_text()
    monkeypatch.setattr("srm_spark.api.audit.os.statvfs", full)
    refused = site.post("A/B/pause", "olga", 503)
    assert "No space left on device" in refused["detail"]
    assert site.audit_path.read_text() == before
    monkeypatch.undo()
    assert site.get("A/B/pauses")["pauses"] == []
