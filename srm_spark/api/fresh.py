"""Answers that are polled: who has the newest one already is told so (304), and nothing is worked out or rendered.

A tag is made of what an answer follows from: how often the figures changed, how the flow is, where the range lies, and
who asks. It is a weak one: the moment at which an answer was given is no part of it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response

from srm_spark.api.asked import caller_of
from srm_spark.core.model import Flow
from srm_spark.core.series import BUCKET_MS, Span
from srm_spark.look.board import Board

UNCHANGED: Mapping[int | str, dict[str, Any]] = {304: {"description": "It is what If-None-Match names"}}
"""For the OpenAPI document."""
_HEADERS = {
    # A browser keeps it, asks before it shows it, and never shows it to another user; a proxy keeps nothing.
    "cache-control": "private, no-cache",
    "vary": "Authorization, Cookie",
}


class NotModified(Exception):
    """Raised where a sender has the answer already."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__()
        self.headers = headers


async def not_modified(_: Request, error: Exception) -> Response:
    """The answer that is none."""
    assert isinstance(error, NotModified)
    return Response(status_code=304, headers=dict(error.headers))


class Tags:
    """Of this process: after a start all are others, since figures are counted anew."""

    def __init__(self) -> None:
        self._key = os.urandom(16)

    def make(self, *parts: object) -> str:
        """A tag; nobody can tell the parts from it."""
        text = repr(parts).encode("utf-8", "surrogatepass")
        return f'W/"{hashlib.blake2b(text, key=self._key, digest_size=12).hexdigest()}"'


class Polled:
    """A request for something that its sender may have."""

    def __init__(self, request: Request, response: Response, known: str | None) -> None:
        self._tags: Tags = request.app.state.tags
        self._caller, self._response, self._known = caller_of(request), response, known or ""

    def is_of(self, *parts: object) -> None:
        """The answer follows from these, and from who asks. Raises NotModified where he has it."""
        tag = self._tags.make(self._caller.name, self._caller.roles, *parts)
        headers = {"etag": tag, **_HEADERS}
        if self._known.strip() == "*" or tag in _tags(self._known):
            raise NotModified(headers)
        self._response.headers.update(headers)


def _polled(
    request: Request,
    response: Response,
    known: Annotated[str | None, Header(alias="If-None-Match", description="Tags of answers that are there.")] = None,
) -> Polled:
    return Polled(request, response, known)


ThePolled = Annotated[Polled, Depends(_polled)]


def _tags(header: str) -> Iterator[str]:
    """Weakly compared, as RFC 9110 has it: a proxy may have made a strong one weak, or left its mark out."""
    for one in header.split(","):
        yield "W/" + one.strip().removeprefix("W/")


def of_flows(board: Board, span: Span) -> Iterator[object]:
    """What an answer of all flows in a range follows from."""
    for flow in board.flows:
        yield from of_flow(board, flow)
    yield from _range(board, span)


def of_flow(board: Board, flow: Flow, span: Span | None = None) -> Iterator[object]:
    """The same of one flow, now or in a range."""
    yield board.version(flow)
    yield board.now(flow)
    if span is not None:
        yield from _range(board, span)


def _range(board: Board, span: Span) -> Iterator[object]:
    """Where it lies, by buckets: which of them count is all that a range does. What history has is asked each time."""
    yield from (span.start // BUCKET_MS, span.end // BUCKET_MS, board.why_not_ready())
    if board.past is not None:
        yield board.now_ms() // BUCKET_MS
