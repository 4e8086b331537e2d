"""What services of other sites answer, as we would have said it ourselves."""

from __future__ import annotations

from srm_spark.api.v3 import FlowDocument, FlowsDocument, Summary
from srm_spark.core.driver_status import FlowState
from srm_spark.core.flow_series import FlowNow, Health
from srm_spark.core.model import Flow
from srm_spark.core.moments import moment_of
from srm_spark.core.series import Span, Stats
from srm_spark.look.figures import Figures, FlowFigures


def flows_told(answer: bytes, span: Span) -> list[FlowFigures]:
    """What a service of another site says of its own flows. Raises ValueError where it is no answer of such a one."""
    return [_told(one, span) for one in FlowsDocument.model_validate_json(answer).flows]


def _told(document: FlowDocument, span: Span) -> FlowFigures:
    audit = document.audit
    now = FlowNow(
        Flow(document.source, document.target),
        Health(document.status),
        tuple(document.why),
        _moment(document.unknown_since),
        None if document.state is None else FlowState(document.state),
        _moment(document.since),
        document.driver,
        _moment(document.heard_at),
        document.topics,
        document.partitions,
        document.groups,
        document.lag.records,
        document.lag.seconds,
        rpo_goal=document.rpo_goal_seconds,
        skew_ms=document.clock_skew_ms,
        audited_at=None if audit is None else _moment(audit.ended_at),
        differing=None if audit is None else audit.differing,
        differs=None if audit is None else audit.first,
        audit_late=None if audit is None else audit.late,
    )
    of = document.figures
    all_four = (of.bytes_per_second, of.records_per_second, of.replication_latency_ms, of.checkpoint_latency_ms)
    return FlowFigures(now, Figures(*(_stats(one, span) for one in all_four)))


def _stats(summary: Summary, span: Span) -> Stats:
    total = None if summary.avg is None else summary.avg * summary.samples
    at = _moment(summary.latest_at)
    return Stats(span, summary.samples, summary.min, summary.max, total, summary.latest, at)


def _moment(text: str | None) -> int | None:
    return None if text is None else moment_of(text)
