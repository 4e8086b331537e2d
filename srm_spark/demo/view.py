"""How the demo looks: a live panel on a terminal, plain lines elsewhere, and the table of the comparison."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from srm_spark.flow.status import FlowStatus
from srm_spark.kafka.compare import PartitionComparison

_PLAIN_WIDTH = 120
"""For pipes and files, where there is no window to ask."""
_LINE_SECONDS = 2.0
_UNKNOWN = "-"
_RATE_SECONDS = 3.0


class Rate:
    """Records per second over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def take(self, records: int, now: float) -> float:
        """The rate, now that the total is `records`."""
        self._seen.append((now, records))
        while len(self._seen) > 2 and now - self._seen[1][0] >= _RATE_SECONDS:
            self._seen.popleft()
        start, before = self._seen[0]
        return (records - before) / (now - start) if now > start else 0.0


class View:
    """Everything the demo prints."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        if not self._console.is_terminal:
            self._console = Console(highlight=False, width=_PLAIN_WIDTH, file=self._console.file)
        self._live: Live | None = None
        self._rate = Rate()
        self._next_line = 0.0
        self._started = time.monotonic()

    def say(self, text: str = "") -> None:
        """One line."""
        self._console.print(text, markup=False, soft_wrap=True)

    def step(self, text: str) -> None:
        """What happens now, with the time since the start."""
        self.say(f"{time.monotonic() - self._started:5.1f} s  {text}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While `show` is called."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=4, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def show(self, status: FlowStatus, written: int, doing: str) -> None:
        """The newest state of the flow."""
        now = time.monotonic()
        rate = self._rate.take(status.records, now)
        if self._live is not None:
            self._live.update(panel(status, written, rate, doing))
        elif now >= self._next_line:
            self._next_line = now + _LINE_SECONDS
            self.step(line(status, written, rate))

    def table(self, rows: Sequence[PartitionComparison]) -> None:
        """What the comparison found."""
        self._console.print(comparison(rows))


def panel(status: FlowStatus, written: int, rate: float, doing: str) -> Table:
    """The live panel."""
    table = Table(title=f"{status.flow}: {doing}", title_justify="left", show_header=False, min_width=60)
    for name, value in fields(status, written, rate).items():
        table.add_row(name, value)
    return table


def line(status: FlowStatus, written: int, rate: float) -> str:
    """The same in one line."""
    return "  ".join(f"{name} {value}" for name, value in fields(status, written, rate).items())


def fields(status: FlowStatus, written: int, rate: float) -> dict[str, str]:
    """What is worth seeing; unknown is a dash, never 0."""
    columns = {
        "state": status.state.value,
        "written": f"{written:,}",
        "copied": f"{status.records:,}",
        "lag": _UNKNOWN if status.lag_records is None else f"{status.lag_records:,}",
        "rate": f"{rate:,.0f}/s",
        "latency": _UNKNOWN if status.latency_ms is None else f"{status.latency_ms:,} ms",
        "topics": _UNKNOWN if status.topics is None else f"{status.topics} ({status.partitions} partitions)",
    }
    if status.reason:
        columns["reason"] = status.reason
    for name, reason in status.held.items():
        columns[f"held {name}"] = reason
    for name, reason in status.parked.items():
        columns[f"in quarantine {name}"] = reason
    return columns


def comparison(rows: Sequence[PartitionComparison]) -> Table:
    """One row per partition."""
    table = Table(title="Every record of both sides, compared", title_justify="left")
    for name in ("topic", "remote topic"):
        table.add_column(name)
    for name in ("partition", "source", "target"):
        table.add_column(name, justify="right")
    table.add_column("first difference", overflow="fold")
    for row in rows:
        style = None if row.difference is None else "bold red"
        counts = (str(row.partition), f"{row.source_records:,}", f"{row.target_records:,}")
        table.add_row(row.topic, row.remote_topic, *counts, row.difference or "none", style=style)
    return table
