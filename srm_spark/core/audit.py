"""What is known of a flow's copies by looking at them again and again, and how that is kept in the status topic.

```
["audit"]            what the audits of a flow have found so far
["audit","orders"]   how far each partition of a source topic was looked at: the next audit goes on there
```
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from srm_spark.core.compact_json import compact_json
from srm_spark.core.model import OffsetRange
from srm_spark.core.moments import stamp_of

VERSION = 1
_AGAIN_VERSION = 2
_KIND = "audit"
_LATE = 3
"""Intervals without the end of an audit after which it is told."""


@dataclass(frozen=True)
class Audit:
    """What was found so far. Times are milliseconds since the epoch, by the clock of the driver."""

    seconds: float
    """Between two audits."""
    since: int
    """Since when somebody looks: the beginning of the driver that does it now."""
    ended: int | None = None
    """When the newest one came to its end; None before the first."""
    records: int = 0
    """Copies that were what their records are, or explained, when they were first looked at."""
    differences: int = 0
    """Of the newest audit, which looks again at what was not right before."""
    first: str | None = None
    """One of them, and where it is."""
    uncovered: int = 0
    """Source offsets of which the map knows nothing: others have copied them."""
    unchecked: str | None = None
    """What the newest audit could not look at, and why."""
    failed: str | None = None
    """Why the newest one came to no end; None where it did."""

    def found_differing(self, now: int) -> int | None:
        """Differences of the newest one; None before the first, and where it has none but could not look at all, or is
        no answer of today: none has ended for too long."""
        if self.differences:
            return self.differences
        if self.ended is None or self.unchecked is not None or self._is_old(self.ended, now):
            return None
        return 0

    def late(self, now: int) -> str | None:
        """That no audit has ended for too long; None where one has."""
        newest = max(self.since, self.ended or 0)  # a driver that has just begun gets its time
        if not self._is_old(newest, now):
            return None
        return f"no audit has ended since {stamp_of(newest)}: {self.failed or 'one is at it still'}"

    def _is_old(self, moment: int, now: int) -> bool:
        return now - moment > _LATE * 1000 * self.seconds


@dataclass(frozen=True)
class Reached:
    """How far the partitions of a source topic were looked at."""

    topic_id: str
    ends: Mapping[int, int]
    """Partition number → the first source offset that was not compared."""
    again: Mapping[int, tuple[OffsetRange, ...]] = field(default_factory=dict)
    """Partition number → stretches in front of that which were not right, and are looked at again."""


def audit_key(topic: str | None = None) -> bytes:
    """Key of what was found, or of how far a source topic was looked at."""
    return compact_json([_KIND] if topic is None else [_KIND, topic])


def document_of(audit: Audit) -> dict[str, Any]:
    """Its fields; what is not known is left out."""
    return {name: value for name, value in asdict(audit).items() if value is not None}


def encode_audit(audit: Audit) -> bytes:
    """Value of what was found."""
    return compact_json({"v": VERSION, **document_of(audit)})


def encode_reached(reached: Reached) -> bytes:
    """Value of how far a topic was looked at."""
    document: dict[str, Any] = {"v": VERSION, "id": reached.topic_id, "ends": sorted(map(list, reached.ends.items()))}
    again = [[number, list(map(list, stretches))] for number, stretches in sorted(reached.again.items()) if stretches]
    # Who does not know what is to be looked at again must not go on behind it.
    return compact_json({**document, "v": _AGAIN_VERSION, "again": again} if again else document)


def audited_topic(key: bytes | None) -> tuple[str | None] | None:
    """The topic of which a record says how far it was looked at, (None,) for what was found; None for others."""
    try:
        match json.loads(key or b""):
            case ["audit"]:
                return (None,)
            case ["audit", str(topic)]:
                return (topic,)
    except (ValueError, RecursionError):
        pass
    return None


def decode_audit(value: bytes | None) -> Audit | None:
    """Read it; None for a tombstone, for anything else, and for a version that this reader does not know."""
    try:
        return audit_of(_document(value))
    except (TypeError, ValueError, KeyError, OverflowError, RecursionError):
        return None


def audit_of(document: Mapping[str, Any]) -> Audit:
    """From its fields, of which others may be new; those that are there have to be right. Raises TypeError."""
    known = {name: value for name, value in document.items() if name in Audit.__dataclass_fields__}
    audit = Audit(**known)
    numbers = (audit.since, audit.records, audit.differences, audit.uncovered)
    texts = (audit.first, audit.unchecked, audit.failed)
    is_right = (
        _is_number(audit.seconds)
        and all(type(number) is int for number in numbers)
        and (audit.ended is None or type(audit.ended) is int)
        and all(text is None or isinstance(text, str) for text in texts)
    )
    if not is_right:
        raise TypeError(f"no audit: {document!r}")
    return audit


def decode_reached(value: bytes | None) -> Reached | None:
    """Read it; None for a tombstone, for anything else, and for a version that this reader does not know."""
    try:
        document = _document(value, (VERSION, _AGAIN_VERSION))
        ends = {int(number): int(end) for number, end in document["ends"]}
        again = {
            int(number): tuple(OffsetRange(int(start), int(end)) for start, end in stretches)
            for number, stretches in document.get("again", ())
        }
        return Reached(str(document["id"]), ends, again)
    except (TypeError, ValueError, KeyError, OverflowError, RecursionError):
        return None


def _document(value: bytes | None, versions: Collection[int] = (VERSION,)) -> Mapping[str, Any]:
    document = json.loads(value or b"")
    if not isinstance(document, dict) or document.pop("v") not in versions:
        raise ValueError
    return document


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
