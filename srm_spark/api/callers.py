"""Who sends a request: by name and password, by a token of a provider, or by a browser that has logged in there."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from urllib.parse import urlencode

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response

from srm_spark.api.attempts import TooManyWrong
from srm_spark.api.audit import Audit, Result
from srm_spark.api.oidc.errors import ProviderSilent, TokenRefused
from srm_spark.api.oidc.login import LOGIN, LOGOUT, YOU
from srm_spark.api.oidc.logins import Oidc
from srm_spark.api.oidc.sessions import Identity
from srm_spark.api.problems import ProblemDocument, response
from srm_spark.api.roles import NOWHERE, Caller, Role, Roles
from srm_spark.api.root import rooted
from srm_spark.api.users import Users, login_of
from srm_spark.config.settings import LOGIN_DONE

_OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""For probes, which have no login: they tell of aliases, and of nothing else."""
_LOGIN_PATHS = frozenset({LOGIN, LOGIN_DONE, "/static/style.css"})
_OWN_PATHS = frozenset({LOGOUT, YOU})
"""For who has logged in, and has no role."""
_BASIC, _BEARER = 'Basic realm="srm-service", charset="UTF-8"', 'Bearer realm="srm-service"'
_TOKEN = "token"  # noqa: S105 - what wrong ones are counted as
_CHECKS = 4
"""Tokens that are checked at once: where keys are to be asked for first, requests without tokens are not to wait."""


class Callers:
    """Of a service with users, with a provider, with both or with none."""

    def __init__(self, audit: Audit, users: Users | None, oidc: Oidc | None, anonymous: Role) -> None:
        """With none, everybody is `anonymous`."""
        self._audit, self._users, self._oidc = audit, users, oidc
        self._anonymous = Roles(anonymous)
        self._limiter = CapacityLimiter(_CHECKS)

    async def of(self, method: str, path: str, query: str, headers: Headers, address: str) -> Caller | Response:
        """Who it is, or what he is answered instead."""
        if self._users is None and self._oidc is None:
            return Caller(None, address, self._anonymous)
        has_people = self._oidc is not None and self._oidc.has_people
        if path in _OPEN_PATHS or (has_people and path in _LOGIN_PATHS):
            return Caller(None, address, NOWHERE)
        try:
            found = await self._found(headers, address)
        except (TooManyWrong, TokenRefused, ProviderSilent) as error:
            return await self._refused(error, address)
        if found is None:
            return self._who_are_you(method, path, query, headers)
        if found.roles.are_none and path not in _OWN_PATHS:
            return _problem(403, "no role", f"{found.name} has no role here, of any flow", "no-role")
        return found

    async def _refused(self, error: TooManyWrong | TokenRefused | ProviderSilent, address: str) -> Response:
        if isinstance(error, TooManyWrong):
            text = f"there were too many wrong logins; try again in {error.seconds} s"
            return _problem(429, "too many wrong logins", text, "wrong-logins", {"retry-after": str(error.seconds)})
        if isinstance(error, ProviderSilent):
            return _problem(503, "no provider", f"tokens cannot be checked: {error}", "no-provider")
        await self._record_token(address, f"the token {error}")
        challenge = {"www-authenticate": f'{_BEARER}, error="invalid_token"'}
        return _problem(401, "who are you?", f"the token {error}", "no-login", challenge)

    def _who_are_you(self, method: str, path: str, query: str, headers: Headers) -> Response:
        # A script of a page that asks for news could follow nowhere, and would spoil a login in another window.
        is_page = "text/html" in headers.get("accept", "") and headers.get("sec-fetch-mode", "navigate") == "navigate"
        if self._oidc is not None and self._oidc.has_people and method == "GET" and is_page:
            wanted = f"{path}?{query}" if query else path
            return RedirectResponse(f"{rooted(LOGIN)}?{urlencode({'next': wanted})}", 303)
        text = "a login is missing, or is not right"
        return _problem(401, "who are you?", text, "no-login", {"www-authenticate": self._challenge})

    @property
    def _challenge(self) -> str:
        takes_tokens = self._oidc is not None and self._oidc.settings.audience
        kinds = [_BASIC] * (self._users is not None) + [_BEARER] * bool(takes_tokens)
        return ", ".join(kinds) or _BEARER

    async def _found(self, headers: Headers, address: str) -> Caller | None:
        header = headers.get("authorization")
        if header is None:
            return self._by_cookie(headers, address)
        kind, _, token = header.partition(" ")
        if kind.lower() == "bearer" and self._oidc is not None:
            identity = await to_thread.run_sync(self._oidc.by_token, token.strip(), limiter=self._limiter)
            return self._caller(identity, address)
        if self._users is None:
            return None
        name = await to_thread.run_sync(self._users.name_of, header, address)
        if name is not None:
            return Caller(name, address, self._users.roles(name))
        if (login := login_of(header)) is not None:
            await self._record(Caller(login[0], address), "name or password is wrong")
        return None

    def _by_cookie(self, headers: Headers, address: str) -> Caller | None:
        if self._oidc is None:
            return None
        token = cookie_parser(headers.get("cookie", "")).get(self._oidc.cookie("session"))
        identity = None if token is None else self._oidc.sessions.of(token)
        return None if identity is None else self._caller(identity, address)

    def _caller(self, identity: Identity, address: str) -> Caller:
        assert self._oidc is not None
        return Caller(identity.name, address, self._oidc.roles.of(identity.groups))

    async def _record_token(self, address: str, why: str) -> None:
        """A program may send an old one all the time: some of an address in five minutes tell as much."""
        assert self._oidc is not None
        with suppress(TooManyWrong):
            self._oidc.attempts.check(address, _TOKEN)
            self._oidc.attempts.wrong(address, _TOKEN)
            await self._record(Caller(None, address), why)

    async def _record(self, caller: Caller, why: str) -> None:
        await to_thread.run_sync(partial(self._audit.record, caller, "login", None, Result.REFUSED, why=why))


def _problem(status: int, title: str, detail: str, kind: str, headers: dict[str, str] | None = None) -> Response:
    return response(ProblemDocument(title=title, status=status, detail=detail, kind=kind), headers)
