"""Moments as people write them. No I/O."""

from __future__ import annotations

import time
from datetime import datetime, timezone


def moment_of(text: str) -> int:
    """A moment in ISO 8601 as ms since the epoch. Raises ValueError with what to write, where it is none."""
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError as error:
        raise ValueError("a time as 2026-01-31T12:00:00Z") from error
    if moment.tzinfo is None:
        raise ValueError(f"a time with its zone: {text.strip()}Z, or {text.strip()}+01:00")
    return int(moment.timestamp() * 1000)


def time_of(milliseconds: int) -> str:
    """A moment, for people and programs."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="seconds")


def stamp_of(milliseconds: int) -> str:
    """The same as people write it: 2026-01-31T12:00:00Z."""
    return time_of(milliseconds).replace("+00:00", "Z")


def now() -> str:
    """This moment, as files and statements have it: 2026-01-31T12:00:00Z."""
    return stamp_of(int(time.time() * 1000))
