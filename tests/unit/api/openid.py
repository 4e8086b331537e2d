"""A service whose people and programs log in by a provider, and the way of a browser between both."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import parse_qsl, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, build_opener, urlopen

from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.api.audit import Audit
from srm_spark.api.control import Control
from srm_spark.api.oidc.groups import GroupRoles
from srm_spark.api.oidc.logins import Oidc
from srm_spark.api.roles import roles_of
from srm_spark.api.users import Users
from srm_spark.config.settings import OidcSettings
from srm_spark.testing.ports import free_ports
from tests.awaiting import await_until
from tests.identity_provider import AUDIENCE, IdentityProvider
from tests.unit.api.boards import Clock, three_flows

CLIENT, SECRET = "srm service", "s:e c+ret"
HERE = "http://localhost:6670"
ROLES = {"admins": "admin", "ab-operators": "A->B=operator", "ab-viewers": "A->B=viewer", "all": "viewer"}


class _Stay(HTTPRedirectHandler):
    def http_error_302(self, _request: Any, answer: Any, *_: Any) -> Any:
        return answer


def sent_back(address: str) -> str:
    """Where the provider sends a browser that comes to this address."""
    with build_opener(_Stay()).open(address, timeout=30) as answer:
        return str(answer.headers["Location"])


@dataclass
class Place:
    """The service and its provider."""

    provider: IdentityProvider
    folder: Path
    users: Users | None = None
    here: str = HERE
    settings: dict[str, Any] = field(default_factory=dict)
    root: str = ""

    def __post_init__(self) -> None:
        self.clock = Clock()
        usual = OidcSettings(
            self.provider.url,
            "roles",
            client_id=CLIENT,
            client_secret=SECRET,
            redirect=f"{self.here}{self.root}/login/done",
            audience=AUDIENCE,
            session_minutes=60,
        )
        roles = GroupRoles({group: roles_of(text) for group, text in ROLES.items()})
        self.oidc = Oidc(
            replace(usual, **self.settings), roles, clock=lambda: self.clock.now, monotonic=lambda: self.clock.monotonic
        )
        self.audit_path = self.folder / "audit.log"
        control = Control(Audit(str(self.audit_path)))
        self.app = make_app(three_flows().board, self.users, oidc=self.oidc, control=control, root=self.root)

    def browser(self, cookies: Mapping[str, str] = {}) -> TestClient:
        """One with cookies of its own."""
        html = {"accept": "text/html"}
        return TestClient(self.app, base_url=self.here, headers=html, cookies=dict(cookies), follow_redirects=False)

    def begin(self, browser: TestClient, path: str = "/") -> str:
        """Go to the login, and to the provider; where that sends it back to."""
        answer = browser.get(f"/login?{urlencode({'next': path})}")
        assert answer.status_code == 303, answer.text
        return sent_back(answer.headers["location"])

    def logged_in(self, **person: object) -> TestClient:
        """A browser of somebody."""
        self.provider.person = {"sub": "p1", **person}
        browser = self.browser()
        answer = browser.get(self.begin(browser))
        assert answer.status_code == 303, answer.text
        return browser

    def status(self, token: str) -> int:
        """What a program is answered that sends a token."""
        headers = {"authorization": f"Bearer {token}"}
        return TestClient(self.app, base_url=self.here).get("/v3/flows", headers=headers).status_code

    @property
    def audit(self) -> list[dict[str, Any]]:
        """All records."""
        return [json.loads(line) for line in self.audit_path.read_text().splitlines()]


@contextmanager
def provider_process(person: Mapping[str, object]) -> Iterator[str]:
    """A provider that is not ours, in a process of its own, and who it knows."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce"]

    def is_there() -> bool:
        assert process.poll() is None
        try:
            with urlopen(f"{url}/.well-known/openid-configuration", timeout=30) as answer:
                return bool(answer.status == 200)
        except URLError:
            return False

    command += ["--user-claims", json.dumps(person)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            await_until(is_there, 120, "the provider answers")
            yield url
        finally:
            process.terminate()


def changed(address: str, **other: str) -> str:
    """The same address with another query; a field that is empty is left out."""
    parts = urlsplit(address)
    query = {**dict(parse_qsl(parts.query)), **other}
    return parts._replace(query=urlencode({name: value for name, value in query.items() if value})).geturl()
