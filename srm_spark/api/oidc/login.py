"""The way of a browser to a provider and back, out again, and a page that says who somebody is here."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from srm_spark.api.asked import TheBoard, caller_of
from srm_spark.api.attempts import TooManyWrong
from srm_spark.api.audit import Audit, Result
from srm_spark.api.forms import fields_of
from srm_spark.api.oidc.errors import ProviderSilent, TokenRefused
from srm_spark.api.oidc.logins import LOGIN_SECONDS, Oidc
from srm_spark.api.pages import TEMPLATES
from srm_spark.api.problems import RequestProblem
from srm_spark.api.roles import Caller
from srm_spark.api.root import root, rooted
from srm_spark.api.tokens import FIELD, Tokens
from srm_spark.config.settings import LOGIN_DONE

router = APIRouter(include_in_schema=False)
LOGIN, LOGOUT, YOU = "/login", "/logout", "/you"
_LIMITER = CapacityLimiter(4)
"""Logins that wait for the provider at once: requests of others are not to wait for it."""
_CODE = re.compile("[a-z_]{1,40}")
"""Of an error; whatever else an address says is not to stand on a page of ours."""
_Word = Annotated[str, Query(max_length=4000)]


@router.get(LOGIN)
async def login(request: Request, path: Annotated[str, Query(alias="next", max_length=4000)] = "/") -> Response:
    """Go to the provider."""
    oidc = _oidc_of(request)
    try:
        begun = await to_thread.run_sync(oidc.begin, path, limiter=_LIMITER)
    except ProviderSilent as error:
        raise _silent(error) from error
    answer = RedirectResponse(begun.address, 303)
    _set(answer, oidc, "login", begun.cookie, LOGIN_SECONDS)
    return answer


@router.get(LOGIN_DONE)
async def done(
    *,
    request: Request,
    state: _Word = "",
    code: _Word = "",
    error: _Word = "",
    iss: Annotated[str | None, Query(max_length=4000)] = None,
) -> Response:
    """Come back from it."""
    oidc, caller, audit = _oidc_of(request), caller_of(request), _audit_of(request)
    try:
        oidc.attempts.check(caller.address, state)
        if error or not code:
            reason = error if _CODE.fullmatch(error) else "it gives no code"
            raise TokenRefused(f"the provider lets nobody in: {reason}")
        cookie = request.cookies.get(oidc.cookie("login"), "")
        finish = partial(oidc.finish, cookie, state, code, iss)
        identity, path = await to_thread.run_sync(finish, limiter=_LIMITER)
    except TooManyWrong as many:
        text = f"there were too many logins that failed; try again in {many.seconds} s"
        raise RequestProblem(429, "too many wrong logins", text, "wrong-logins") from many
    except ProviderSilent as silent:
        raise _silent(silent) from silent
    except TokenRefused as refused:
        oidc.attempts.wrong(caller.address, state)
        await to_thread.run_sync(partial(audit.record, caller, "login", None, Result.REFUSED, why=str(refused)))
        raise RequestProblem(401, "not logged in", f"{refused}; log in again", "no-login") from refused
    found = Caller(identity.name, caller.address)
    await to_thread.run_sync(partial(audit.record, found, "login", None, Result.DONE))
    oidc.sessions.end(request.cookies.get(oidc.cookie("session"), ""))
    answer = RedirectResponse(rooted(path), 303)
    _set(answer, oidc, "session", oidc.sessions.begin(identity), int(oidc.sessions.seconds))
    _set(answer, oidc, "login", "", 0)
    return answer


@router.post(LOGOUT)
async def logout(request: Request) -> Response:
    """Be nobody again, in this browser."""
    oidc, caller = _oidc_of(request), caller_of(request)
    tokens: Tokens = request.app.state.tokens
    if not tokens.is_right((await fields_of(request)).get(FIELD, ""), caller):
        raise RequestProblem(403, "no token", "load the page again, and log out from there", "no-token")
    oidc.sessions.end(request.cookies.get(oidc.cookie("session"), ""))
    await to_thread.run_sync(partial(_audit_of(request).record, caller, "logout", None, Result.DONE))
    end = oidc.provider.known("end_session_endpoint")
    answer = HTMLResponse(TEMPLATES.get_template("logout.html").render(title="Logged out", end=end))
    _set(answer, oidc, "session", "", 0)
    return answer


@router.get(YOU, response_class=HTMLResponse)
def you(request: Request, board: TheBoard) -> str:
    """Who somebody is here, and what he may do."""
    caller, oidc = caller_of(request), request.app.state.oidc
    tokens: Tokens = request.app.state.tokens
    has_session = oidc is not None and oidc.sessions.of(request.cookies.get(oidc.cookie("session"), "")) is not None
    return TEMPLATES.get_template("you.html").render(
        title="You",
        name=caller.name,
        roles=[(flow, caller.roles.of(flow).word) for flow in board.flows],
        token=tokens.make(caller) if has_session else None,
    )


def _oidc_of(request: Request) -> Oidc:
    oidc: Oidc | None = request.app.state.oidc
    if oidc is None or not oidc.has_people:
        raise RequestProblem(404, "no such page", "nobody logs in by a page here")
    return oidc


def _audit_of(request: Request) -> Audit:
    audit: Audit = request.app.state.control.audit
    return audit


def _silent(error: ProviderSilent) -> RequestProblem:
    return RequestProblem(503, "no provider", f"nobody can log in now: {error}", "no-provider")


def _set(answer: Response, oidc: Oidc, name: str, value: str, seconds: int) -> None:
    """Lax, and not strict: the provider's page leads here, and a link in a chat is to lead to a flow."""
    answer.set_cookie(
        oidc.cookie(name),
        value,
        max_age=seconds,
        path=root() or "/",
        secure=oidc.is_secure,
        httponly=True,
        samesite="lax",
    )
