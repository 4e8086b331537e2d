"""The pages as people use them: sorting, switches, a phone, the dark, rules for screen readers; and no other host."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from srm_spark.api.app import make_app
from srm_spark.core.driver_status import FlowState
from tests.awaiting import await_until
from tests.unit.api.boards import AB, EVERY, NOW, Filled, three_flows

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDE, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=800)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install chromium")


@contextmanager
def served(filled: Filled) -> Iterator[str]:
    server = uvicorn.Server(
        uvicorn.Config(make_app(filled.board, only_local=True), port=0, log_config=None, lifespan="off")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    await_until(lambda: server.started, 20, "the server listens")
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@contextmanager
def page_of(browser: Browser, address: str, **settings: object) -> Iterator[Page]:
    """A page of its own that can reach the service only; what goes wrong in it fails the test."""
    context = browser.new_context(viewport=settings.pop("viewport", WIDE), **settings)  # type: ignore[arg-type]
    wrong: list[str] = []
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(address)
    yield page
    host = address.split("/")[2]
    assert [url for url in asked if url.split("/")[2:3] != [host] and not url.startswith("data:")] == []
    assert wrong == []
    context.close()


def sources(page: Page) -> list[str]:
    return [text.split()[0] for text in page.locator("tbody th").all_inner_texts()]


def assert_accessible(page: Page) -> None:
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def assert_fits(page: Page) -> None:
    """Nothing sticks out at the right."""
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


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
            assert page.locator("svg polyline").count() == 3
            assert_accessible(page)
        for color in ("light", "dark"):
            for path in ("/", "/flows/C/B", "/flows/B/A"):
                with page_of(browser, base + path, viewport=PHONE, color_scheme=color) as page:
                    assert_accessible(page)
                    assert_fits(page)
        with page_of(browser, base, java_script_enabled=False) as page:
            assert sources(page) == ["C", "B", "A"]
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
    page.wait_for_selector("text=The service does not answer")
    context.close()
