"""How figures and moments stand on a page. What is unknown is said, and is no number."""

from __future__ import annotations

from datetime import datetime, timezone

from srm_spark.core.moments import moment_of

UNKNOWN = "unknown"
NOTHING = "N/A"
"""Known, and there was nothing to measure; SMM's word."""
_SIZES = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s")


def rate(value: float | None) -> str:
    """Bytes per second."""
    if value is None:
        return NOTHING
    number, unit = value, 0
    while number >= 999.5 and unit < len(_SIZES) - 1:
        number, unit = number / 1000, unit + 1
    return f"{_short(number)} {_SIZES[unit]}"


def latency(value: float | None) -> str:
    """Milliseconds."""
    if value is None:
        return NOTHING
    return f"{_short(value)} ms" if value < 999.5 else duration(value / 1000)


def duration(seconds: float | None) -> str:
    """Seconds."""
    if seconds is None:
        return UNKNOWN
    if seconds < 119.5:
        return f"{_short(seconds)} s"
    if seconds < 7170:
        return f"{_short(seconds / 60)} min"
    return f"{_short(seconds / 3600)} h"


def number(value: int | None) -> str:
    """A count."""
    return UNKNOWN if value is None else f"{value:,}"


def moment(milliseconds: int) -> str:
    """With its zone."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def stamp(text: str) -> str:
    """The same for a moment that is written as /v3 does."""
    return moment(moment_of(text))


def clock(milliseconds: int) -> str:
    """The time of day."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%H:%M UTC")


def day(milliseconds: int) -> str:
    """Day and time, for ranges of more than a day."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%d %b %H:%M UTC")


def _short(value: float) -> str:
    if value >= 99.95 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.1 else f"{value:.2g}"
