"""The picture of the topology as people use it: by the keyboard, on a phone, in the dark, with many clusters."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from srm_spark.core.model import Flow
from tests.browser.pages import CHROMIUM, NO_CHROMIUM, PHONE, WIDE, assert_accessible, assert_fits, page_of, served
from tests.unit.api.boards import NOW, Filled, ring, three_flows

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)


def test_arrows_are_reached_by_the_keyboard_and_lead_to_their_flows(browser: Browser) -> None:
    with served(three_flows()) as base, page_of(browser, base) as page:
        arrow = page.get_by_role("link", name="A to B: active, lag 7")
        arrow.focus()
        before = page.evaluate("document.activeElement.id")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id").startswith("arrow-")
        assert page.evaluate("document.activeElement.id") != before
        arrow.press("Enter")
        page.wait_for_selector("h1:has-text('A → B')")


@pytest.mark.parametrize("flows", [[Flow("A", "B"), Flow("B", "A")], ring(3), ring(12)], ids=["two", "three", "twelve"])
@pytest.mark.parametrize("color", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
def test_any_number_of_clusters_fits_and_is_accessible(
    browser: Browser, flows: list[Flow], color: str, viewport: object
) -> None:
    filled = Filled(flows=tuple(flows))
    filled.report(flows[0], NOW)
    filled.live()
    with served(filled) as base, page_of(browser, base, viewport=viewport, color_scheme=color) as page:
        assert page.locator("svg a").count() == len(flows)
        assert page.locator("svg a.active").count() == 1
        assert_fits(page)
        assert_accessible(page)
