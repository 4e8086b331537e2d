"""Errors of requests and of the engine, as problem documents (RFC 9457)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from srm_spark.errors import (
    ActNotUnderstood,
    ConfigError,
    LeaseHeld,
    LeaseLost,
    MoveError,
    PatternError,
    PlanError,
    SigningFailed,
    SourceUnavailable,
    SrmError,
    TargetUnavailable,
)

MEDIA_TYPE = "application/problem+json"


class ProblemDocument(BaseModel):
    """What is wrong with a request, and what to do."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    kind: str | None = None
    """What it is, as a code that does not change; null where the status says all."""


class RequestProblem(Exception):
    """Raised by endpoints."""

    def __init__(self, status: int, title: str, detail: str, kind: str | None = None) -> None:
        super().__init__(detail)
        self.document = ProblemDocument(title=title, status=status, detail=detail, kind=kind)


def unknown(what: str, name: str, known: Iterable[str]) -> RequestProblem:
    """Something that is not there, with what is."""
    first = sorted(known)
    listed = ", ".join(first[:20]) + (f" and {len(first) - 20} more" if len(first) > 20 else "")
    return RequestProblem(404, f"unknown {what}", f"there is no {what} {name}; known: {listed or 'none'}")


def response(document: ProblemDocument, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """As it is sent."""
    return JSONResponse(document.model_dump(), document.status, dict(headers or {}), MEDIA_TYPE)


def described(*responses: tuple[int, str]) -> dict[int | str, dict[str, Any]]:
    """Problem documents for the OpenAPI document: status and when."""
    schema = ProblemDocument.model_json_schema()
    return {status: {"description": text, "content": {MEDIA_TYPE: {"schema": schema}}} for status, text in responses}


RESPONSES = described(
    (400, "Something is wrong with the request"),
    (404, "There is no such thing"),
    (409, "Several targets would be mixed"),
)
"""For the OpenAPI document."""
CONTROL_RESPONSES = described(
    (400, "Something is wrong with the request"),
    (403, "The role does not allow it, or the header X-Requested-With is missing"),
    (404, "There is no such thing"),
    (409, "It cannot be done as things are"),
    (413, "The body is too large"),
    (502, "A cluster refused it"),
    (503, "A cluster does not answer, too many ask at once, or it cannot be recorded"),
)
"""The same of what asks clusters or changes something."""
_STATUSES: tuple[tuple[type[SrmError], int], ...] = (
    (ConfigError, 400),
    (PatternError, 400),
    (MoveError, 409),
    (PlanError, 409),
    (SigningFailed, 409),
    (LeaseHeld, 409),
    (LeaseLost, 409),
    (ActNotUnderstood, 409),
    (SourceUnavailable, 503),
    (TargetUnavailable, 503),
)


def problem_of(error: SrmError) -> ProblemDocument:
    """An error of the engine, with its kind."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 502)
    return ProblemDocument(title=type(error).__name__, status=status, detail=str(error), kind=error.kind.value)


def install(app: FastAPI, page: Callable[[ProblemDocument, str], str]) -> None:
    """Every error of `app` becomes a problem document; for who asks for HTML, what `page` makes of it and its path."""

    def answer(request: Request, document: ProblemDocument, headers: Mapping[str, str] | None = None) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return HTMLResponse(page(document, request.url.path), document.status, headers)
        return response(document, headers)

    @app.exception_handler(RequestProblem)
    async def _problem(request: Request, error: RequestProblem) -> Response:
        return answer(request, error.document)

    @app.exception_handler(SrmError)
    async def _engine(request: Request, error: SrmError) -> Response:
        return answer(request, problem_of(error))

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        return answer(request, ProblemDocument(title="invalid parameters", status=400, detail=told(error.errors())))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        document = ProblemDocument(title=str(error.detail), status=error.status_code, detail=str(error.detail))
        return answer(request, document, error.headers)


def told(errors: Sequence[Any], skip: int = 1) -> str:
    """What pydantic has found; `skip` parts of a place are not the sender's words."""
    return "; ".join(f"{'.'.join(str(part) for part in one['loc'][skip:])}: {one['msg']}" for one in errors)
