"""The endpoints of Streams Messaging Manager behind its page "Cluster Replications"."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter
from pydantic import BaseModel

from srm_spark.api.asked import SmmSpan, TheBoard, TheGateway, flows_from
from srm_spark.api.gateway import look
from srm_spark.api.problems import RESPONSES, RequestProblem, unknown
from srm_spark.core.model import Flow
from srm_spark.core.series import Metric, Span, Stats
from srm_spark.look.board import Board
from srm_spark.look.figures import copied_to, timeline, topic_figures, topics_of

router = APIRouter(prefix="/api/v1/admin/replication-stats", tags=["SMM"], responses=RESPONSES)
_POINTS = 120


class MetricValue(BaseModel):
    """`ReplicationMetricValueDTO`."""

    min: float | None
    avg: float | None
    max: float | None

    @classmethod
    def of(cls, stats: Stats) -> MetricValue:
        """That of a metric."""
        return cls(min=stats.least, avg=stats.mean, max=stats.most)


class FlowEntry(BaseModel):
    """`ClusterReplicationStatsEntryDTO`."""

    name: str
    source: str
    target: str
    status: str
    numTopics: int | None
    numConsumerGroups: int | None
    throughputBpsMetric: MetricValue
    replicationLatencyMsMetric: MetricValue
    checkpointLatencyMsMetric: MetricValue


class ClusterStats(BaseModel):
    """`ClusterReplicationStatsDTO`."""

    clusterReplicationStatsEntryMap: dict[str, FlowEntry]


class TopicEntry(BaseModel):
    """`TopicReplicationStatsEntryDTO`: `topic` is the remote one."""

    topic: str
    sourceTopic: str
    originalTopic: str
    source: str
    numPartitions: int
    numConsumerGroups: int
    throughputBpsMetric: MetricValue
    replicationLatencyMsMetric: MetricValue
    checkpointLatencyMsMetric: MetricValue


class Timelines(BaseModel):
    """`TopicTimelineMetricsDTO`: milliseconds since the epoch to value."""

    throughputTimelineMetrics: dict[str, float]
    replicationLatencyTimelineMetrics: dict[str, float]


class TopicStats(Timelines):
    """`TopicReplicationStatsDTO`."""

    replicationStatsByTopic: dict[str, TopicEntry]


@router.get("/is-configured", operation_id="isStreamsReplicationManagerConfigured")
def is_configured() -> bool:
    """It is: this is its service."""
    return True


@router.get("", operation_id="clusterReplicationStats")
def cluster_stats(board: TheBoard, gateway: TheGateway, span: SmmSpan) -> ClusterStats:
    """All flows."""
    entries = {}
    for found in look(board, gateway, span).all:
        flow = found.now.flow
        entries[str(flow)] = FlowEntry(
            name=str(flow),
            source=flow.source,
            target=flow.target,
            status=found.now.health.value,
            numTopics=found.now.topics,
            numConsumerGroups=found.now.groups,
            throughputBpsMetric=MetricValue.of(found.figures.throughput),
            replicationLatencyMsMetric=MetricValue.of(found.figures.replication_latency),
            checkpointLatencyMsMetric=MetricValue.of(found.figures.checkpoint_latency),
        )
    return ClusterStats(clusterReplicationStatsEntryMap=entries)


@router.get("/topics/{topic}", operation_id="topicTimelineMetrics")
def topic_timelines(board: TheBoard, span: SmmSpan, topic: str) -> Timelines:
    """A remote topic over time."""
    found = [copied_to(board, alias, topic) for alias in board.targets]
    filled = [one for one in found if one]
    if not filled:
        raise unknown("remote topic", topic, [])
    if len(filled) > 1:
        raise RequestProblem(409, "several targets", f"{topic} is a topic of several targets; ask a path of /v3")
    return Timelines(**_timelines(board, filled[0], span))


@router.get("/{source}/topics", operation_id="topicReplicationStats")
def topic_stats(board: TheBoard, span: SmmSpan, source: str) -> TopicStats:
    """All topics of a source, and all of them together over time."""
    flows = flows_from(board, source)
    if len(flows) > 1:
        raise RequestProblem(409, "several targets", f"{source} is copied to several targets; ask a path of /v3")
    (flow,) = flows
    entries = {}
    for row in topic_figures(board, flow, span, topics_of(board, flow)):
        entries[row.topic.remote] = TopicEntry(
            topic=row.topic.remote,
            sourceTopic=row.topic.name,
            originalTopic=row.topic.original,
            source=flow.source,
            numPartitions=row.topic.partitions,
            numConsumerGroups=len(row.topic.groups),
            throughputBpsMetric=MetricValue.of(row.figures.throughput),
            replicationLatencyMsMetric=MetricValue.of(row.figures.replication_latency),
            checkpointLatencyMsMetric=MetricValue.of(row.figures.checkpoint_latency),
        )
    return TopicStats(replicationStatsByTopic=entries, **_timelines(board, [(flow, None)], span))


def _timelines(board: Board, of: Sequence[tuple[Flow, str | None]], span: Span) -> dict[str, dict[str, float]]:
    def line(metric: Metric) -> dict[str, float]:
        parts = timeline(board, of, metric, span, _POINTS)
        return {str(part.span.midpoint): part.mean for part in parts if part.mean is not None}

    return {
        "throughputTimelineMetrics": line(Metric.BYTE_RATE),
        "replicationLatencyTimelineMetrics": line(Metric.REPLICATION_LATENCY),
    }
