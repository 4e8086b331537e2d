"""What is wrong now with the flows and targets of a board: facts for `core/alerting.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from srm_spark.core.alerting import AlertKind, AlertSettings, Fact
from srm_spark.core.driver_status import FlowState
from srm_spark.core.flow_series import FlowNow
from srm_spark.core.model import Flow
from srm_spark.core.wording import count
from srm_spark.look.board import Board


@dataclass(frozen=True)
class Recovery:
    """What the last failover of a flow took, beside what it should take at most, in seconds."""

    seconds: float
    goal: int


def facts_of(
    board: Board, settings: AlertSettings, recovery: Callable[[Flow], Recovery | None] = lambda _: None
) -> tuple[list[Fact], set[str | tuple[AlertKind, str]]]:
    """All that is wrong, and the flows of which nothing is known, or of which something is not.

    `recovery` says what is known of a flow's last failover: None where there was none, or no goal is set.
    """
    nows = [board.now(flow) for flow in board.flows]
    facts = [
        Fact(AlertKind.BLIND, view.alias, f"the metrics of cluster {view.alias} cannot be read: {view.why_not}")
        for view in board.targets.values()
        if view.why_not is not None
    ]
    for now in nows:
        facts += _of_flow(now, settings)
        facts += _of_recovery(now.flow, recovery(now.flow))
        if now.is_known:
            with board.series(now.flow) as series:
                facts += (
                    Fact(
                        AlertKind.GROUP_NOT_SYNCED,
                        str(now.flow),
                        f"group {one.group} of {now.flow} is not synced: {one.reason or one.state}",
                        one.group,
                    )
                    for one in series.left_groups()
                )
    unknown: set[str | tuple[AlertKind, str]] = {str(now.flow) for now in nows if not now.is_known}
    unknown |= {(kind, str(now.flow)) for now in nows for kind in _unknown(now)}
    return facts, unknown


def _unknown(now: FlowNow) -> Iterator[AlertKind]:
    """What is not known of it now: whoever has taken the flow over, or cannot look, has not mended what was found."""
    if now.is_audited and now.differing is None:
        yield AlertKind.COPIES_DIFFER
    if now.lag_seconds is None:
        yield AlertKind.RPO
    if now.lost is None:
        yield AlertKind.RECORDS_LOST
    if now.quarantined is None:
        yield AlertKind.QUARANTINE
    if now.state is not FlowState.RUNNING:
        yield from (AlertKind.STANDING_STILL, AlertKind.AUDIT_LATE, AlertKind.GROUP_NOT_SYNCED)


def _of_flow(now: FlowNow, settings: AlertSettings) -> Iterator[Fact]:
    flow = str(now.flow)
    if now.state is not FlowState.RUNNING:
        yield Fact(AlertKind.NOT_RUNNING, flow, f"{flow} does not run: {'; '.join(now.why)}")
    elif now.lag_records is None or now.lag_seconds is None:
        yield Fact(AlertKind.LAG_UNKNOWN, flow, f"how far {flow} is behind is not known")
    goal = settings.rpo if now.rpo_goal is None else now.rpo_goal
    if now.lag_seconds is not None and now.lag_seconds > goal:
        text = f"a failover of {flow} would lose {now.lag_seconds:.0f} s of data; the goal is {goal:g} s"
        yield Fact(AlertKind.RPO, flow, text, value=now.lag_seconds)
    if now.lost:
        text = f"{count(now.lost, 'record')} of {flow} are lost since its driver began: srm-control losses"
        yield Fact(AlertKind.RECORDS_LOST, flow, text, value=now.lost)
    if now.quarantined:
        text = f"{count(now.quarantined, 'topic')} of {flow} with records in quarantine: srm-control quarantine"
        yield Fact(AlertKind.QUARANTINE, flow, text, value=now.quarantined)
    if now.differing:
        text = f"{count(now.differing, 'record')} of {flow} differ from their copies, the first {now.differs}"
        yield Fact(AlertKind.COPIES_DIFFER, flow, text, value=now.differing)
    if now.audit_late is not None:
        yield Fact(AlertKind.AUDIT_LATE, flow, f"whether copies of {flow} are right is not known: {now.audit_late}")
    if now.paused:
        text = f"{count(now.paused, 'partition')} of {flow} standing still: srm-control status"
        yield Fact(AlertKind.STANDING_STILL, flow, text, value=now.paused)


def _of_recovery(flow: Flow, took: Recovery | None) -> Iterator[Fact]:
    if took is not None and took.seconds > took.goal:
        text = f"the last failover of {flow} took {took.seconds:.0f} s; the goal is {took.goal} s"
        yield Fact(AlertKind.RTO, str(flow), text, value=took.seconds)
