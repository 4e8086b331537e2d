"""The pages of plan and apply: what they say, whom they let do it, and how a run is watched, and goes on."""

from __future__ import annotations

import html
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from srm_spark.api.applying import Runs
from tests.awaiting import await_until
from tests.unit.api.acting import Site
from tests.unit.api.forms_filled import Browser


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.world.topic("orders", b"1")
    return made


def words(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def hidden(page: str) -> dict[str, str]:
    """What the form sends that applies a plan."""
    (form,) = re.findall(r'<form method="post" action="/flows/A/B/changes".*?</form>', page, re.S)
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
    return {name: html.unescape(value) for name, value in fields.items() if name != "token"}


def begun(browser: Browser, page: str) -> str:
    """Apply what a page offers; the address of the run's page."""
    browser.send("changes", 200, None, **hidden(page), confirm="A->B")
    return newest(browser)


def newest(browser: Browser) -> str:
    links: list[str] = re.findall(r'href="/flows/A/B(/changes/[^"]*)"', browser.get("/changes"))
    return links[0]


def over(browser: Browser, link: str) -> str:
    await_until(lambda: "data-over" in browser.get(link), 20, "the run ends")
    return browser.get(link)


def test_a_run_that_has_no_thread_leaves_the_turn_to_the_next(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = Browser(site, "ada")
    page = ada.send("changes/plan")

    def refused(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("srm_spark.api.begun.threading.Thread", refused)
        ada.send("changes", 500, None, **hidden(page), confirm="A->B")
    assert "Over; everything is done" in words(over(ada, begun(ada, page)))


def test_a_plan_is_read_applied_and_watched(site: Site) -> None:
    ada = Browser(site, "ada")
    site.post("A/B/lists/topics", add_deny=["t"])
    page = ada.send("changes/plan")
    text = words(page)
    assert re.search(r"Remote topics on B \+ A\.orders: 1 partition, factor 1.*matches the topic filter", text)
    assert text.index("Internal topics on B") < text.index("Remote topics on B")
    assert "1 topic (t): is excluded by the topic filter (t)" in text
    assert "A.orders" not in site.world.flow.target.held
    assert "write the name of the flow, A-&gt;B" in ada.send("changes", 409, None, **hidden(page), confirm="yes")
    assert "A.orders" not in site.world.flow.target.held
    link = begun(ada, page)
    text = words(over(ada, link))
    assert "Over; everything is done" in text
    assert "A->B: remote topics: 1 step" in text
    assert re.search(r"Report .*Remote topics on B \+ A\.orders: 1 partition, factor 1", text)
    assert "A.orders" in site.world.flow.target.held
    assert "htmx.min.js" not in ada.get(link)
    assert "Go on" not in text
    assert [(one["does"], one["result"]) for one in site.audit[-2:]] == [
        ("apply a plan", "begun"),
        ("apply a plan", "done"),
    ]
    assert site.last("who", "plan") == ("ada", hidden(page)["plan"])
    assert "There is nothing to change" in ada.send("changes/plan")
    ada.get("/changes/none", 404)


def test_its_stages_are_seen_while_they_last(site: Site) -> None:
    ada, goes_on = Browser(site, "ada"), threading.Event()
    target = site.world.flow.target
    create = target.create

    def slow(specs: Any) -> Any:
        assert goes_on.wait(20)
        return create(specs)

    page = ada.send("changes/plan")
    target.create = slow  # type: ignore[method-assign]
    try:
        link = begun(ada, page)
        await_until(lambda: "A->B: internal topics" in words(ada.get(link)), 20, "the first stage is told")
        running = ada.get(link)
        assert "In progress" in running
        assert "htmx.min.js" in running
        assert ": in progress" in ada.get("/changes")
        assert "another plan is being applied" in ada.send("changes", 409, None, **hidden(page), confirm="A->B")
    finally:
        goes_on.set()
    assert "Over; everything is done" in over(ada, link)


def test_what_was_interrupted_goes_on_from_its_page(site: Site) -> None:
    ada, target = Browser(site, "ada"), site.world.flow.target
    create = target.create
    page = ada.send("changes/plan")

    def create_and_die(specs: Any) -> Any:
        create(specs)
        target.down = "no route"
        raise target.refused("create", "no route")

    target.create = create_and_die  # type: ignore[method-assign]
    link = begun(ada, page)
    failed = over(ada, link)
    assert "It failed: " in failed
    assert "no route" in failed
    assert site.last("does", "result") == ("apply a plan", "failed")
    target.create, target.down = create, None  # type: ignore[method-assign]
    assert hidden(failed) == hidden(page)
    again = over(ada, begun(ada, failed))
    assert "Over; everything is done" in again
    assert words(again).index("A.orders: 1 partition") > words(again).index("Report")


def test_what_a_cluster_refuses_is_told_and_tried_again(site: Site) -> None:
    ada, target = Browser(site, "ada"), site.world.flow.target
    page = ada.send("changes/plan")
    create, target.create = target.create, lambda specs: dict.fromkeys((one.name for one in specs), "no <b>room")  # type: ignore[method-assign]
    refused = over(ada, begun(ada, page))
    assert "Over; a cluster has refused some of it" in refused
    assert re.search(r"Was refused .*A\.orders: 1 partition, factor 1[^:]*: no <b>room", words(refused))
    assert "no <b>room" not in refused
    target.create = create  # type: ignore[method-assign]
    assert "Over; everything is done" in over(ada, begun(ada, refused))


def test_a_plan_that_has_changed_is_refused(site: Site) -> None:
    ada = Browser(site, "ada")
    page = ada.send("changes/plan")
    site.world.topic("late", b"1")
    assert "plan again" in ada.send("changes", 409, None, **hidden(page), confirm="A->B")
    assert "None." in ada.get("/changes")
    assert site.last("does", "result") == ("apply a plan", "failed")
    over(ada, begun(ada, ada.send("changes/plan")))  # and nothing keeps another one


def test_what_is_taken_back_is_planned_only_where_it_is_asked_for(site: Site) -> None:
    ada = Browser(site, "ada")
    plain, pruning = hidden(ada.send("changes/plan")), hidden(ada.send("changes/plan", prune="yes"))
    assert (plain["prune"], pruning["prune"]) == ("", "yes")
    assert plain["plan"] != pruning["plan"]
    assert "plan again" in ada.send("changes", 409, plan=pruning["plan"], confirm="A->B")
    ada.send("changes", 200, None, **pruning, confirm="A->B")
    assert "Over; everything is done" in over(ada, newest(ada))


def test_operators_read_plans_admins_apply_them_and_viewers_have_no_form(site: Site) -> None:
    olga, victor = Browser(site, "olga"), Browser(site, "victor")
    page = olga.send("changes/plan")
    assert "A.orders" in page
    assert "it takes the role admin; here it is operator" in words(page)
    assert 'name="plan"' not in page
    plan = hidden(Browser(site, "ada").send("changes/plan"))
    assert "is for the role admin" in olga.send("changes", 403, None, **plan, confirm="A->B")
    assert site.last("who", "does", "result") == ("olga", "apply a plan", "refused")
    link = begun(Browser(site, "ada"), Browser(site, "ada").send("changes/plan"))
    over(victor, link)
    for path in ("/changes", link):
        assert "<form" not in victor.get(path)


def test_an_error_of_our_own_is_told_and_the_next_one_may_begin(site: Site) -> None:
    ada, target = Browser(site, "ada"), site.world.flow.target
    page = ada.send("changes/plan")
    create = target.create

    def broken(specs: Any) -> Any:
        raise ZeroDivisionError

    target.create = broken  # type: ignore[method-assign]
    failed = over(ada, begun(ada, page))
    assert "an error of the service: ZeroDivisionError" in failed
    target.create = create  # type: ignore[method-assign]
    assert "Over; everything is done" in over(ada, begun(ada, failed))


def test_old_runs_are_forgotten(site: Site) -> None:
    site.app.state.runs = Runs(most=1)
    ada = Browser(site, "ada")
    first = begun(ada, ada.send("changes/plan"))
    over(ada, first)
    site.world.topic("more", b"1")
    over(ada, begun(ada, ada.send("changes/plan")))
    ada.get(first, 404)
