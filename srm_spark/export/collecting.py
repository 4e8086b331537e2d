"""From the figures of flows to what Prometheus takes: names, labels, values. Nothing here waits for anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from srm_spark.config.settings import MetricNames
from srm_spark.core.driver_status import HEALTH_CODES, FlowState
from srm_spark.core.metrics import BOUNDS_MS, UNKNOWN
from srm_spark.core.tallies import Tally
from srm_spark.export import names
from srm_spark.export.figures import ALL, FlowFigures
from srm_spark.export.names import Metric
from srm_spark.flow.sampling import worst_states

_CONNECTOR, _TASK = "MirrorSourceConnector", "0"
_CHECKPOINT_CONNECTOR = "MirrorCheckpointConnector"
_LE = tuple(f"{bound / 1000:g}" for bound in BOUNDS_MS)

Row = tuple[Metric, Sequence[str], float | Tally]
"""A metric, the values of its labels, and its own."""


class FlowCollector(Collector):
    """Asks for the figures of all flows of a driver at each scrape."""

    def __init__(self, figures: Callable[[], Sequence[FlowFigures]]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Family]:
        """All that is known, by the order of their names in `srm_spark.export.names`."""
        families: dict[str, Family] = {}
        for metric, labels, value in rows_of(self._figures()):
            family = families.setdefault(metric.name, _family(metric))
            if isinstance(family, HistogramMetricFamily):
                assert isinstance(value, Tally)
                family.add_metric(labels, *_buckets(value))
            elif isinstance(family, GaugeMetricFamily | CounterMetricFamily):
                assert not isinstance(value, Tally)
                family.add_metric(labels, value)
        yield from families.values()


def rows_of(flows: Sequence[FlowFigures]) -> Iterator[Row]:
    """Every series; one of which nothing is known is not among them."""
    for figures in flows:
        yield from _of_flow(figures)
        yield from _of_topics(figures)
        yield from _of_groups(figures)
        if figures.has_partitions:
            yield from _of_partitions(figures)
        formats = figures.settings.metrics.names
        if MetricNames.LEGACY in formats:
            yield from _of_mirror_maker(figures, names.SOURCE, names.CHECKPOINT, is_new=False)
            yield from _of_clients(figures)
        if MetricNames.NEW in formats:
            yield from _of_mirror_maker(figures, names.NEW_SOURCE, names.NEW_CHECKPOINT, is_new=True)
    if any(MetricNames.LEGACY in figures.settings.metrics.names for figures in flows):
        yield from _of_workers(flows)


def _of_flow(figures: FlowFigures) -> Iterator[Row]:
    flow, status = (str(figures.flow),), figures.status
    for state in FlowState:
        yield names.STATE, (*flow, state.value), float(state is status.state)
    yield names.HEALTH, flow, HEALTH_CODES[status.state]
    yield names.LOST, flow, status.lost_records
    yield from _known(names.RPO_GOAL, flow, figures.settings.rpo_goal_seconds)
    for cluster in (figures.settings.source, figures.settings.target):
        yield from _known(names.CERTIFICATE_END, (*flow, cluster.alias), figures.certificate_end(cluster))
    if figures.checked_ago is not None:
        yield names.AGE, flow, figures.checked_ago
    if figures.view.checkpoints.buckets:
        yield names.CHECKPOINT_LATENCY, flow, figures.view.checkpoints
    if figures.is_running:
        yield from _known(names.TOPICS, flow, status.topics)
        yield from _known(names.PARTITIONS, flow, status.partitions)
        yield names.QUARANTINED, flow, len(status.parked)
        if figures.view.seen:
            yield names.PAUSED, flow, figures.paused
        if status.audit is not None and status.audit.ended is not None:
            yield names.AUDITED, flow, status.audit.records
            yield from _known(names.DIFFERING, flow, status.audit.found_differing(int(time.time() * 1000)))
            yield names.AUDIT_END, flow, status.audit.ended / 1000


def _of_topics(figures: FlowFigures) -> Iterator[Row]:
    flow = str(figures.flow)
    for place, lag in figures.topic_lags():
        yield from _known(names.LAG, (flow, place.topic), lag.records)
        yield from _known(names.LAG_SECONDS, (flow, place.topic), lag.seconds)
    for place, tally in figures.topic_totals():
        yield names.RECORDS, (flow, place.topic), tally.records
        yield names.BYTES, (flow, place.topic), tally.bytes
        if tally.buckets:
            yield names.LATENCY, (flow, place.topic), tally


def _of_groups(figures: FlowFigures) -> Iterator[Row]:
    report = figures.status.consumers
    if report is None or not figures.is_running:
        return
    states = worst_states(report)
    for group in sorted(report.groups):
        state = states[group][0].name.lower() if group in states else UNKNOWN
        yield names.GROUP_STATE, (str(figures.flow), group, state), 1


def _of_partitions(figures: FlowFigures) -> Iterator[Row]:
    flow = str(figures.flow)
    for place, lag in figures.lags():
        labels = (flow, place.topic, place.partition)
        yield from _known(names.PARTITION_LAG, labels, lag.records)
        yield from _known(names.PARTITION_LAG_SECONDS, labels, lag.seconds)
    for place, tally in figures.totals():
        labels = (flow, place.topic, place.partition)
        yield names.PARTITION_RECORDS, labels, tally.records
        yield names.PARTITION_BYTES, labels, tally.bytes


def _of_mirror_maker(
    figures: FlowFigures, source: dict[str, Metric], checkpoint: dict[str, Metric], *, is_new: bool
) -> Iterator[Row]:
    flow = (figures.flow.source, figures.flow.target)
    front = (_CONNECTOR, _TASK, *flow) if is_new else flow
    for place, tally in figures.totals():
        labels = (*front, place.remote, place.partition)
        yield source["record_count"], labels, tally.records
        yield source["byte_count"], labels, tally.bytes
    for place, tally, seconds in figures.copied():
        labels = (*front, place.remote, place.partition)
        yield source["record_rate"], labels, tally.records / seconds
        yield source["byte_rate"], labels, tally.bytes / seconds
        for stem in ("record_age_ms", "replication_latency_ms"):
            yield from _statistics(source, stem, labels, tally)
    front = (_CHECKPOINT_CONNECTOR, _TASK, *flow) if is_new else flow
    for (group, topic, partition), tally in _checkpoints(figures).items():
        yield from _statistics(checkpoint, "checkpoint_latency_ms", (*front, group, topic, partition), tally)


def _of_clients(figures: FlowFigures) -> Iterator[Row]:
    # The JMX exporter leaves the quotes of a client's id where they are, and dashboards look for them.
    consumer = f'"{figures.flow}|{_CONNECTOR}-{_TASK}|replication-consumer"'
    for place, lag in figures.lags():
        yield from _known(names.CLIENT_LAG, (consumer, place.topic, place.partition), lag.records)
    written = sum(tally.bytes for tally in figures.view.topics.values())
    yield names.CLIENT_BYTES, (f'"connector-producer-{figures.flow}.{_CONNECTOR}-{_TASK}"',), written


def _of_workers(flows: Sequence[FlowFigures]) -> Iterator[Row]:
    running = sum(1 for figures in flows if figures.is_running)
    owned = sum(1 for figures in flows if figures.status.state in (FlowState.RUNNING, FlowState.STALLED))
    yield names.CONNECTORS, (), running
    yield names.TASKS, (), running
    yield names.ASSIGNED_CONNECTORS, (), owned
    yield names.ASSIGNED_TASKS, (), owned


def _checkpoints(figures: FlowFigures) -> dict[tuple[str, str, str], Tally]:
    found: dict[tuple[str, str, str], Tally] = {}
    for (group, remote), tally in figures.checkpoints().items():
        partition = str(remote.partition) if figures.has_partitions else ALL
        found.setdefault((group, remote.topic, partition), Tally()).add(tally)
    return found


def _statistics(metrics: dict[str, Metric], stem: str, labels: Sequence[str], tally: Tally) -> Iterator[Row]:
    count = sum(tally.buckets.values())
    values = {"": tally.last, "_min": tally.least, "_max": tally.most, "_avg": tally.total / count if count else None}
    for ending, value in values.items():
        yield from _known(metrics[stem + ending], labels, value)


def _known(metric: Metric, labels: Sequence[str], value: float | None) -> Iterable[Row]:
    return () if value is None else ((metric, labels, value),)


def _family(metric: Metric) -> Family:
    kinds = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily, "histogram": HistogramMetricFamily}
    name = metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name
    made: Family = kinds[metric.kind](name, metric.means, labels=metric.labels)
    return made


def _buckets(tally: Tally) -> tuple[list[tuple[str, float]], float]:
    """As Prometheus counts them: each with all below it; the sum in seconds."""
    counts = [tally.buckets.get(number, 0) for number in range(len(BOUNDS_MS) + 1)]
    return list(zip((*_LE, "+Inf"), map(float, accumulate(counts)), strict=True)), tally.total / 1000
