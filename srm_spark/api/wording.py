"""How figures and moments stand on a page. What is unknown is said, and is no number."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from srm_spark.core.moments import moment_of

UNKNOWN = "unknown"
NOTHING = "N/A"
"""Known, and there was nothing to measure; SMM's word."""
_SIZES = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s")


@dataclass(frozen=True)
class Unit:
    """What a number of some size is said in."""

    name: str
    size: float
    """How many of what it is kept in: of bytes per second, of milliseconds."""

    def of(self, value: float) -> str:
        """The number with its unit."""
        return f"{_short(value / self.size)} {self.name}"


def rate_unit(value: float) -> Unit:
    """For bytes per second."""
    size = 1.0
    for name in _SIZES[:-1]:
        if value / size < 999.5:
            return Unit(name, size)
        size *= 1000
    return Unit(_SIZES[-1], size)


def latency_unit(value: float) -> Unit:
    """For milliseconds."""
    if value < 999.5:
        return Unit("ms", 1.0)
    if value < 119_500:
        return Unit("s", 1000.0)
    return Unit("min", 60_000.0) if value < 7_170_000 else Unit("h", 3_600_000.0)


def seconds_unit(value: float) -> Unit:
    """For seconds; none that is smaller."""
    unit = latency_unit(max(1000 * value, 1000.0))
    return Unit(unit.name, unit.size / 1000)


def rate(value: float | None) -> str:
    """Bytes per second."""
    return NOTHING if value is None else rate_unit(value).of(value)


def latency(value: float | None) -> str:
    """Milliseconds."""
    return NOTHING if value is None else latency_unit(value).of(value)


def seconds(value: float | None) -> str:
    """Seconds, as a figure of a range; `duration` says how long something lasts now."""
    return NOTHING if value is None else seconds_unit(value).of(value)


def records_unit(_: float) -> Unit:
    """For a number of records."""
    return Unit("records", 1.0)


def records(value: float | None) -> str:
    """A number of records, which may be a mean."""
    return NOTHING if value is None else records_unit(value).of(value)


def duration(seconds: float | None) -> str:
    """Seconds."""
    return UNKNOWN if seconds is None else seconds_unit(seconds).of(seconds)


def in_seconds(seconds: float) -> str:
    """Of a figure that is known to the second."""
    return duration(seconds) if seconds >= 1 else "less than 1 s"


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
