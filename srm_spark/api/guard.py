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
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from srm_spark.api.attempts import TooManyWrong
from srm_spark.api.audit import Audit, Result
from srm_spark.api.problems import ProblemDocument, response
from srm_spark.api.roles import Caller, Role, Roles
from srm_spark.api.users import Users, login_of

_LARGEST_BODY = 64 * 1024
_LARGEST_HEADERS = 16 * 1024
_OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""For probes, which have no login: they tell of aliases, and of nothing else."""
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
_CHALLENGE = {"www-authenticate": 'Basic realm="srm-service", charset="UTF-8"'}


Refused = tuple[ProblemDocument, dict[str, str]]


class Guard:
    """ASGI middleware. What passes has its `Caller` in the state of the request."""

    def __init__(
        self,
        app: ASGIApp,
        audit: Audit,
        users: Users | None = None,
        *,
        anonymous: Role = Role.VIEWER,
        only_local: bool = False,
    ) -> None:
        """`users` None: everybody, who is `anonymous` then. `only_local`: only by names of this machine, so that no
        page of another site that renames itself to this address can ask."""
        self._app, self._audit, self._users, self._only_local = app, audit, users, only_local
        self._anonymous = Roles(anonymous)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what may pass."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        address = (scope.get("client") or ("unknown",))[0]
        refused, caller = _too_large(headers) or self._foreign(headers), None
        if refused is None:
            refused, caller = await self._known(scope["path"], headers, address)
        if refused is None and caller is not None and scope["method"] not in _SAFE_METHODS:
            refused = await self._forged(scope, headers, caller)
        if refused is not None:
            document, extra = refused
            await response(document, extra)(scope, receive, _with_headers(send))
            return
        scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, _with_headers(send))

    def _foreign(self, headers: Headers) -> Refused | None:
        if not self._only_local or _is_local(headers.get("host", "")):
            return None
        text = "this service answers to names of its own machine; start it with --allow-anonymous, or with users"
        return ProblemDocument(title="another host", status=421, detail=text), {}

    async def _known(self, path: str, headers: Headers, address: str) -> tuple[Refused | None, Caller]:
        nobody = Caller(None, address)
        if self._users is None:
            return None, Caller(None, address, self._anonymous)
        if path in _OPEN_PATHS:
            return None, nobody
        header = headers.get("authorization")
        try:
            name = None if header is None else await to_thread.run_sync(self._users.name_of, header, address)
        except TooManyWrong as error:
            text = f"there were too many wrong logins; try again in {error.seconds} s"
            document = ProblemDocument(title="too many wrong logins", status=429, detail=text, kind="wrong-logins")
            return (document, {"retry-after": str(error.seconds)}), nobody
        if name is not None:
            return None, Caller(name, address, self._users.roles(name))
        if header is not None and (login := login_of(header)) is not None:
            await self._record(Caller(login[0], address), "login", "name or password is wrong")
        text = "name and password are missing, or are not right"
        return (ProblemDocument(title="who are you?", status=401, detail=text, kind="no-login"), _CHALLENGE), nobody

    async def _forged(self, scope: Scope, headers: Headers, caller: Caller) -> Refused | None:
        """What a page of another site may have made a browser send. Forms have a token besides, see `forms`."""
        why = _other_site(headers)
        if why is None and scope["path"].startswith("/v3/") and not headers.get(_REQUESTED_WITH):
            why = "the header X-Requested-With is missing; send it, with whatever value"
        if why is None:
            return None
        await self._record(caller, f"{scope['method']} {scope['path']}", why)
        return ProblemDocument(title="from another site", status=403, detail=why, kind="another-site"), {}

    async def _record(self, caller: Caller, does: str, why: str) -> None:
        await to_thread.run_sync(partial(self._audit.record, caller, does, None, Result.REFUSED, why=why))


def _other_site(headers: Headers) -> str | None:
    """Why this comes from a page of another site, as browsers say."""
    site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
    if site not in _OWN_SITES:
        return f"it comes from a page of another site (Sec-Fetch-Site: {site})"
    if origin is not None and urlsplit(origin).netloc != headers.get("host", ""):
        return "it comes from a page of another site (Origin)"
    return None


def _too_large(headers: Headers) -> Refused | None:
    if sum(len(name) + len(value) for name, value in headers.raw) > _LARGEST_HEADERS:
        return ProblemDocument(title="too large", status=431, detail="the headers are above 16 kB"), {}
    length = headers.get("content-length", "0")
    is_small = length.isascii() and length.isdecimal() and len(length) < 10 and int(length) <= _LARGEST_BODY
    if is_small and "transfer-encoding" not in headers:
        return None
    return ProblemDocument(title="too large", status=413, detail=_BODIES), {"connection": "close"}


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
