"""SRM's REST API, V1 and what is known of V2.

A V1 path names no target, since SRM's Service has one. Where flows into several targets fit, which would be other
figures, the answer is a problem that says so; paths of V2 and /v3 name the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from srm_spark.api.asked import Samples, TheBoard, TheFlow, TheGateway, TheMetric, TheSpan, flows_from
from srm_spark.api.gateway import look
from srm_spark.api.models import ClusterInfo, ReplicationInfo, StatsDocument, TimeRange, TimeSeriesResponse, TopicInfo
from srm_spark.api.problems import RESPONSES, RequestProblem, unknown
from srm_spark.core.model import Flow
from srm_spark.core.series import Metric, Span
from srm_spark.look.board import Board
from srm_spark.look.figures import Figures, FlowFigures, TopicFigures, copied_to, timeline, topic_figures, topics_of

router = APIRouter(tags=["SRM V1"], responses=RESPONSES)
v2 = APIRouter(prefix="/v2", tags=["SRM V2"], responses=RESPONSES)
_SAMPLES = 1000


@router.get("/replications", operation_id="replicationInfo")
def replications(
    board: TheBoard, gateway: TheGateway, span: TheSpan, source: Annotated[list[str] | None, Query()] = None
) -> dict[str, ReplicationInfo]:
    """All flows, or those from some sources."""
    rows = look(board, gateway, span).all
    sources = {row.now.flow.source for row in rows}
    for one in source or ():
        if one not in sources:
            raise unknown("source", one, sources)
    return {str(row.now.flow): _replication(row) for row in rows if not source or row.now.flow.source in source}


@router.get("/remote-topics/{source}", operation_id="remoteTopics")
def remote_topics(board: TheBoard, span: TheSpan, source: str) -> dict[str, TopicInfo]:
    """The topics that are copied from a source, by their names on the target."""
    found: dict[str, TopicInfo] = {}
    for flow in flows_from(board, source):
        for row in topic_figures(board, flow, span, topics_of(board, flow)):
            if row.topic.remote in found:
                raise _ambiguous(f"topic {row.topic.remote}")
            found[row.topic.remote] = _topic(row)
    return found


@router.get("/topic-metrics/{topic}/{metric}", operation_id="topicMetrics")
def topic_metrics(
    board: TheBoard, span: TheSpan, topic: str, metric: TheMetric, samples: Samples = _SAMPLES
) -> TimeSeriesResponse:
    """A remote topic over time."""
    targets = [alias for alias in board.targets if copied_to(board, alias, topic)]
    if len(targets) > 1:
        raise _ambiguous(f"topic {topic}")
    if not targets:
        raise unknown("remote topic", topic, _remote_names(board, board.targets))
    return _series(board, copied_to(board, targets[0], topic), metric, span, samples)


@router.get("/cluster-metrics/{cluster}/{metric}", operation_id="clusterMetrics")
def cluster_metrics(
    board: TheBoard, span: TheSpan, cluster: str, metric: TheMetric, samples: Samples = _SAMPLES
) -> TimeSeriesResponse:
    """Everything that is copied from a source, over time."""
    flows = flows_from(board, cluster)
    if len(flows) > 1:
        raise _ambiguous(f"cluster {cluster}")
    return _series(board, [(flows[0], None)], metric, span, samples)


@router.get("/topic-metrics-local/{topic}/{metric}", operation_id="topicMetricsLocal")
def topic_metrics_local(board: TheBoard, span: TheSpan, topic: str, metric: TheMetric) -> TimeSeriesResponse:
    """The same: one instance holds everything."""
    return topic_metrics(board, span, topic, metric)


@router.get("/cluster-metrics-local/{cluster}/{metric}", operation_id="clusterMetricsLocal")
def cluster_metrics_local(board: TheBoard, span: TheSpan, cluster: str, metric: TheMetric) -> TimeSeriesResponse:
    """The same: one instance holds everything."""
    return cluster_metrics(board, span, cluster, metric)


@v2.get("/cluster-info/{kafka_cluster_id}")
def cluster_info(board: TheBoard, gateway: TheGateway, kafka_cluster_id: str) -> ClusterInfo:
    """The alias of a cluster, by Kafka's own id: of the targets, which are read, and of other sites."""
    known = (
        {} if gateway is None or gateway.sees is not None else {site.cluster_id: site.alias for site in gateway.sites}
    )
    known |= {view.cluster_id: view.alias for view in board.targets.values()}
    if kafka_cluster_id not in known:
        raise unknown("cluster id", kafka_cluster_id, (one for one in known if one is not None))
    return ClusterInfo(alias=known[kafka_cluster_id], kafkaClusterId=kafka_cluster_id)


@v2.get("/topic-metrics/{source}/{target}/{upstream_topic}/{metric}")
def upstream_topic_metrics(
    *,
    board: TheBoard,
    span: TheSpan,
    flow: TheFlow,
    upstream_topic: str,
    metric: TheMetric,
    samples: Samples = _SAMPLES,
) -> TimeSeriesResponse:
    """A topic of the source over time, under any policy."""
    names = [topic.name for topic in topics_of(board, flow)]
    if upstream_topic not in names:
        raise unknown(f"topic of {flow}", upstream_topic, names)
    return _series(board, [(flow, upstream_topic)], metric, span, samples)


@v2.get("/topic-metrics/{target}/{downstream_topic}/{metric}")
def downstream_topic_metrics(
    *,
    board: TheBoard,
    span: TheSpan,
    target: str,
    downstream_topic: str,
    metric: TheMetric,
    samples: Samples = _SAMPLES,
) -> TimeSeriesResponse:
    """A topic of the target over time, by all flows that write it: right under any policy."""
    if target not in board.targets:
        raise unknown("target", target, board.targets)
    found = copied_to(board, target, downstream_topic)
    if not found:
        raise unknown(f"remote topic on {target}", downstream_topic, _remote_names(board, [target]))
    return _series(board, found, metric, span, samples)


def _remote_names(board: Board, targets: object) -> set[str]:
    names = set()
    for flow in board.flows:
        if flow.target in targets:  # type: ignore[operator]
            names |= {topic.remote for topic in topics_of(board, flow)}
    return names


def _ambiguous(what: str) -> RequestProblem:
    detail = f"{what} belongs to flows into several targets; ask a path of /v2 or /v3, which names the target"
    return RequestProblem(409, "several targets", detail)


def _replication(found: FlowFigures) -> ReplicationInfo:
    flow = found.now.flow
    return ReplicationInfo(
        name=str(flow),
        source=flow.source,
        target=flow.target,
        status=found.now.health.value,
        numTopics=found.now.topics,
        numConsumerGroups=found.now.groups,
        **_documents(found.figures),
    )


def _topic(row: TopicFigures) -> TopicInfo:
    return TopicInfo(
        name=row.topic.remote,
        source=row.flow.source,
        upstreamTopic=row.topic.name,
        originalTopic=row.topic.original,
        numPartitions=row.topic.partitions,
        numConsumerGroups=len(row.topic.groups),
        **_documents(row.figures, [row.topic.remote], row.topic.groups),
    )


def _documents(figures: Figures, topics: Sequence[str] = (), groups: Sequence[str] = ()) -> dict[str, StatsDocument]:
    replication, checkpoint = figures.replication_latency, figures.checkpoint_latency
    return {
        "throughputBps": StatsDocument.of(Metric.BYTE_RATE.value, figures.throughput, topics),
        "replicationLatencyMs": StatsDocument.of(Metric.REPLICATION_LATENCY.value, replication, topics),
        "checkpointLatencyMs": StatsDocument.of(Metric.CHECKPOINT_LATENCY.value, checkpoint, topics, groups),
    }


def _series(
    board: Board, of: Sequence[tuple[Flow, str | None]], metric: Metric, span: Span, samples: int
) -> TimeSeriesResponse:
    topics = sorted({topic for _, topic in of if topic is not None})
    parts = timeline(board, of, metric, span, samples)
    nows = [board.now(flow) for flow, _ in of]
    return TimeSeriesResponse(
        metrics=[StatsDocument.of(metric.value, part, topics) for part in parts],
        errors=sorted(f"{now.flow}: {', '.join(now.why)}" for now in nows if not now.is_known),
        range=TimeRange.of(span),
    )
