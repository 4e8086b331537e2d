"""Somebody who has never seen it: starts the kept demo, opens its page, and does there what an operator does."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.awaiting import await_until
from tests.browser.pages import CHROMIUM, NO_CHROMIUM, page_of
from tests.demo_process import SECONDS, assert_nothing_left, demos, read_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM),
]


def shown(page: Page, text: str, seconds: float = 90) -> None:
    """Wait until the page, loaded again and again, has this text."""

    def is_there() -> bool:
        page.reload()
        return text in page.inner_text("main")

    await_until(is_there, seconds, lambda: f"{text!r} on {page.url}: {page.inner_text('main')[:2000]}")


@pytest.mark.timeout(2 * SECONDS)
def test_a_newcomer_sees_both_flows_adds_a_topic_pauses_it_and_fails_over_a_group(tmp_path: Path) -> None:
    with demos(tmp_path) as start, sync_playwright() as playwright:
        process = start("--seconds", "1", "--keep")
        address = read_until(process, "The page of the service").split()[-2]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with page_of(browser, address) as page:
            await_until(
                lambda: page.reload() is not None and page.locator("tbody .status.active").count() == 2,
                90,
                lambda: page.inner_text("main"),
            )
            flow = f"{address}/flows/primary/secondary"
            page.goto(f"{flow}/lists")
            page.locator("#add").fill("invoices")
            page.get_by_role("button", name="Add to the allow list").click()
            assert "Changed: +invoices" in page.get_by_role("status").inner_text()
            page.goto(flow)
            shown(page, "primary.invoices")
            page.get_by_label("Topic, or all").fill("invoices")
            page.get_by_role("button", name="Pause").click()
            assert "Paused: invoices" in page.get_by_role("status").inner_text()
            page.goto(flow)
            shown(page, "2 paused")
            page.goto(f"{flow}/groups")
            shown(page, "billing")
            page.get_by_role("link", name="Moves").click()
            page.get_by_label("Groups, or all").fill("billing")
            page.get_by_role("button", name="Plan").click()
            page.get_by_label("Type primary->secondary to begin").fill("primary->secondary")
            page.get_by_role("button", name="Begin").click()
            await_until(
                lambda: "Over; everything moved" in page.inner_text("main"), 240, lambda: page.inner_text("main")[:3000]
            )
            assert "start the consumers of billing on secondary" in page.inner_text("main")
        browser.close()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=90)
        assert (process.returncode, errors) == (130, "")
        assert_nothing_left(tmp_path)
