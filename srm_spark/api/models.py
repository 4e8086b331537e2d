"""The objects of SRM's REST API, field by field as its Swagger document of Runtime 7.2.1 has them. Unknown is null."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from srm_spark.core.moments import time_of
from srm_spark.core.series import Span, Stats


class TimeRange(BaseModel):
    """Milliseconds since the epoch."""

    start: int
    end: int
    midpoint: int
    description: str

    @classmethod
    def of(cls, span: Span) -> TimeRange:
        """That of a span."""
        return cls(
            start=span.start,
            end=span.end,
            midpoint=span.midpoint,
            description=f"{time_of(span.start)} to {time_of(span.end)}",
        )


class StatsDocument(BaseModel):
    """`Stats` of SRM."""

    name: str
    min: float | None
    max: float | None
    sum: float | None
    avg: float | None
    samples: int
    latestTimestamp: int | None
    latestValue: float | None
    range: TimeRange
    groups: list[str] = []
    topics: list[str] = []
    partitions: list[str] = []

    @classmethod
    def of(cls, name: str, stats: Stats, topics: Sequence[str] = (), groups: Sequence[str] = ()) -> StatsDocument:
        """Those of a metric."""
        return cls(
            name=name,
            min=stats.least,
            max=stats.most,
            sum=stats.total,
            avg=stats.mean,
            samples=stats.samples,
            latestTimestamp=stats.latest_at,
            latestValue=stats.latest,
            range=TimeRange.of(stats.span),
            topics=list(topics),
            groups=list(groups),
        )


class ReplicationInfo(BaseModel):
    """A flow."""

    name: str
    source: str
    target: str
    status: str
    numTopics: int | None
    numConsumerGroups: int | None
    throughputBps: StatsDocument
    replicationLatencyMs: StatsDocument
    checkpointLatencyMs: StatsDocument


class TopicInfo(BaseModel):
    """A remote topic."""

    name: str
    source: str
    upstreamTopic: str
    originalTopic: str
    numPartitions: int
    numConsumerGroups: int
    throughputBps: StatsDocument
    replicationLatencyMs: StatsDocument
    checkpointLatencyMs: StatsDocument


class TimeSeriesResponse(BaseModel):
    """A metric over time; `errors` says of which flows nothing is known now."""

    metrics: list[StatsDocument]
    errors: list[str]
    range: TimeRange


class ClusterInfo(BaseModel):
    """A cluster that is read."""

    alias: str
    kafkaClusterId: str
