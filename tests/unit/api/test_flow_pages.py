"""What people do on the pages of a flow: forms with their tokens, and the words that come back."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from srm_spark.api import change_pages, flow_pages, pages, quarantine_pages
from srm_spark.api.roles import Caller
from srm_spark.core.cluster import ControlRecord
from srm_spark.core.losses import loss_key, loss_value
from srm_spark.core.model import Loss, OffsetRange
from srm_spark.errors import ProgressFailed
from tests.awaiting import await_until
from tests.unit.api.acting import TABS, Site, put_aside
from tests.unit.api.forms_filled import Browser
from tests.unit.memory_flow import HERE

FORMS = {
    "pause": {"topic": "t"},
    "resume": {},
    "lists/topics": {"change": "add", "entries": "x"},
    "quarantine/replay": {},
    "moves/plan": {"kind": "failover"},
    "moves": {"plan": "x", "confirm": "A->B"},
    "offsets/plan": {"way": "rewind", "topic": "t", "by": "1"},
    "offsets": {"plan": "x", "confirm": "A->B"},
    "quarantine/drop/plan": {},
    "quarantine/drop": {"plan": "x", "confirm": "A->B"},
    "changes/plan": {},
    "changes": {"plan": "0" * 64, "confirm": "A->B"},
}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def words(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def test_every_form_is_tested_here() -> None:
    prefix = "/flows/{source}/{target}/"
    modules = (pages, flow_pages, quarantine_pages, change_pages)
    routes = [one for module in modules for one in module.router.routes]
    changing = {one.path for one in routes if isinstance(one, APIRoute) and set(one.methods or ()) - {"GET"}}
    assert changing == {prefix + path.replace("topics", "{kind}") for path in FORMS}


def test_a_topic_is_paused_and_resumed_by_buttons(site: Site) -> None:
    olga = Browser(site, "olga")
    assert 'action="/flows/A/B/pause"' in olga.get()
    paused = words(olga.send("pause", topic=" t ", reason="maintenance"))
    assert "Paused: t" in paused
    assert "No driver has said yet" in paused
    assert "t paused by olga@testclient: maintenance" in words(olga.get("/events"))
    assert "Nothing was changed" in words(olga.send("pause", topic="t"))
    assert "Resumed: t" in words(olga.send("resume", topic="t"))
    assert "Not done t is not paused" in words(olga.send("resume", topic="t"))
    assert site.last("who", "does", "result") == ("olga", "resume", "declined")


def test_lists_are_edited(site: Site) -> None:
    olga = Browser(site, "olga")
    tried = words(olga.send("lists/topics", change="add_deny", entries="t", dry_run="yes"))
    assert "Would change: deny +t" in tried
    assert "Stops: t, 1 partition" in tried
    assert "Changed: +orders,pay.*" in words(olga.send("lists/topics", change="add", entries="orders, pay.*"))
    page = olga.get("/lists")
    assert re.findall(r"<code>([^<]*)</code>\n", page)[:2] == ["orders", "pay.*"]
    assert "Changed: -orders" in words(olga.send("lists/topics", change="remove", entry="orders"))
    assert "orders" not in olga.get("/lists/topics")
    for fields in ({"change": "add", "entries": "a,,b"}, {"change": "token", "entry": "x"}, {"change": "add"}):
        olga.send("lists/topics", 400, **fields)
    assert "<b>" not in olga.send("lists/topics", change="add_deny", entry="<b>")


def test_groups_losses_and_quarantine_are_shown(site: Site) -> None:
    flow, olga = site.world.flow, Browser(site, "olga")
    assert "Nothing was lost" in olga.get("/losses")
    loss = Loss(OffsetRange(5, 10))
    lost = ControlRecord(flow.settings.map_topic, loss_key(HERE, "id", loss), loss_value(loss, 1_700_000), partition=0)
    flow.target.writer("loss", ProgressFailed).write([lost])
    assert "t-0 deleted 5 to 9 -" in words(olga.get("/losses"))
    assert "billing A.t-0 2 1 2 -" in words(olga.get("/groups"))
    assert "topic t: waits why" in words(olga.get("/explain?name=t"))  # for a driver
    put_aside(site, b"<b>\xff", b"<i>text")
    page = olga.get("/quarantine")
    links = [html.unescape(one) for one in re.findall(r'href="/flows/A/B(/quarantine/record[^"]*)"', page)]
    binary, text = (olga.get(link) for link in links)
    assert "no UTF-8: in base64" in binary
    assert "&lt;i&gt;text" in text
    assert "quarantine/record" not in Browser(site, "victor").get("/quarantine")
    assert "would be written to A.t" in olga.send("quarantine/replay", dry_run="yes")
    assert words(olga.send("quarantine/replay", topic="t")).count("of A.t") == 2
    assert "Nothing is in quarantine" in olga.get("/quarantine")


def test_a_group_is_failed_over_on_pages(site: Site) -> None:
    ada = Browser(site, "ada")
    plan = ada.send("moves/plan", kind="failover", groups="billing", wait="")
    assert "set the offsets of the groups on the target" in plan
    (planned,) = re.findall(r'name="plan" value="([^"]*)"', plan)
    assert "write the name of the flow, A-&gt;B" in ada.send("moves", 409, plan=planned, confirm="yes")
    assert site.world.flow.target.group_calls.committed == {}
    ada.send("moves", plan=planned, confirm="A->B")
    (link,) = re.findall(r'href="/flows/A/B(/moves/[^"]*)"', ada.get("/moves"))
    await_until(lambda: "Over; everything moved" in ada.get(link), 20, "the move ends")
    page = words(ada.get(link))
    assert "set the offsets of the groups on the target" in page
    assert "billing A.t-0 2 - 2 moved" in page
    assert "start the consumers of billing on B" in page
    assert "live.js" not in ada.get(link)
    olga = Browser(site, "olga").send("moves/plan", kind="failover")
    assert "it takes the role admin; here it is operator" in words(olga)
    assert 'name="plan"' not in olga
    ada.get("/moves/none", 404)


@pytest.mark.parametrize("path", FORMS)
def test_a_form_without_the_token_of_its_user_does_nothing(site: Site, path: str) -> None:
    """As a page of another site makes a browser send it, or one that was stolen."""
    ada = Browser(site, "ada")
    (of_olga, *_) = re.findall(r'name="token" value="([^"]*)"', Browser(site, "olga").get())
    issued = of_olga.partition(".")[0]
    for token in ("", "x", of_olga, f"{issued}.{'0' * 64}"):
        refused = ada.send(path, 403, token, **FORMS[path])
        assert "load the page again" in refused
        assert site.last("who", "flow", "result") == ("ada", "A->B", "refused")
    other = {**ada.headers, "sec-fetch-site": "cross-site"}
    assert ada.client.post(f"/flows/A/B/{path}", data=FORMS[path], headers=other).status_code == 403
    assert site.get("A/B/events")["total"] == 0
    assert site.world.flow.target.group_calls.committed == {}


@pytest.mark.parametrize("path", FORMS)
def test_a_viewer_has_no_forms_and_they_would_do_nothing(site: Site, path: str) -> None:
    victor = Browser(site, "victor")
    for tab in TABS:
        assert 'method="post"' not in victor.get(tab)
    token = site.app.state.tokens.make(Caller("victor", "testclient"))
    assert "is for the role" in victor.send(path, 403, token, **FORMS[path])
    assert site.get("A/B/events")["total"] == 0


def test_tabs_lead_to_pages(site: Site) -> None:
    ada = Browser(site, "ada")
    (tabs,) = re.findall(r'<nav class="tabs".*?</nav>', ada.get(), re.S)
    links = re.findall(r'href="/flows/A/B([^"]*)"', tabs)
    assert links == [
        "",
        "/lists",
        "/groups",
        "/losses",
        "/quarantine",
        "/explain",
        "/events",
        "/offsets",
        "/changes",
        "/moves",
    ]
    for link in links:
        (current,) = re.findall(r'href="/flows/A/B([^"]*)" aria-current="page"', ada.get(link))
        assert current == link


@pytest.mark.parametrize("tab", TABS)
def test_pages_have_labels_and_nothing_from_elsewhere(site: Site, tab: str) -> None:
    page = Browser(site, "ada").get(tab)
    for address in re.findall(r'(?:src|href|action|formaction)="([^"]*)"', page):
        assert address.startswith(("/", "#", "data:,")), address
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|<style", page)
    for field in re.findall(r"<(?:input|select)(?![^>]*hidden)[^>]*>", page):
        assert re.search(rf"<label>[^<]*{re.escape(field)}", page), field


def test_problems_are_pages_for_people(site: Site) -> None:
    ada = Browser(site, "ada")
    site.world.flow.target.down = "no <b>route"
    page = ada.get("/losses", 503)
    assert "no &lt;b&gt;route" in page
    assert 'href="/flows/A/B"' in page
    assert "there is no flow" in ada.client.get("/flows/A/X/losses", headers=ada.headers).text
    many = "&".join(f"a{number}=1" for number in range(50))
    sent = {**ada.headers, "content-type": "application/x-www-form-urlencoded"}
    for content in (many.encode(), b"\xff"):
        assert ada.client.post("/flows/A/B/pause", content=content, headers=sent).status_code == 400
