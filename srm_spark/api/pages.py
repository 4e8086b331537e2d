"""The pages for people: all flows, and one flow with its topics. Rendered here; they can be read without a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from srm_spark.api import wording
from srm_spark.api.asked import Duration, TheBoard, TheFlow, TheGateway
from srm_spark.api.charts import HEIGHT, WIDTH, Measure, chart
from srm_spark.api.control import Desk, TheDesk
from srm_spark.api.fresh import ThePolled, of_flow, of_flows
from srm_spark.api.gateway import look
from srm_spark.api.roles import Role
from srm_spark.api.root import rooted
from srm_spark.api.tokens import Tokens
from srm_spark.api.topology import MOST_CLUSTERS, picture
from srm_spark.api.v3 import TopicOrder, topic_page
from srm_spark.api.v3_moves import TheMoves
from srm_spark.core.flow_series import FlowNow, Health
from srm_spark.core.model import Flow
from srm_spark.core.series import Metric, Span, Stats
from srm_spark.look.board import Board
from srm_spark.look.figures import FlowFigures, flow_figures, known_since, timeline

FOLDER = Path(__file__).parent
router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_PAGE = 100
_POINTS = 120
_DAY_MS = 86_400_000
_MOST_OPENED = 20
"""Flows whose charts one page shows; of more the first one is closed."""
_TABS = ("overview", "lists", "groups", "losses", "quarantine", "explain", "events", "offsets", "changes", "moves")


class Shown(Enum):
    """What of the figures of a range is shown."""

    AVG = "avg"
    MAX = "max"
    MIN = "min"

    def of(self, stats: Stats) -> float | None:
        """That one."""
        return {Shown.AVG: stats.mean, Shown.MAX: stats.most, Shown.MIN: stats.least}[self]


class FlowOrder(Enum):
    """What flows are sorted by; the worst first without a word."""

    STATUS = "status"
    SOURCE = "source"
    TARGET = "target"
    TOPICS = "topics"
    GROUPS = "groups"
    THROUGHPUT = "throughput"
    REPLICATION_LATENCY = "replication-latency"
    CHECKPOINT_LATENCY = "checkpoint-latency"
    LAG = "lag"


_HEALTH_ORDER = {Health.ACTIVE: "1", Health.WARNING: "2", Health.INACTIVE: "3"}


@dataclass(frozen=True)
class Asked:
    """What a page shows, as its address says; every link of a page is one of these."""

    path: str
    shown: Shown
    duration: Duration
    search: str
    sort: FlowOrder | TopicOrder
    is_ascending: bool
    offset: int = 0
    opened: tuple[str, ...] = ()
    """Flows whose charts are shown below their rows."""

    def link(self, **other: Any) -> str:
        """The address with something else; another order begins with its first page."""
        values = {
            "show": self.shown.value,
            "range": self.duration.value,
            "search": self.search,
            "sort": self.sort.value,
            "order": "asc" if self.is_ascending else "desc",
            "open": self.opened,
            **other,
        }
        said = {name: value for name, value in values.items() if value != ""}
        return f"{rooted(self.path)}?{urlencode(said, doseq=True)}"

    def toggled(self, flow: Flow) -> str:
        """The address with the charts of that flow, or without them where they are shown."""
        others = tuple(one for one in self.opened if one != str(flow))
        return self.link(open=others if str(flow) in self.opened else (*others[1 - _MOST_OPENED :], str(flow)))

    def sorted_by(self, sort: str) -> str:
        """The address of another order; the other way round where it is this one."""
        is_turned = sort == self.sort.value and self.path == "/"
        return self.link(sort=sort, order=("desc" if self.is_ascending else "asc") if is_turned else "")


def flow_path(flow: Flow) -> str:
    """Path of a flow's page."""
    return f"/flows/{quote(flow.source, safe='')}/{quote(flow.target, safe='')}"


def environment() -> Environment:
    """Templates, which escape whatever they are given."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (wording.duration, wording.in_seconds, wording.number, wording.moment, wording.stamp, wording.day):
        made.filters[function.__name__] = function
    made.globals |= {
        "durations": list(Duration),
        "shown_ones": list(Shown),
        "width": WIDTH,
        "height": HEIGHT,
        "rooted": rooted,
        "flow_path": lambda flow: rooted(flow_path(flow)),
        "own_flow_path": flow_path,
        "rate": wording.rate,
        "latency": wording.latency,
        "tab_names": _TABS,
    }
    return made


TEMPLATES = environment()


def acting_values(request: Request, desk: Desk) -> dict[str, Any]:
    """What forms of a page of a flow need."""
    tokens: Tokens = request.app.state.tokens
    return {"may_act": desk.role >= Role.OPERATOR, "token": tokens.make(desk.caller)}


Show = Annotated[Shown, Query(alias="show")]
Range = Annotated[Duration, Query(alias="range")]
SearchText = Annotated[str, Query(alias="search", max_length=249)]


@router.get("/")
def overview(
    *,
    board: TheBoard,
    gateway: TheGateway,
    polled: ThePolled,
    show: Show = Shown.AVG,
    duration: Range = Duration.LAST_ONE_HOUR,
    search: SearchText = "",
    sort: FlowOrder = FlowOrder.STATUS,
    order: Literal["asc", "desc"] | None = None,
    opened: Annotated[tuple[str, ...], Query(alias="open", max_length=_MOST_OPENED)] = (),
) -> str:
    """All flows."""
    is_ascending = sort in (FlowOrder.SOURCE, FlowOrder.TARGET) if order is None else order == "asc"
    asked = Asked("/", show, duration, search, sort, is_ascending, opened=tuple(dict.fromkeys(opened)))
    span = duration.until(board.now_ms())
    if gateway is None:  # else what other sites say now is part of it
        polled.is_of(*of_flows(board, span))
    seen = look(board, gateway, span)
    found = [row for row in seen.all if search in row.now.flow.source]
    return _rendered(
        board,
        "overview.html",
        asked,
        events="/v3/events/stream",
        title="Cluster Replications",
        picture=picture([row.now.flow for row in found]),
        drawn=_drawn_last([row.now for row in found]),
        unread={alias: view.why_not for alias, view in board.targets.items() if view.why_not is not None},
        most_clusters=MOST_CLUSTERS,
        charts={
            flow: _charts(board, flow, asked, span)
            for flow in (row.now.flow for row in found)
            if str(flow) in asked.opened and flow not in seen.elsewhere
        },
        rows=_sorted(found, sort, show, is_ascending=is_ascending),
        known_since=max(filter(None, (known_since(board, row.now.flow, span) for row in seen.own)), default=None),
        all_count=len(seen.all),
        elsewhere=seen.elsewhere,
        sites_why_not=seen.why_not,
    )


def _drawn_last(flows: Sequence[FlowNow]) -> list[tuple[int, FlowNow]]:
    """With their numbers, the worst last: what is drawn later lies upon what is there."""
    return sorted(enumerate(flows), key=lambda one: _HEALTH_ORDER[one[1].health])


_BY_NAME: dict[FlowOrder, Callable[[FlowFigures], str]] = {
    FlowOrder.STATUS: lambda row: _HEALTH_ORDER[row.now.health],
    FlowOrder.SOURCE: lambda row: row.now.flow.source,
    FlowOrder.TARGET: lambda row: row.now.flow.target,
}


def _sorted(rows: Sequence[FlowFigures], order: FlowOrder, shown: Shown, *, is_ascending: bool) -> list[FlowFigures]:
    """In that order, the worst status being the highest; the unknown last in any case."""
    by_flow = sorted(rows, key=lambda row: row.now.flow)
    if order in _BY_NAME:
        return sorted(by_flow, key=_BY_NAME[order], reverse=not is_ascending)
    figures: dict[FlowOrder, Callable[[FlowFigures], float | None]] = {
        FlowOrder.TOPICS: lambda row: row.now.topics,
        FlowOrder.GROUPS: lambda row: row.now.groups,
        FlowOrder.THROUGHPUT: lambda row: shown.of(row.figures.throughput),
        FlowOrder.REPLICATION_LATENCY: lambda row: shown.of(row.figures.replication_latency),
        FlowOrder.CHECKPOINT_LATENCY: lambda row: shown.of(row.figures.checkpoint_latency),
        FlowOrder.LAG: lambda row: row.now.lag_records,
    }
    figure, sign = figures[order], 1 if is_ascending else -1
    return sorted(by_flow, key=lambda row: (figure(row) is None, sign * (figure(row) or 0.0)))


@router.get("/flows/{source}/{target}")
def flow_page(
    *,
    request: Request,
    board: TheBoard,
    desk: TheDesk,
    flow: TheFlow,
    polled: ThePolled,
    moves: TheMoves,
    show: Show = Shown.AVG,
    duration: Range = Duration.LAST_ONE_HOUR,
    search: SearchText = "",
    sort: TopicOrder = TopicOrder.NAME,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> str:
    """One flow."""
    asked = Asked(flow_path(flow), show, duration, search, sort, is_ascending=sort is TopicOrder.NAME, offset=offset)
    span = duration.until(board.now_ms())
    failover = moves.last_failover(flow)
    rto_goal = moves.goal(flow)
    polled.is_of(*of_flow(board, flow, span), failover, rto_goal)
    total, topics = topic_page(board, flow, span, search=search, sort=sort, offset=offset, limit=_PAGE)
    return _rendered(
        board,
        "flow.html",
        asked,
        events=f"/v3{flow_path(flow)}/events/stream",
        title=str(flow),
        row=flow_figures(board, flow, span),
        known_since=known_since(board, flow, span),
        failover=failover,
        rto_goal=rto_goal,
        topics=topics,
        total=total,
        next_offset=offset + _PAGE if offset + _PAGE < total else None,
        charts=_charts(board, flow, asked, span),
        **acting_values(request, desk),
    )


def _charts(board: Board, flow: Flow, asked: Asked, span: Span) -> list[Any]:
    rate, latency = Measure(wording.rate, wording.rate_unit), Measure(wording.latency, wording.latency_unit)
    return [
        chart(title, timeline(board, [(flow, None)], metric, span, _POINTS), span, asked.shown.of, measure)
        for title, metric, measure in (
            ("Throughput", Metric.BYTE_RATE, rate),
            ("Replication latency", Metric.REPLICATION_LATENCY, latency),
            ("Checkpoint latency", Metric.CHECKPOINT_LATENCY, latency),
            ("Lag", Metric.RECORDS_LAG, Measure(wording.records, wording.records_unit)),
            ("RPO", Metric.SECONDS_LAG, Measure(wording.seconds, wording.seconds_unit)),
        )
    ]


def _rendered(board: Board, template: str, asked: Asked, *, sites_why_not: Sequence[str] = (), **values: Any) -> str:
    is_long = asked.duration.until(0).start < -_DAY_MS
    return TEMPLATES.get_template(template).render(
        asked=asked,
        at=board.now_ms(),
        why_not=[*board.why_not_ready(), *sites_why_not],
        axis=wording.day if is_long else wording.clock,
        **values,
    )
