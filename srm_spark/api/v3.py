"""Our own REST API: flows, their topics, partitions and groups, with lag and with what is unknown since when.

Times are ISO 8601 in UTC; what is not known is null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from srm_spark.api.asked import Samples, TheBoard, TheFlow, TheGateway, TheMetric, TheSpan, iso_if_known
from srm_spark.api.fresh import UNCHANGED, ThePolled, of_flow, of_flows
from srm_spark.api.gateway import ServiceAnswer, SiteAnswer, look
from srm_spark.api.problems import RESPONSES, RequestProblem, unknown
from srm_spark.core.flow_series import FlowNow
from srm_spark.core.metrics import GroupSample, PartitionSample
from srm_spark.core.model import Flow
from srm_spark.core.moments import time_of
from srm_spark.core.series import Line, Span, Stats
from srm_spark.look.board import Board
from srm_spark.look.figures import (
    Figures,
    FlowFigures,
    TopicFigures,
    flow_figures,
    history_of,
    known_since,
    line_of,
    topic_figures,
    topics_of,
)

router = APIRouter(prefix="/v3", tags=["srm-spark V3"], responses={**RESPONSES, **UNCHANGED})
_PAGE = 100
_LARGEST_PAGE = 1000
_POINTS = 120
Offset = Annotated[int, Query(ge=0, le=10**9, description="How many to leave out in front.")]
Limit = Annotated[int, Query(ge=1, le=_LARGEST_PAGE, description="At most so many.")]
Search = Annotated[str, Query(max_length=249, description="Only names that contain this.")]


class Summary(BaseModel):
    """A metric in the range."""

    min: float | None
    avg: float | None
    max: float | None
    latest: float | None
    latest_at: str | None
    samples: int

    @classmethod
    def of(cls, stats: Stats) -> Summary:
        """That of a metric."""
        return cls(
            min=stats.least,
            avg=stats.mean,
            max=stats.most,
            latest=stats.latest,
            latest_at=iso_if_known(stats.latest_at),
            samples=stats.samples,
        )


class RangeDocument(BaseModel):
    """What the summaries are of."""

    start: str
    end: str

    @classmethod
    def of(cls, span: Span) -> RangeDocument:
        """That of a span."""
        return cls(start=time_of(span.start), end=time_of(span.end))


class LagDocument(BaseModel):
    """How far copies are behind."""

    records: int | None
    seconds: float | None


class FiguresDocument(BaseModel):
    """Of a flow or a topic in the range."""

    bytes_per_second: Summary
    records_per_second: Summary
    replication_latency_ms: Summary
    checkpoint_latency_ms: Summary

    @classmethod
    def of(cls, figures: Figures) -> FiguresDocument:
        """Those."""
        return cls(
            bytes_per_second=Summary.of(figures.throughput),
            records_per_second=Summary.of(figures.record_rate),
            replication_latency_ms=Summary.of(figures.replication_latency),
            checkpoint_latency_ms=Summary.of(figures.checkpoint_latency),
        )


class AuditDocument(BaseModel):
    """What the driver found by comparing copies with their records."""

    ended_at: str | None
    differing: int | None
    first: str | None
    late: str | None
    """Why no comparison has ended for too long; else null."""

    @classmethod
    def of(cls, now: FlowNow) -> AuditDocument | None:
        """That of a flow; None where none is wanted, or nothing is known of it."""
        if now.audited_at is None and now.audit_late is None:
            return None
        ended = iso_if_known(now.audited_at)
        return cls(ended_at=ended, differing=now.differing, first=now.differs, late=now.audit_late)


class FlowDocument(BaseModel):
    """A flow."""

    flow: str
    source: str
    target: str
    status: str
    why: list[str]
    unknown_since: str | None
    state: str | None
    since: str | None
    driver: str | None
    heard_at: str | None
    topics: int | None
    partitions: int | None
    groups: int | None
    lag: LagDocument
    clock_skew_ms: int | None
    rpo_goal_seconds: int | None = None
    """Most that `lag.seconds` should be; null where `rpo.goal.seconds` is not set."""
    audit: AuditDocument | None = None
    """Null where `audit.interval.seconds` is not set, and before the first one has ended."""
    figures_since: str | None
    """Where the range begins before any figure is kept; else null."""
    figures: FiguresDocument
    site: str | None = None
    """Of another site that was asked: the alias of its cluster."""
    site_url: str | None = None
    """Its service, where everything else of the flow is told, and where it is steered."""

    @classmethod
    def of(
        cls, found: FlowFigures, since: int | None, site: str | None = None, site_url: str | None = None
    ) -> FlowDocument:
        """That of a flow; `since` is `known_since`."""
        now = found.now
        return cls(
            flow=str(now.flow),
            source=now.flow.source,
            target=now.flow.target,
            status=now.health.value,
            why=list(now.why),
            unknown_since=iso_if_known(now.unknown_since),
            state=None if now.state is None else now.state.value,
            since=iso_if_known(now.since),
            driver=now.driver,
            heard_at=iso_if_known(now.heard_at),
            topics=now.topics,
            partitions=now.partitions,
            groups=now.groups,
            lag=LagDocument(records=now.lag_records, seconds=now.lag_seconds),
            clock_skew_ms=now.skew_ms,
            rpo_goal_seconds=now.rpo_goal,
            audit=AuditDocument.of(now),
            figures_since=iso_if_known(since),
            figures=FiguresDocument.of(found.figures),
            site=site,
            site_url=site_url,
        )


class ServiceDocument(BaseModel):
    """A service of another site; `kind` is null where it answered."""

    url: str
    advertised_at: str | None
    kind: str | None
    why: str | None

    @classmethod
    def of(cls, answer: ServiceAnswer) -> ServiceDocument:
        """That of an answer."""
        kind = None if answer.kind is None else answer.kind.value
        return cls(url=answer.url, advertised_at=iso_if_known(answer.advertised_at), kind=kind, why=answer.why)


class SiteDocument(BaseModel):
    """Another site. Where none of its services answers, `kind` and `why` say why, and its flows are unknown."""

    site: str
    answered_at: str | None
    kind: str | None
    why: str | None
    services: list[ServiceDocument]

    @classmethod
    def of(cls, answer: SiteAnswer) -> SiteDocument:
        """That of an answer."""
        return cls(
            site=answer.site,
            answered_at=iso_if_known(answer.answered_at),
            kind=None if answer.kind is None else answer.kind.value,
            why=answer.why,
            services=[ServiceDocument.of(one) for one in answer.services],
        )


class FlowsDocument(BaseModel):
    """All flows, those of other sites behind our own."""

    at: str
    range: RangeDocument
    flows: list[FlowDocument]
    sites: list[SiteDocument] = []


class TopicDocument(BaseModel):
    """A topic of a flow."""

    source_topic: str
    remote_topic: str
    original_topic: str
    partitions: int
    paused_partitions: int
    groups: list[str]
    lag: LagDocument
    figures: FiguresDocument


class TopicsDocument(BaseModel):
    """A page of topics; `total` is of all that match."""

    flow: str
    unknown_since: str | None
    range: RangeDocument
    figures_since: str | None
    total: int
    offset: int
    topics: list[TopicDocument]


class PartitionDocument(BaseModel):
    """A partition of the source, as its newest sample tells."""

    source_topic: str
    partition: int
    remote_topic: str
    state: str | None
    reason: str | None
    lag: LagDocument
    lag_bytes: int | None
    checked_at: str | None
    sampled_at: str


class PartitionsDocument(BaseModel):
    """A page of partitions."""

    flow: str
    unknown_since: str | None
    total: int
    offset: int
    partitions: list[PartitionDocument]


class GroupDocument(BaseModel):
    """A consumer group of the source, as its newest sample tells."""

    group: str
    source_topics: list[str]
    state: str | None
    reason: str | None
    sampled_at: str


class GroupsDocument(BaseModel):
    """A page of groups."""

    flow: str
    unknown_since: str | None
    total: int
    offset: int
    groups: list[GroupDocument]


class PartDocument(Summary):
    """A part of a range in which something is known."""

    start: str
    end: str

    @classmethod
    def part(cls, stats: Stats) -> PartDocument:
        """That of a metric."""
        return cls(start=time_of(stats.span.start), end=time_of(stats.span.end), **Summary.of(stats).model_dump())


class HistoryDocument(BaseModel):
    """A metric over time; parts of which nothing is known are left out."""

    flow: str
    metric: str
    range: RangeDocument
    figures_since: str | None
    parts: list[PartDocument]


class TopicOrder(Enum):
    """What topics are sorted by: by names upwards, by figures downwards and the unknown last."""

    NAME = "name"
    LAG = "lag"
    THROUGHPUT = "throughput"
    REPLICATION_LATENCY = "replication-latency"
    CHECKPOINT_LATENCY = "checkpoint-latency"


_BY_FIGURE: dict[TopicOrder, Callable[[TopicFigures], float | None]] = {
    TopicOrder.LAG: lambda row: row.topic.lag_records,
    TopicOrder.THROUGHPUT: lambda row: row.figures.throughput.mean,
    TopicOrder.REPLICATION_LATENCY: lambda row: row.figures.replication_latency.mean,
    TopicOrder.CHECKPOINT_LATENCY: lambda row: row.figures.checkpoint_latency.mean,
}


Own = Annotated[bool, Query(description="Only flows of this service itself; no other site is asked.")]


@router.get("/flows")
def flows(board: TheBoard, gateway: TheGateway, span: TheSpan, polled: ThePolled, own: Own = False) -> FlowsDocument:
    """All flows."""
    asked = None if own else gateway
    if asked is None:  # else what other sites say now is part of it
        polled.is_of(*of_flows(board, span))
    seen = look(board, asked, span)
    found = [FlowDocument.of(one, known_since(board, one.now.flow, span)) for one in seen.own]
    found += [FlowDocument.of(one.found, None, one.site, one.url) for one in seen.elsewhere.values()]
    sites = [SiteDocument.of(one) for one in seen.sites]
    return FlowsDocument(at=time_of(board.now_ms()), range=RangeDocument.of(span), flows=found, sites=sites)


@router.get("/flows/{source}/{target}")
def one_flow(board: TheBoard, span: TheSpan, flow: TheFlow, polled: ThePolled) -> FlowDocument:
    """One flow."""
    polled.is_of(*of_flow(board, flow, span))
    return _flow(board, flow, span)


@router.get("/flows/{source}/{target}/topics")
def topics(
    *,
    board: TheBoard,
    span: TheSpan,
    flow: TheFlow,
    polled: ThePolled,
    search: Search = "",
    sort: TopicOrder = TopicOrder.NAME,
    offset: Offset = 0,
    limit: Limit = _PAGE,
) -> TopicsDocument:
    """The topics of a flow, a page of them."""
    polled.is_of(*of_flow(board, flow, span))
    total, rows = topic_page(board, flow, span, search=search, sort=sort, offset=offset, limit=limit)
    return TopicsDocument(
        flow=str(flow),
        unknown_since=iso_if_known(board.now(flow).unknown_since),
        range=RangeDocument.of(span),
        figures_since=iso_if_known(known_since(board, flow, span)),
        total=total,
        offset=offset,
        topics=[_topic(row) for row in rows],
    )


def topic_page(
    board: Board, flow: TheFlow, span: Span, *, search: str, sort: TopicOrder, offset: int, limit: int
) -> tuple[int, list[TopicFigures]]:
    """How many topics match, and a page of them; figures are worked out of no more than have to be."""
    found = [one for one in topics_of(board, flow) if search in one.name or search in one.remote]
    if sort is TopicOrder.NAME:
        return len(found), topic_figures(board, flow, span, found[offset : offset + limit])
    figure = _BY_FIGURE[sort]
    rows = topic_figures(board, flow, span, found)
    rows.sort(key=lambda row: (figure(row) is None, -(figure(row) or 0.0)))
    return len(found), rows[offset : offset + limit]


@router.get("/flows/{source}/{target}/partitions")
def partitions(
    *,
    board: TheBoard,
    flow: TheFlow,
    polled: ThePolled,
    topic: str | None = None,
    offset: Offset = 0,
    limit: Limit = _PAGE,
) -> PartitionsDocument:
    """The partitions of a flow, or of one of its source topics."""
    polled.is_of(*of_flow(board, flow))
    now = board.now(flow)
    with board.series(flow) as series:
        found = series.partitions(topic)
    if topic is not None and not found:
        raise unknown(f"topic of {flow}", topic, [one.name for one in topics_of(board, flow)])
    return PartitionsDocument(
        flow=str(flow),
        unknown_since=iso_if_known(now.unknown_since),
        total=len(found),
        offset=offset,
        partitions=[_partition(one, is_known=now.is_known) for one in found[offset : offset + limit]],
    )


@router.get("/flows/{source}/{target}/groups")
def groups(
    *,
    board: TheBoard,
    flow: TheFlow,
    polled: ThePolled,
    search: Search = "",
    offset: Offset = 0,
    limit: Limit = _PAGE,
) -> GroupsDocument:
    """The consumer groups of a flow."""
    polled.is_of(*of_flow(board, flow))
    now = board.now(flow)
    with board.series(flow) as series:
        found: Sequence[GroupSample] = [one for one in series.groups() if search in one.group]
    return GroupsDocument(
        flow=str(flow),
        unknown_since=iso_if_known(now.unknown_since),
        total=len(found),
        offset=offset,
        groups=[_group(one, is_known=now.is_known) for one in found[offset : offset + limit]],
    )


@router.get("/flows/{source}/{target}/history/{metric}")
def history(
    *,
    board: TheBoard,
    span: TheSpan,
    flow: TheFlow,
    polled: ThePolled,
    metric: TheMetric,
    topic: Annotated[str | None, Query(max_length=249, description="Of this source topic.")] = None,
    partition: Annotated[int | None, Query(ge=0, lt=2**31, description="Of this partition of it.")] = None,
    group: Annotated[str | None, Query(max_length=255, description="Of this consumer group.")] = None,
    samples: Samples = _POINTS,
) -> HistoryDocument:
    """A metric over time: of the flow, a topic, a partition or a group, be it still there or not.

    Partitions and groups are in history alone, which has to be kept.
    """
    if partition is not None and topic is None:
        raise RequestProblem(400, "no topic", "a partition is one of a topic: give topic, too")
    if group is not None and topic is not None:
        raise RequestProblem(400, "topic and group", "give either topic or group")
    polled.is_of(*of_flow(board, flow, span))
    if partition is None and group is None:
        line: Line | None = line_of(board, flow, metric, span, None if topic is None else [topic])
    else:
        line = history_of(board, flow, metric, span, topic=topic, partition=partition, group=group)
    if line is None:
        raise RequestProblem(404, "no history", f"no history of {flow} is kept, or none can be read (docs/service.md)")
    return HistoryDocument(
        flow=str(flow),
        metric=metric.value,
        range=RangeDocument.of(span),
        figures_since=iso_if_known(known_since(board, flow, span)),
        parts=[PartDocument.part(one) for one in line.timeline(span, samples)],
    )


def _flow(board: Board, flow: Flow, span: Span) -> FlowDocument:
    return FlowDocument.of(flow_figures(board, flow, span), known_since(board, flow, span))


def _topic(row: TopicFigures) -> TopicDocument:
    topic = row.topic
    return TopicDocument(
        source_topic=topic.name,
        remote_topic=topic.remote,
        original_topic=topic.original,
        partitions=topic.partitions,
        paused_partitions=topic.paused,
        groups=list(topic.groups),
        lag=LagDocument(records=topic.lag_records, seconds=topic.lag_seconds),
        figures=FiguresDocument.of(row.figures),
    )


def _partition(one: PartitionSample, *, is_known: bool) -> PartitionDocument:
    known: dict[str, Any] = {"state": one.state, "reason": one.reason, "lag_bytes": one.lag_bytes}
    return PartitionDocument(
        source_topic=one.partition.topic,
        partition=one.partition.partition,
        remote_topic=one.remote,
        lag=LagDocument(records=one.lag_records if is_known else None, seconds=one.lag_seconds if is_known else None),
        checked_at=iso_if_known(one.checked_at),
        sampled_at=time_of(one.at),
        **(known if is_known else dict.fromkeys(known)),
    )


def _group(one: GroupSample, *, is_known: bool) -> GroupDocument:
    return GroupDocument(
        group=one.group,
        source_topics=list(one.topics),
        state=one.state if is_known else None,
        reason=one.reason if is_known else None,
        sampled_at=time_of(one.at),
    )
