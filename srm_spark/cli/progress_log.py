"""A line per flow and minute: what was copied, how fast, and how far behind it is; and what it was at the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime, timezone

from srm_spark.core.model import Flow
from srm_spark.flow.status import FlowState, FlowStatus

log = logging.getLogger(__name__)

FIRST_SECONDS = 5.0
"""Whoever has started a driver waits for its first counts."""


class ProgressLog:
    """Logs once in `seconds`, and soon after a flow begins to run; never where `seconds` is 0."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = self._start = time.monotonic()
        self._next = self._at + seconds
        self._running: set[Flow] = set()
        self._records: dict[Flow, int] = {}

    def look(self, statuses: Sequence[FlowStatus]) -> None:
        """Log where it is time for the next lines."""
        if self._seconds <= 0:
            return
        now = time.monotonic()
        running = {status.flow for status in statuses if status.state is FlowState.RUNNING}
        if running - self._running:
            self._running |= running
            self._next = min(self._next, now + FIRST_SECONDS)
        if now >= self._next:
            self.log(statuses)

    def log(self, statuses: Sequence[FlowStatus]) -> None:
        """Log a line per flow; a rate is that since the last lines, and what is not known has no number."""
        now = time.monotonic()
        for status in statuses:
            new = max(0, status.records - self._records.get(status.flow, 0))  # one may be another one, after a reload
            log.info("%s", describe(status, new / (now - self._at)))
        self._records = {status.flow: status.records for status in statuses}
        self._at, self._next = now, now + self._seconds

    def log_totals(self, statuses: Sequence[FlowStatus]) -> None:
        """Log what each flow did from start to end."""
        seconds = time.monotonic() - self._start
        for status in statuses:
            log.info("%s", describe_total(status, seconds))


def describe(status: FlowStatus, rate: float) -> str:
    """One line; `rate` in records per second, which says nothing where the flow does not run."""
    is_running = status.state is FlowState.RUNNING
    facts = [f"flow={status.flow} state={status.state.value} records={status.records}"]
    facts.append(f"rate={f'{rate:.0f}/s' if is_running else 'unknown'}")
    facts.append(f"lag={_known(status.lag_records)} latency_ms={_known(status.latency_ms)}")
    if status.unknown_since is not None:
        facts.append(f"since={datetime.fromtimestamp(status.unknown_since, timezone.utc):%H:%M:%SZ}")
    counts = {"held": len(status.held), "parked": len(status.parked), "lost": status.lost_records}
    facts.extend(f"{name}={count}" for name, count in counts.items() if count)
    if status.limit is not None:
        facts.append(status.limit)
    return " ".join(facts)


def describe_total(status: FlowStatus, seconds: float) -> str:
    """One line for the whole run of a driver."""
    facts = f"flow={status.flow} total records={status.records} bytes={status.bytes} seconds={seconds:.0f}"
    return f"{facts} copied: {status.ways}" if status.ways else facts


def _known(number: int | None) -> str:
    return "unknown" if number is None else str(number)
