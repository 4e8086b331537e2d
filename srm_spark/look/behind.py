"""How far the history of a flow is behind what the service has read of it. For whoever renders it.

A job that died, or that cannot write, leaves charts that end somewhere: here it is seen while memory still fills them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from srm_spark.core.model import Flow
from srm_spark.look.board import Board


class WhyUnknown(Enum):
    """Why it is not known how far history is behind."""

    NO_TARGET = "target-not-read"
    NO_SAMPLE = "no-sample"
    NO_HISTORY = "no-history"

    @property
    def sentence(self) -> str:
        """For people."""
        return _SENTENCES[self]


_SENTENCES = {
    WhyUnknown.NO_TARGET: "its target does not answer the service",
    WhyUnknown.NO_SAMPLE: "the service has read no sample of a driver that runs it",
    WhyUnknown.NO_HISTORY: "no history of it is there, or it cannot be read",
}


@dataclass(frozen=True)
class HistoryBehind:
    """Of one flow. Times are milliseconds since the epoch."""

    flow: Flow
    newest_kept: int | None
    """Of the newest sample in history; None where there is none, or it cannot be read."""
    newest_read: int | None
    """Of the newest one that the service has read; None where it has read none."""
    seconds: float | None
    """Between the two; 0 where history has all that the service has. None where it is not known."""
    unknown_since: int | None = None
    """When it was known last, as often as somebody asked; None where it is known, or never was."""
    why: WhyUnknown | None = None


def history_behind(board: Board, flow: Flow) -> HistoryBehind:
    """How far the history of a flow is behind; the board has one."""
    assert board.past is not None
    kept = board.past.newest(flow)
    with board.series(flow) as series:
        read, is_read = series.newest, series.is_read
    if (why := _why_unknown(kept, read, is_read=is_read)) is not None:
        return HistoryBehind(flow, kept, read, None, board.behind_known_at(flow, None), why)
    board.behind_known_at(flow, board.now_ms())
    return HistoryBehind(flow, kept, read, max(0, (read or 0) - (kept or 0)) / 1000)


def _why_unknown(kept: int | None, read: int | None, *, is_read: bool) -> WhyUnknown | None:
    if not is_read:
        return WhyUnknown.NO_TARGET
    if read is None:
        return WhyUnknown.NO_SAMPLE
    return WhyUnknown.NO_HISTORY if kept is None else None
