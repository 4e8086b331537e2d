"""What requests ask for: time ranges, metrics, flows; in the words of SRM's REST API."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from fastapi import Depends, Path, Query, Request

from srm_spark.api.gateway import Gateway
from srm_spark.api.problems import RequestProblem, unknown
from srm_spark.api.roles import Caller
from srm_spark.core.model import Flow
from srm_spark.core.moments import time_of
from srm_spark.core.series import WINDOW_MS, Metric, Span
from srm_spark.look.board import Board

_LATEST_MS = 9_999_999_999_999
"""In the year 2286: what is later is no number of milliseconds."""
_MOST = 2**31 - 1
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000


class Duration(Enum):
    """SMM's ranges."""

    LAST_THIRTY_MINUTES = "LAST_THIRTY_MINUTES"
    LAST_ONE_HOUR = "LAST_ONE_HOUR"
    LAST_SIX_HOURS = "LAST_SIX_HOURS"
    LAST_ONE_DAY = "LAST_ONE_DAY"
    LAST_TWO_DAYS = "LAST_TWO_DAYS"
    LAST_ONE_WEEK = "LAST_ONE_WEEK"
    LAST_THIRTY_DAYS = "LAST_THIRTY_DAYS"

    def until(self, now: int) -> Span:
        """The range that ends now."""
        return Span(now - _LENGTHS[self], now + 1)

    @property
    def label(self) -> str:
        """For people."""
        return self.value.removeprefix("LAST_").replace("_", " ").lower()


_LENGTHS = {
    Duration.LAST_THIRTY_MINUTES: 30 * _MINUTE_MS,
    Duration.LAST_ONE_HOUR: _HOUR_MS,
    Duration.LAST_SIX_HOURS: 6 * _HOUR_MS,
    Duration.LAST_ONE_DAY: _DAY_MS,
    Duration.LAST_TWO_DAYS: 2 * _DAY_MS,
    Duration.LAST_ONE_WEEK: 7 * _DAY_MS,
    Duration.LAST_THIRTY_DAYS: 30 * _DAY_MS,
}


def board_of(request: Request) -> Board:
    """What the application was made with, as far as who asks may see it."""
    board: Board = request.app.state.board
    seen = [flow for flow in board.flows if caller_of(request).roles.sees(flow)]
    return board if len(seen) == len(board.flows) else board.only(seen)


def caller_of(request: Request) -> Caller:
    """Who has sent a request."""
    caller: Caller = request.state.caller
    return caller


TheBoard = Annotated[Board, Depends(board_of)]


def gateway_of(request: Request) -> Gateway | None:
    """The same of other sites, as far as who asks may see them; None where none are asked."""
    gateway: Gateway | None = request.app.state.gateway
    caller: Caller = request.state.caller
    if gateway is None or caller.roles.are_everywhere:
        return gateway
    return gateway.only(caller.roles.sees)


TheGateway = Annotated[Gateway | None, Depends(gateway_of)]


def span_of(
    board: TheBoard,
    minutes: Annotated[int | None, Query(ge=1, le=_MOST, description="The last so many minutes.")] = None,
    hours: Annotated[int | None, Query(ge=1, le=_MOST, description="The last so many hours; added to minutes.")] = None,
    start: Annotated[
        int | None, Query(alias="from", ge=0, le=_LATEST_MS, description="Begin, in milliseconds since the epoch.")
    ] = None,
    end: Annotated[
        int | None, Query(alias="to", ge=0, le=_LATEST_MS, description="End, in milliseconds since the epoch.")
    ] = None,
) -> Span:
    """The range that is asked for; without a word, the last two hours."""
    now = board.now_ms()
    if start is None and end is None:
        length = (minutes or 0) * _MINUTE_MS + (hours or 0) * _HOUR_MS
        return Span(max(0, now - (length or WINDOW_MS)), now + 1)
    if minutes is not None or hours is not None:
        raise RequestProblem(400, "two ranges", "give either minutes and hours, or from and to")
    end = now + 1 if end is None else end
    start = max(0, end - WINDOW_MS) if start is None else start
    if start > end:
        raise RequestProblem(400, "range ends before it begins", f"from {start} is later than to {end}")
    return Span(start, end)


TheSpan = Annotated[Span, Depends(span_of)]
Samples = Annotated[int, Query(ge=1, le=_MOST, description="At most so many parts of the range.")]


def duration_span(board: TheBoard, duration: Duration = Duration.LAST_ONE_HOUR) -> Span:
    """SMM's way to name one."""
    return duration.until(board.now_ms())


SmmSpan = Annotated[Span, Depends(duration_span)]


def metric_of(metric: Annotated[str, Path(description=", ".join(one.value for one in Metric))]) -> Metric:
    """A metric by its name."""
    for one in Metric:
        if one.value == metric:
            return one
    raise unknown("metric", metric, (one.value for one in Metric))


TheMetric = Annotated[Metric, Depends(metric_of)]


def flow_of(board: TheBoard, gateway: TheGateway, source: str, target: str) -> Flow:
    """A flow by its clusters; one of our own."""
    flow = Flow(source, target)
    if flow not in board.flows:
        if gateway is not None and (elsewhere := gateway.where(flow)) is not None:
            raise RequestProblem(409, "flow of another site", elsewhere, "other-site")
        raise unknown("flow", str(flow), map(str, board.flows))
    return flow


TheFlow = Annotated[Flow, Depends(flow_of)]


def flows_from(board: Board, source: str) -> list[Flow]:
    """The flows out of a cluster. Raises RequestProblem where it is not one of a flow."""
    found = [flow for flow in board.flows if flow.source == source]
    if not found:
        raise unknown("source", source, {flow.source for flow in board.flows})
    return found


def iso_if_known(milliseconds: int | None) -> str | None:
    """The same of a moment that may not be known."""
    return None if milliseconds is None else time_of(milliseconds)
