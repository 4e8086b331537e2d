"""Pauses between tries of something that fails in passing: short at first, since most of it passes at once."""

from __future__ import annotations

from collections.abc import Iterator

_FIRST_SECONDS = 0.005
_GROWTH = 2.0
_LONGEST_SECONDS = 0.2


def pauses() -> Iterator[float]:
    """Seconds before each next try, without end."""
    seconds = _FIRST_SECONDS
    while True:
        yield seconds
        seconds = min(_GROWTH * seconds, _LONGEST_SECONDS)
