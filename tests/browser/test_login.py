"""Somebody logs in with a real browser at a provider that is not ours, changes something, and logs out."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from srm_spark.api.app import make_app
from srm_spark.api.audit import Audit
from srm_spark.api.control import Control
from srm_spark.api.oidc.groups import GroupRoles
from srm_spark.api.oidc.logins import Oidc
from srm_spark.api.roles import roles_of
from srm_spark.config.settings import OidcSettings
from srm_spark.testing.ports import free_ports
from tests.browser.pages import CHROMIUM, NO_CHROMIUM, assert_accessible, assert_fits
from tests.unit.api.boards import three_flows
from tests.unit.api.openid import provider_process
from tests.unit.api.serving import served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)


def test_a_browser_logs_in_and_out(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    here = f"http://127.0.0.1:{port}"
    person = {"sub": "p1", "preferred_username": "alice", "groups": ["dr"]}
    with provider_process(person) as issuer, sync_playwright() as playwright:
        settings = OidcSettings(issuer, "roles", client_id="srm", client_secret="s", redirect=f"{here}/login/done")
        oidc = Oidc(settings, GroupRoles({"dr": roles_of("A->B=operator")}))
        app = make_app(three_flows().board, oidc=oidc, control=Control(Audit(str(tmp_path / "audit.log"))))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with served(app, port=port):
            page = browser.new_page()
            page.goto(f"{here}/flows/A/B")
            page.fill("input[name=sub]", "p1")
            page.click("text=Authorize >> nth=-1")
            page.wait_for_url(f"{here}/flows/A/B")
            (cookie,) = page.context.cookies(here)
            assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
            page.click("text=You")
            assert page.locator("h1").inner_text() == "oidc:alice"
            assert_accessible(page)
            assert_fits(page)
            page.click("text=Log out")
            page.wait_for_selector("h1:has-text('Logged out')")
            assert_accessible(page)
            assert page.context.cookies(here) == []
            page.goto(f"{here}/flows/A/B")
            assert page.url.startswith(issuer)
        browser.close()
