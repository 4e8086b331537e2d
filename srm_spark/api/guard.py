"""In front of every request: how large it may be, who sends it, and what browsers may do with the answer."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from srm_spark.api.problems import ProblemDocument, response
from srm_spark.api.users import Users

_LARGEST_BODY = 64 * 1024
_LARGEST_HEADERS = 16 * 1024
_OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""For probes, which have no login: they tell of aliases, and of nothing else."""
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_CHALLENGE = {"www-authenticate": 'Basic realm="srm-service", charset="UTF-8"'}


class Guard:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, users: Users | None = None, *, only_local: bool = False) -> None:
        """`users` None: everybody. `only_local`: only by names of this machine, so that no page of another site that
        renames itself to this address can ask."""
        self._app, self._users, self._only_local = app, users, only_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what may pass."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = _too_large(headers) or self._foreign(headers) or await self._unknown(scope["path"], headers)
        if refused is not None:
            document, extra = refused
            await response(document, extra)(scope, receive, _with_headers(send))
            return
        await self._app(scope, receive, _with_headers(send))

    def _foreign(self, headers: Headers) -> tuple[ProblemDocument, dict[str, str]] | None:
        if not self._only_local or _is_local(headers.get("host", "")):
            return None
        text = "this service answers to names of its own machine; start it with --allow-anonymous, or with users"
        return ProblemDocument(title="another host", status=421, detail=text), {}

    async def _unknown(self, path: str, headers: Headers) -> tuple[ProblemDocument, dict[str, str]] | None:
        if self._users is None or path in _OPEN_PATHS:
            return None
        header = headers.get("authorization")
        if header is not None and await to_thread.run_sync(self._users.name_of, header) is not None:
            return None
        text = "name and password are missing, or are not right"
        return ProblemDocument(title="who are you?", status=401, detail=text), _CHALLENGE


def _too_large(headers: Headers) -> tuple[ProblemDocument, dict[str, str]] | None:
    if sum(len(name) + len(value) for name, value in headers.raw) > _LARGEST_HEADERS:
        return ProblemDocument(title="too large", status=431, detail="the headers are above 16 kB"), {}
    length = headers.get("content-length", "0")
    is_small = length.isascii() and length.isdecimal() and len(length) < 10 and int(length) <= _LARGEST_BODY
    if is_small and "transfer-encoding" not in headers:
        return None
    return ProblemDocument(title="too large", status=413, detail="requests have no body here"), {"connection": "close"}


def _is_local(host: str) -> bool:
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            _add(MutableHeaders(scope=message), _HEADERS.items())
        await send(message)

    return with_headers


def _add(headers: MutableHeaders, extra: Iterable[tuple[str, Any]]) -> None:
    for name, value in extra:
        headers.setdefault(name, value)
