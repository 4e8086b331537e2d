"""What can be said about a flow at one moment. Unknown is None, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from srm_spark.core.audit import Audit
from srm_spark.core.driver_status import FlowState
from srm_spark.core.html import table
from srm_spark.core.model import Flow
from srm_spark.core.standstills import Standstill, by_name
from srm_spark.failure import FailureKind
from srm_spark.flow.groups.consumer_groups import ConsumersReport

__all__ = ["FlowState", "FlowStatus", "Statuses"]


@dataclass(frozen=True)
class FlowStatus:
    """A snapshot."""

    flow: Flow
    state: FlowState = FlowState.STARTING
    reason: str | None = None
    """Why it is not running; one sentence with the remedy."""
    kind: FailureKind | None = None
    """Of the failure that the reason tells of, where there is one."""
    since: float | None = None
    """When it came into this state, in seconds since the epoch."""
    topics: int | None = None
    partitions: int | None = None
    realtime: int = 0
    """Of the partitions, those that are copied in real time; all others go in micro-batches."""
    records: int = 0
    """Replicated since this driver started."""
    bytes: int = 0
    """Of their batches as they travelled; of their keys and values where librdkafka writes."""
    zero_timestamps: int = 0
    """Of these records, those with CreateTime 0, which were written with the time of the copy."""
    whole: int = 0
    """Of these records, those that were copied in the batches that they came in."""
    merged: int = 0
    """Of these records, those that were packed anew with their neighbours; all others went one by one."""
    lag_records: int | None = None
    """Source offsets that are not replicated yet, held partitions included."""
    limit: str | None = None
    """By what bandwidth limit it is slowed down; None while it waits for none, or where that is not known."""
    latency_ms: int | None = None
    """Of the newest batch: acknowledgement on the target minus record timestamp; None where nothing runs."""
    batch_ms: Mapping[str, int] = field(default_factory=dict)
    """Where the newest micro-batch spent its time, by Spark's phases: `addBatch` is our part, `triggerExecution` all of
    it. Empty before the first one, and in the real-time lane."""
    unknown_since: float | None = None
    """Since when lag and latency are not known, in seconds since the epoch; None where they are, or never were."""
    lost_records: int = 0
    """Source offsets that are lost, in all partitions."""
    losses: Mapping[str, str] = field(default_factory=dict)
    """Partition → source offsets that are lost, because they were deleted before they were replicated."""
    consumers: ConsumersReport | None = field(default=None, repr=False)
    """Where consumer groups stand; None until they were looked at."""
    parked: Mapping[str, str] = field(default_factory=dict)
    """Source topic → how many of its records are in quarantine, and why; empty where nothing ever goes there."""
    standing: tuple[Standstill, ...] = ()
    """What stands still, and why."""
    audit: Audit | None = None
    """What the driver found by comparing its copies with their records; None where it does not do that."""
    last_error: str | None = None
    """Why it stalled, failed or was tried again the last time, though it may run since."""
    last_error_at: float | None = None
    """When that was, in seconds since the epoch."""

    @property
    def held(self) -> dict[str, str]:
        """Topic or partition, or the whole flow → why it stands still, with the offset."""
        return by_name(self.standing, self.flow)

    @property
    def ways(self) -> str:
        """How the records travelled: `whole 97 %, merged 3 %`; empty before the first one."""
        if not self.records:
            return ""
        counts = {"whole": self.whole, "merged": self.merged, "one by one": self.records - self.whole - self.merged}
        return ", ".join(f"{way} {_percent(count, self.records)}" for way, count in counts.items() if count > 0)

    def _repr_html_(self) -> str:
        return Statuses((self,))._repr_html_()


class Statuses(tuple[FlowStatus, ...]):
    """All flows of a driver at one moment; a notebook shows them as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return table(_TITLES, map(_cells, self))


def _percent(count: int, of: int) -> str:
    """Rounded, but never to nothing or to all where it is neither."""
    share = 100 * count / of
    if 0 < share < 1:
        return "< 1 %"
    return "> 99 %" if 99 < share < 100 else f"{share:.0f} %"


_TITLES = ("flow", "state", "topics", "partitions", "records", "lag", "latency, ms", "held", "parked", "lost", "reason")


def _cells(status: FlowStatus) -> tuple[object, ...]:
    lag: object = status.lag_records
    if status.unknown_since is not None:
        lag = f"unknown since {datetime.fromtimestamp(status.unknown_since, timezone.utc):%H:%M:%SZ}"
    numbers = (status.topics, status.partitions, status.records, lag, status.latency_ms)
    reasons = [*filter(None, [status.reason]), *(f"{what}: {why}" for what, why in status.held.items())]
    counts = (len(status.held), len(status.parked), status.lost_records)
    return (status.flow, status.state.value, *numbers, *counts, "; ".join(reasons))
