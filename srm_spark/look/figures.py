"""What is told of flows and topics over a span: how they are, with throughput and latencies. For whoever renders it.

Of a flow of which nothing is known now, no figure is told: they are of before. Timelines, in which each figure has its
time, go on to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from srm_spark.core.flow_series import FlowNow, TopicNow
from srm_spark.core.model import Flow
from srm_spark.core.series import Line, Metric, Span, Stats
from srm_spark.look.board import Board


@dataclass(frozen=True)
class Figures:
    """Of a flow or a topic."""

    throughput: Stats
    """Bytes per second."""
    record_rate: Stats
    """Records per second."""
    replication_latency: Stats
    """Milliseconds from a record's timestamp to its copy."""
    checkpoint_latency: Stats
    """Milliseconds from a commit on the source to its checkpoint."""


@dataclass(frozen=True)
class FlowFigures:
    """A flow now and in the span."""

    now: FlowNow
    figures: Figures


@dataclass(frozen=True)
class TopicFigures:
    """A topic now and in the span."""

    flow: Flow
    topic: TopicNow
    figures: Figures


_METRICS = (Metric.BYTE_RATE, Metric.RECORD_RATE, Metric.REPLICATION_LATENCY, Metric.CHECKPOINT_LATENCY)


def flow_figures(board: Board, flow: Flow, span: Span) -> FlowFigures:
    """Of one flow."""
    now = board.now(flow)
    if not now.is_known:
        return FlowFigures(now, _unknown(span))
    with board.series(flow) as series:
        return FlowFigures(now, Figures(*(series.stats(metric, span) for metric in _METRICS)))


def topics_of(board: Board, flow: Flow) -> list[TopicNow]:
    """The topics of a flow as they were told last; their lag is None where it is not known now."""
    is_known = board.now(flow).is_known
    with board.series(flow) as series:
        topics = series.topics()
    return topics if is_known else [replace(one, lag_records=None, lag_seconds=None) for one in topics]


def topic_figures(board: Board, flow: Flow, span: Span, topics: Sequence[TopicNow]) -> list[TopicFigures]:
    """Of these topics of a flow."""
    if not board.now(flow).is_known:
        return [TopicFigures(flow, topic, _unknown(span)) for topic in topics]
    names = [topic.name for topic in topics]
    with board.series(flow) as series:
        lines = [series.line(metric, span, names) for metric in _METRICS]
    columns = [line.stats(span) for line in lines]
    return [TopicFigures(flow, topic, Figures(*row)) for topic, *row in zip(topics, *columns, strict=True)]


def timeline(
    board: Board, of: Sequence[tuple[Flow, str | None]], metric: Metric, span: Span, samples: int
) -> list[Stats]:
    """A metric over time, of these source topics of flows together; None is a whole flow."""
    lines = []
    for flow, topic in of:
        with board.series(flow) as series:
            lines.append(series.line(metric, span, None if topic is None else [topic]))
    whole: Line | None = None
    for line in lines:
        whole = line if whole is None else whole.plus(line, is_latency=metric.is_latency)
    return [] if whole is None else whole.timeline(span, samples)


def copied_to(board: Board, target: str, remote: str) -> list[tuple[Flow, str]]:
    """The flows, and their source topics, that write this topic of a target: by what they say, under any policy."""
    found = []
    for flow in board.flows:
        if flow.target == target:
            with board.series(flow) as series:
                found += [(flow, name) for name in series.sources_of(remote)]
    return found


def _unknown(span: Span) -> Figures:
    nothing = Stats(span)
    return Figures(nothing, nothing, nothing, nothing)
