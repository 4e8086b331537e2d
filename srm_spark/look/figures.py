"""What is told of flows and topics over a span: how they are, with throughput and latencies. For whoever renders it.

Of a flow of which nothing is known now, no figure is told: they are of before. Timelines, in which each figure has its
time, go on to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from srm_spark.core.flow_series import FlowNow, TopicNow
from srm_spark.core.history import Grain, Kind, Series, grain_for
from srm_spark.core.model import Flow
from srm_spark.core.series import WINDOW_MS, Line, Metric, Span, Stats
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


_SLACK_MS = 60_000
"""The last two hours are asked for a moment before it is looked which those are."""
_METRICS = (Metric.BYTE_RATE, Metric.RECORD_RATE, Metric.REPLICATION_LATENCY, Metric.CHECKPOINT_LATENCY)


def flow_figures(board: Board, flow: Flow, span: Span) -> FlowFigures:
    """Of one flow."""
    now = board.now(flow)
    if not now.is_known:
        return FlowFigures(now, unknown_figures(span))
    return FlowFigures(now, Figures(*(line_of(board, flow, metric, span).stats(span)[0] for metric in _METRICS)))


def topics_of(board: Board, flow: Flow) -> list[TopicNow]:
    """The topics of a flow as they were told last; their lag is None where it is not known now."""
    is_known = board.now(flow).is_known
    with board.series(flow) as series:
        topics = series.topics()
    return topics if is_known else [replace(one, lag_records=None, lag_seconds=None) for one in topics]


def topic_figures(board: Board, flow: Flow, span: Span, topics: Sequence[TopicNow]) -> list[TopicFigures]:
    """Of these topics of a flow."""
    if not board.now(flow).is_known:
        return [TopicFigures(flow, topic, unknown_figures(span)) for topic in topics]
    names = [topic.name for topic in topics]
    columns = [line_of(board, flow, metric, span, names).stats(span) for metric in _METRICS]
    return [TopicFigures(flow, topic, Figures(*row)) for topic, *row in zip(topics, *columns, strict=True)]


def timeline(
    board: Board, of: Sequence[tuple[Flow, str | None]], metric: Metric, span: Span, samples: int
) -> list[Stats]:
    """A metric over time, of these source topics of flows together; None is a whole flow."""
    lines = [line_of(board, flow, metric, span, None if topic is None else [topic]) for flow, topic in of]
    whole: Line | None = None
    for line in lines:
        whole = line if whole is None else whole.plus(line, metric)
    return [] if whole is None else whole.timeline(span, samples)


def line_of(board: Board, flow: Flow, metric: Metric, span: Span, topics: Sequence[str] | None = None) -> Line:
    """A metric of each of these source topics of a flow, or of the whole flow: from memory, and from history before.

    Where both are asked, all buckets are as wide as those of history.
    """
    before: Line | None = None
    if board.past is not None and _is_long(board, span):
        grain, window = grain_for(span), board.now_ms() - WINDOW_MS
        cut = min(max(grain.start(window) + grain.ms, span.start), span.end)
        if grain is Grain.DAY:
            cut = span.end  # memory never holds a whole one
        names = [Series(Kind.FLOW, str(flow))] if topics is None else [_of(flow, topic) for topic in topics]
        before = board.past.line(metric, Span(span.start, cut), grain, flow, names)
    with board.series(flow) as series:
        if before is None:
            return series.line(metric, span, topics)
        if cut == span.end:
            return before
        after = series.line(metric, Span(cut, span.end), topics)
    return before.followed_by(after.coarser(metric, grain.ms))


def history_of(
    board: Board, flow: Flow, metric: Metric, span: Span, *, topic: str | None, partition: int | None, group: str | None
) -> Line | None:
    """A metric of a partition, or of a group; None where no history is kept, or none can be read."""
    kind = Kind.PARTITION if group is None else Kind.GROUP
    series = Series(kind, str(flow), topic, partition, group)
    return None if board.past is None else board.past.line(metric, span, grain_for(span), flow, [series])


def known_since(board: Board, flow: Flow, span: Span) -> int | None:
    """Since when figures of a span are kept, where that is later than it begins; None where all of it is."""
    since = board.now_ms() - WINDOW_MS
    if board.past is not None and _is_long(board, span):
        kept = board.past.since(flow)
        since = since if kept is None else min(kept, since)
    return since if since > span.start + _SLACK_MS else None


def _is_long(board: Board, span: Span) -> bool:
    return span.start + _SLACK_MS < board.now_ms() - WINDOW_MS


def _of(flow: Flow, topic: str) -> Series:
    return Series(Kind.TOPIC, str(flow), topic)


def copied_to(board: Board, target: str, remote: str) -> list[tuple[Flow, str]]:
    """The flows, and their source topics, that write this topic of a target: by what they say, under any policy."""
    found = []
    for flow in board.flows:
        if flow.target == target:
            with board.series(flow) as series:
                found += [(flow, name) for name in series.sources_of(remote)]
    return found


def unknown_figures(span: Span) -> Figures:
    """Those of which nothing is known."""
    nothing = Stats(span)
    return Figures(nothing, nothing, nothing, nothing)
