"""The whole way over HTTP, with a provider that is not ours, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

from srm_spark.api.app import make_app
from srm_spark.api.audit import Audit
from srm_spark.api.control import Control
from srm_spark.api.oidc.groups import GroupRoles
from srm_spark.api.oidc.logins import Oidc
from srm_spark.api.roles import roles_of
from srm_spark.config.settings import OidcSettings
from srm_spark.testing.ports import free_ports
from tests.unit.api.boards import three_flows
from tests.unit.api.openid import provider_process
from tests.unit.api.serving import served

PERSON = {"sub": "p1", "preferred_username": "alice", "realm_access": {"roles": ["kafka-dr"]}}


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with provider_process(PERSON) as url:
        yield url


def test_somebody_logs_in_looks_and_logs_out(issuer: str, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    here = f"http://127.0.0.1:{port}"
    settings = OidcSettings(
        issuer,
        "roles",
        client_id="srm-service",
        client_secret="secret",
        redirect=f"{here}/login/done",
        roles_claim="realm_access.roles",
    )
    oidc = Oidc(settings, GroupRoles({"kafka-dr": roles_of("A->B=operator")}))
    app = make_app(three_flows().board, oidc=oidc, control=Control(Audit(str(tmp_path / "audit.log"))))
    with served(app, port=port), httpx.Client(base_url=here, headers={"accept": "text/html"}, timeout=60) as browser:
        asked = browser.get("/flows/A/B", follow_redirects=True)
        assert (asked.status_code, urlsplit(str(asked.url)).port) == (200, urlsplit(issuer).port)
        back = browser.post(str(asked.url), data={"sub": "p1"}, follow_redirects=True)
        assert (back.status_code, back.url.path) == (200, "/flows/A/B")
        assert "A-&gt;B" in back.text
        assert browser.get("/flows/B/A").status_code == 404
        you = browser.get("/you").text
        assert "oidc:alice" in you
        token = you.partition('name="token" value="')[2].partition('"')[0]
        out = browser.post("/logout", data={"token": token})
        assert f"{issuer}/oauth2/end_session" in out.text
        assert browser.get("/flows/A/B").status_code == 303
        denied = browser.get("/login", follow_redirects=True)
        assert browser.post(str(denied.url), data={"action": "deny"}, follow_redirects=True).status_code == 401
