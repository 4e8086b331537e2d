"""Somebody who uses the pages of a flow without a browser."""

from __future__ import annotations

import re

from starlette.testclient import TestClient

from tests.unit.api.acting import Site
from tests.unit.api.logins import login


class Browser:
    """One user's: it sends his login with everything, and what the page's own forms hold."""

    def __init__(self, site: Site, user: str) -> None:
        self.client: TestClient = site.client
        self.headers = {**login(f"{user}:{user}"), "accept": "text/html"}

    def get(self, path: str = "", status: int = 200) -> str:
        answer = self.client.get(f"/flows/A/B{path}", headers=self.headers)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"].startswith("text/html")
        return answer.text

    def send(self, path: str, status: int = 200, token: str | None = None, **fields: str) -> str:
        """With the token of the page of the flow, unless another one is said."""
        if token is None:
            (token, *_) = re.findall(r'name="token" value="([^"]*)"', self.get())
        sent = {**fields, "token": token}
        answer = self.client.post(f"/flows/A/B/{path}", data=sent, headers=self.headers)
        assert answer.status_code == status, answer.text
        return answer.text
