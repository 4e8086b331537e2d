"""What a check brings: one finding, and the one command or change that mends what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Health(Enum):
    """How a check ended."""

    OK = "ok"
    WARNED = "warning"
    """A driver works with this, but perhaps not as somebody meant it."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """It cannot be told from here without writing, or what it depends on failed."""


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    check: str
    health: Health
    found: str
    """What is there, with versions, addresses and names."""
    remedy: str = ""
    """The one command or change that helps; only where it is needed."""


def ok(check: str, found: str) -> Finding:
    """All is well."""
    return Finding(check, Health.OK, found)


def warned(check: str, found: str, remedy: str = "") -> Finding:
    """Worth a look."""
    return Finding(check, Health.WARNED, found, remedy)


def failed(check: str, found: str, remedy: str) -> Finding:
    """A driver cannot work with this."""
    return Finding(check, Health.FAILED, found, remedy)


def unknown(check: str, found: str, remedy: str = "") -> Finding:
    """Nobody can say."""
    return Finding(check, Health.UNKNOWN, found, remedy)
