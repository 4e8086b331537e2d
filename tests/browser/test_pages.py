"""The pages as people use them: sorting, switches, a phone, the dark, rules for screen readers; and no other host."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from playwright.sync_api import Browser, FloatRect, Locator, Page

from srm_spark.api import feed
from srm_spark.api.app import make_app
from srm_spark.api.roles import Role
from srm_spark.core.driver_status import FlowState
from tests.awaiting import await_until
from tests.browser.pages import (
    CHROMIUM,
    NO_CHROMIUM,
    PHONE,
    WIDE,
    assert_accessible,
    assert_fits,
    page_of,
    served,
    serving,
)
from tests.unit.api.acting import Site, put_aside
from tests.unit.api.boards import AB, EVERY, NOW, Filled, three_flows
from tests.unit.api.gateways import AC, AD, gateway_of
from tests.unit.api.gateways import filled as site_flows
from tests.unit.api.sites import site_at, unused_port

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)


def sources(page: Page) -> list[str]:
    return [text.split()[0] for text in page.locator("tbody th").all_inner_texts()]


def boxes(found: Locator) -> list[FloatRect]:
    return [box for one in found.all() if (box := one.bounding_box()) is not None]


@pytest.mark.slow
def test_the_pages(browser: Browser) -> None:
    filled = three_flows()
    with served(filled) as base:
        with page_of(browser, base) as page:
            words = [one.split() for one in page.locator("tbody td:first-child").all_inner_texts()]
            assert [one[1] for one in words] == ["INACTIVE", "WARNING", "ACTIVE"]
            assert "unknown since 2025-11-24 15:49:45 UTC" in " ".join(words[0])
            assert_accessible(page)
            page.click("#by-source")
            assert sources(page) == ["A", "B", "C"]
            page.click("#by-source")
            assert sources(page) == ["C", "B", "A"]
            page.click('text="MAX"')
            assert sources(page) == ["C", "B", "A"]  # the order stays
            assert page.locator("tr", has_text="ACTIVE").last.locator("td").nth(5).inner_text() == "30 ms"
            page.select_option("select[name=range]", "LAST_THIRTY_DAYS")
            page.fill("input[name=search]", "A")
            page.click("button")
            assert sources(page) == ["A"]
            assert page.locator("[aria-current]").inner_text() == "MAX"
            page.click("tbody th a")
            assert page.locator("h1").inner_text() == "A → B"
            assert page.locator("svg polyline").count() == 5
            assert_accessible(page)
        for color in ("light", "dark"):
            for path in ("/", "/flows/C/B", "/flows/B/A", "/you"):
                with page_of(browser, base + path, viewport=PHONE, color_scheme=color) as page:
                    assert_accessible(page)
                    assert_fits(page)
        with page_of(browser, base, java_script_enabled=False) as page:
            assert sources(page) == ["C", "B", "A"]
            page.click("#flow-3")
            assert all(one["width"] > 200 for one in boxes(page.locator("figure svg")))
        with page_of(browser, f"{base}/docs") as page:
            page.wait_for_selector("[data-path='/v3/flows/{source}/{target}/topics']")


def test_figures_are_brought_up_to_date_and_an_old_page_says_that_it_is_old(browser: Browser) -> None:
    filled = Filled(flows=(AB,))
    filled.report(AB, NOW)
    filled.live()
    with served(filled) as base:
        context = browser.new_context(viewport=WIDE)
        page = context.new_page()
        page.clock.install()
        page.goto(base)
        page.focus("#flow-1")
        filled.clock.pass_by(EVERY)
        filled.report(AB, NOW + EVERY * 1000, FlowState.STALLED, sentence="the source is silent")
        page.clock.run_for(11_000)
        page.wait_for_selector("text=the source is silent")
        assert page.evaluate("document.activeElement.id") == "flow-1"
    page.clock.run_for(11_000)
    page.wait_for_selector("text=The service does not answer (status none): what is shown is less than a minute old.")
    page.clock.run_for(120_000)
    page.wait_for_selector("text=what is shown is 2 min old.")
    context.close()


def test_a_page_shows_a_change_as_soon_as_it_is_told(browser: Browser) -> None:
    filled = Filled(flows=(AB,))
    filled.report(AB, NOW)
    filled.live()
    with served(filled) as base:
        context = browser.new_context(viewport=WIDE)
        page = context.new_page()
        page.clock.install()
        page.goto(base)
        page.wait_for_selector("text=Refreshed whenever something changes.")
        filled.report(AB, NOW + 1000, FlowState.STALLED, sentence="the source is silent")
        told = page.locator("text=the source is silent")
        for _ in range(90):  # nine seconds of the page: by itself it asks after ten
            page.clock.run_for(100)
            page.wait_for_timeout(100)
            if told.count():
                break
        assert told.count() == 1
        context.close()


def test_a_page_without_a_place_for_a_stream_asks_by_itself(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MOST", 0)
    filled = Filled(flows=(AB,))
    filled.report(AB, NOW)
    filled.live()
    with served(filled) as base:
        context = browser.new_context(viewport=WIDE)
        page = context.new_page()
        page.clock.install()
        page.goto(base)
        page.wait_for_selector("text=Refreshed every 10 s.")
        filled.report(AB, NOW + 1000, FlowState.STALLED, sentence="the source is silent")
        page.clock.run_for(11_000)
        page.wait_for_selector("text=the source is silent")
        context.close()


def look_away(page: Page, is_hidden: bool) -> None:
    """As if its tab went behind another one, or came back."""
    page.evaluate(
        """isHidden => {
            Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        is_hidden,
    )


def test_nobody_asks_while_nobody_looks(browser: Browser) -> None:
    filled = Filled(flows=(AB,))
    filled.report(AB, NOW)
    filled.live()
    app = make_app(filled.board, only_local=True)
    with serving(app) as base:
        context = browser.new_context(viewport=WIDE)
        page = context.new_page()
        page.clock.install()
        page.goto(base)
        page.wait_for_selector("text=Refreshed whenever something changes.")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        look_away(page, True)
        await_until(lambda: app.state.feed.streams == 0, 20, "the stream is ended")
        page.clock.run_for(60_000)
        filled.report(AB, NOW + 1000, FlowState.STALLED, sentence="the source is silent")
        assert asked == []
        look_away(page, False)
        page.wait_for_selector("text=the source is silent")
        page.wait_for_selector("text=Refreshed whenever something changes.")
        context.close()


def test_events_in_bursts_make_a_page_ask_every_two_seconds(browser: Browser) -> None:
    filled = Filled(flows=(AB,))
    filled.report(AB, NOW)
    filled.live()
    told = "retry: 100\n\n" + 5 * "event: flow\ndata: {}\n\n"
    with served(filled) as base:
        context = browser.new_context(viewport=WIDE)
        page = context.new_page()
        page.route("**/events/stream", lambda route: route.fulfill(body=told, content_type=feed.MEDIA_TYPE))
        page.goto(base)
        asked = """performance.getEntriesByType("resource").filter(one => one.initiatorType == "xmlhttprequest")"""
        await_until(lambda: page.evaluate(f"{asked}.length") >= 3, 60, "the page has asked three times")
        first, second, third, *_ = page.evaluate(f"{asked}.map(one => one.startTime)")
        assert 1900 < second - first < 9000  # by itself it asks after ten
        assert 1900 < third - second < 9000
        page.unroute_all(behavior="ignoreErrors")
        context.close()


def test_a_chart_tells_the_value_under_the_pointer_and_zooms(browser: Browser) -> None:
    filled = three_flows()
    with served(filled) as base:
        with page_of(browser, f"{base}/flows/A/B") as page:
            plot, told = page.locator("#plot-1 .u-over"), page.locator("#plot-1 p")
            assert all(one["width"] <= 1 for one in boxes(page.locator("figure svg")))  # left to who cannot see
            assert page.get_by_role("img", name="Throughput").count() == 1
            (box,) = boxes(plot)
            plot.hover(position={"x": box["width"] * 0.7, "y": 20})
            assert told.inner_text().startswith("2025-11-24 ")
            assert told.inner_text().endswith(" UTC: 600 B/s")
            plot.hover(position={"x": 3, "y": 20})  # nobody reported before
            assert told.inner_text().endswith(" UTC: no figure")
            x, y = box["x"], box["y"] + 20
            page.mouse.move(x + box["width"] * 0.6, y)
            page.mouse.down()
            page.mouse.move(x + box["width"] * 0.8, y, steps=3)
            page.mouse.up()
            page.mouse.move(0, 0)
            assert told.inner_text() == "Double-click to see all."
            with page.expect_response(f"{base}/flows/A/B"):
                filled.report(AB, NOW + EVERY * 1000)
            assert told.inner_text() == "Double-click to see all."
            plot.dblclick()
            page.mouse.move(0, 0)
            assert told.inner_text() == "Drag to zoom in."
            assert_accessible(page)
        with page_of(browser, f"{base}/flows/C/B") as page:  # whose driver is silent since ten minutes
            plot = page.locator("#plot-1 .u-over")
            plot.hover(position={"x": boxes(plot)[0]["width"] - 3, "y": 20})
            assert page.locator("#plot-1 p").inner_text().endswith(" UTC: no figure")


def test_a_row_opens_to_charts_that_stay_while_figures_change(browser: Browser) -> None:
    filled = three_flows()
    with served(filled) as base, page_of(browser, base) as page:
        page.get_by_role("link", name="Charts of A->B").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".opened .u-over")
        plot, told = page.locator("#plot-A-to-B-1 .u-over"), page.locator("#plot-A-to-B-1 p")
        assert page.locator(".opened .plot").count() == 5
        plot.hover(position={"x": boxes(plot)[0]["width"] * 0.7, "y": 20})
        assert told.inner_text().endswith(" UTC: 600 B/s")
        with page.expect_response(page.url):
            filled.report(AB, NOW + EVERY * 1000)
        assert plot.count() == 1
        assert_accessible(page)
        page.set_viewport_size(PHONE)
        assert_fits(page)
        page.get_by_role("link", name="Charts of A->B").click()
        assert page.locator(".opened").count() == 0


@pytest.mark.parametrize("who", ["ada", "everybody"])
def test_a_flow_is_paused_gets_a_topic_and_a_group_is_failed_over(browser: Browser, tmp_path: Path, who: str) -> None:
    site = Site(tmp_path, anonymous=Role.ADMIN if who == "everybody" else None)
    login = {} if who == "everybody" else {"http_credentials": {"username": who, "password": who}}
    with serving(site.app) as base, page_of(browser, f"{base}/flows/A/B", **login) as page:
        page.get_by_label("Topic, or all").fill("t")
        page.get_by_label("Reason").press("Enter")  # the first button of the form, by the keyboard
        assert "Paused: t" in page.get_by_role("status").inner_text()
        page.get_by_role("link", name="Events").click()
        assert "paused by" in page.get_by_role("region", name="Pauses").inner_text()
        assert_accessible(page)
        page.get_by_role("link", name="Lists").click()
        page.locator("#add").fill("orders")
        page.get_by_role("button", name="Add to the allow list").click()
        assert "Changed: +orders" in page.get_by_role("status").inner_text()
        page.get_by_role("link", name="Go back").click()
        page.get_by_role("button", name="Remove orders").click()
        assert "Changed: -orders" in page.get_by_role("status").inner_text()
        page.get_by_role("link", name="Moves").click()
        assert_accessible(page)
        page.get_by_label("Groups, or all").fill("billing")
        page.get_by_role("button", name="Plan").click()
        assert "set the offsets of the groups on the target" in page.inner_text("main")
        assert_accessible(page)
        assert site.world.flow.target.group_calls.committed == {}
        page.get_by_label("Type A->B to begin").fill("A->B")
        page.get_by_role("button", name="Begin").click()
        page.wait_for_selector("text=Over; everything moved")
        assert "start the consumers of billing on B" in page.inner_text("main")
        assert page.locator("#live[hx-get]").count() == 0  # it asks no more
        assert page.locator("#refreshing").inner_text() == ""
        assert_accessible(page)
        (offset,) = site.world.flow.target.group_calls.committed["billing"].values()
        assert offset.offset == 2


def test_a_plan_is_applied_and_a_record_forgotten(browser: Browser, tmp_path: Path) -> None:
    site = Site(tmp_path, anonymous=Role.ADMIN)
    put_aside(site, b"x")
    site.world.topic("orders", b"1")
    with serving(site.app) as base, page_of(browser, f"{base}/flows/A/B/changes") as page:
        page.get_by_role("button", name="Plan").click()
        assert "A.orders: 1 partition" in page.inner_text("main")
        assert_accessible(page)
        assert "A.orders" not in site.world.flow.target.held
        page.get_by_label("Type A->B to begin").fill("A->B")
        page.get_by_role("button", name="Apply").click()
        page.wait_for_selector("text=Over; everything is done")
        assert "remote topics: 1 step" in page.inner_text("main")
        assert_accessible(page)
        assert "A.orders" in site.world.flow.target.held
        page.get_by_role("link", name="Quarantine").click()
        page.get_by_role("button", name="Plan to forget").click()
        assert "t-0 offset 3" in page.inner_text("main")
        assert_accessible(page)
        page.get_by_label("Type A->B to begin").fill("A->B")
        page.get_by_role("button", name="Forget for good").click()
        assert "Forgotten: 1 record" in page.get_by_role("status").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("color", ["light", "dark"])
def test_the_pages_of_a_flow_on_a_phone(browser: Browser, tmp_path: Path, color: str) -> None:
    site = Site(tmp_path, anonymous=Role.ADMIN)
    with serving(site.app) as base:
        for tab in (
            "",
            "/lists",
            "/groups",
            "/losses",
            "/quarantine",
            "/explain?name=t",
            "/events",
            "/offsets",
            "/changes",
            "/moves",
        ):
            with page_of(browser, f"{base}/flows/A/B{tab}", viewport=PHONE, color_scheme=color) as page:
                assert_accessible(page)
                assert_fits(page)


def test_a_page_of_another_site_makes_a_browser_change_nothing(browser: Browser, tmp_path: Path) -> None:
    site = Site(tmp_path, anonymous=Role.ADMIN)
    evil = FastAPI()

    @evil.get("/")
    def _page() -> HTMLResponse:
        form = (
            f"<form method=post action='{base}/flows/A/B/pause'><input name=topic value=t><button>Win</button></form>"
        )
        return HTMLResponse(form)

    with serving(site.app) as base, serving(evil) as other:
        context = browser.new_context()
        page = context.new_page()
        elsewhere = other.replace("127.0.0.1", "localhost")
        page.goto(elsewhere)
        with page.expect_response(lambda answer: answer.url.startswith(base)) as answered:
            page.click("button")
        assert answered.value.status == 403
        page.goto(elsewhere)
        status = page.evaluate(
            """base => fetch(base + "/v3/flows/A/B/pause", {method: "POST", body: "{}", mode: "no-cors",
                headers: {"content-type": "text/plain"}}).then(answer => answer.type, error => "blocked")""",
            base,
        )
        assert status in ("opaque", "blocked")
        context.close()
    assert {one["result"] for one in site.audit} == {"refused"}
    assert site.client.get("/v3/flows/A/B/events").json()["total"] == 0


@pytest.mark.slow
def test_flows_of_other_sites_lead_to_their_pages(browser: Browser) -> None:
    with serving(make_app(site_flows(AC).board)) as there:
        sites = [site_at("C", int(there.rpartition(":")[2])), site_at("D", unused_port())]
        app = make_app(three_flows().board, gateway=gateway_of(*sites, expected=[AD]))
        with serving(app) as base, page_of(browser, base) as page:
            row = page.locator("tbody tr", has_text="site C")
            assert row.locator("a").get_attribute("href").startswith(f"{there}/flows/A/C?")  # type: ignore[union-attr]
            assert "does not answer" in page.locator("tbody tr", has_text="site D").inner_text()
            assert "site D" in page.locator(".banner").inner_text()
            assert_accessible(page)
            page.set_viewport_size(PHONE)
            assert_fits(page)
            assert_accessible(page)
