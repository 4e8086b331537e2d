"""In front of every request: how large it may be, who sends it, whether a page of another site made a browser send it,
and what browsers may do with the answer."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from srm_spark.api.audit import Audit, Result
from srm_spark.api.callers import Callers
from srm_spark.api.oidc.logins import Oidc
from srm_spark.api.problems import ProblemDocument, response
from srm_spark.api.roles import Caller, Role
from srm_spark.api.users import Users

_LARGEST_BODY = 64 * 1024
_LARGEST_HEADERS = 16 * 1024
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no referrer at all, browsers send forms of ours from Origin null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_BODIES = "bodies of requests are at most 64 kB here, and say in front how long they are"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_REQUESTED_WITH = "x-requested-with"
"""What no page of another site can make a browser send: it would have to be allowed to, and never is."""
_OWN_SITES = frozenset({"same-origin", "none"})


class Guard:
    """ASGI middleware. What passes has its `Caller` in the state of the request."""

    def __init__(
        self,
        app: ASGIApp,
        audit: Audit,
        users: Users | None = None,
        *,
        oidc: Oidc | None = None,
        anonymous: Role = Role.VIEWER,
        only_local: bool = False,
    ) -> None:
        """Neither `users` nor `oidc`: everybody, who is `anonymous` then. `only_local`: only by names of this machine,
        so that no page of another site that renames itself to this address can ask."""
        self._app, self._audit, self._only_local = app, audit, only_local
        self._callers = Callers(audit, users, oidc, anonymous)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what may pass."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        address = (scope.get("client") or ("unknown",))[0]
        refused = _too_large(headers) or self._foreign(headers) or await self._stranger(scope, headers, address)
        if refused is None and scope["method"] not in _SAFE_METHODS:
            refused = await self._forged(scope, headers, scope["state"]["caller"])
        await (refused or self._app)(scope, receive, _with_headers(send))

    async def _stranger(self, scope: Scope, headers: Headers, address: str) -> Response | None:
        """What somebody is answered who is not let in; whoever is stands in the state of the request then."""
        query = scope["query_string"].decode("ascii", "replace")
        found = await self._callers.of(scope["method"], scope["path"], query, headers, address)
        if isinstance(found, Response):
            return found
        scope.setdefault("state", {})["caller"] = found
        return None

    def _foreign(self, headers: Headers) -> Response | None:
        if not self._only_local or _is_local(headers.get("host", "")):
            return None
        text = "this service answers to names of its own machine; start it with --allow-anonymous, or with users"
        return response(ProblemDocument(title="another host", status=421, detail=text))

    async def _forged(self, scope: Scope, headers: Headers, caller: Caller) -> Response | None:
        """What a page of another site may have made a browser send. Forms have a token besides, see `forms`."""
        why = _other_site(headers)
        if why is None and scope["path"].startswith("/v3/") and not headers.get(_REQUESTED_WITH):
            why = "the header X-Requested-With is missing; send it, with whatever value"
        if why is None:
            return None
        does = f"{scope['method']} {scope['path']}"
        await to_thread.run_sync(partial(self._audit.record, caller, does, None, Result.REFUSED, why=why))
        return response(ProblemDocument(title="from another site", status=403, detail=why, kind="another-site"))


def _other_site(headers: Headers) -> str | None:
    """Why this comes from a page of another site, as browsers say."""
    site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
    if site not in _OWN_SITES:
        return f"it comes from a page of another site (Sec-Fetch-Site: {site})"
    if origin is not None and urlsplit(origin).netloc != headers.get("host", ""):
        return "it comes from a page of another site (Origin)"
    return None


def _too_large(headers: Headers) -> Response | None:
    if sum(len(name) + len(value) for name, value in headers.raw) > _LARGEST_HEADERS:
        return response(ProblemDocument(title="too large", status=431, detail="the headers are above 16 kB"))
    length = headers.get("content-length", "0")
    is_small = length.isascii() and length.isdecimal() and len(length) < 10 and int(length) <= _LARGEST_BODY
    if is_small and "transfer-encoding" not in headers:
        return None
    return response(ProblemDocument(title="too large", status=413, detail=_BODIES), {"connection": "close"})


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
