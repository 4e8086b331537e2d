"""A line per flow and minute: what was copied, how fast, and how far behind it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from srm_spark.flow.status import FlowStatus
from srm_spark.model import Flow

log = logging.getLogger(__name__)


class ProgressLog:
    """Logs at most once in `seconds`; never where that is 0."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = time.monotonic()
        self._records: dict[Flow, int] = {}

    def is_due(self) -> bool:
        """Whether it is time for the next lines."""
        return self._seconds > 0 and time.monotonic() - self._at >= self._seconds

    def log(self, statuses: Sequence[FlowStatus]) -> None:
        """Log a line per flow; a rate is that since the last lines, and what is not known has no number."""
        now = time.monotonic()
        for status in statuses:
            # A flow that started anew counts from 0 again.
            new = max(0, status.records - self._records.get(status.flow, 0))
            log.info("%s", describe(status, new / (now - self._at)))
        self._records = {status.flow: status.records for status in statuses}
        self._at = now


def describe(status: FlowStatus, rate: float) -> str:
    """One line; `rate` in records per second."""
    facts = [f"flow={status.flow} state={status.state.value} records={status.records} rate={rate:.0f}/s"]
    facts.append(f"lag={_known(status.lag_records)} latency_ms={_known(status.latency_ms)}")
    for name, found in (("held", status.held), ("parked", status.parked), ("lost", status.losses)):
        if found:
            facts.append(f"{name}={len(found)}")
    if status.limit is not None:
        facts.append(status.limit)
    return " ".join(facts)


def _known(number: int | None) -> str:
    return "unknown" if number is None else str(number)
