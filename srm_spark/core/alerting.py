"""Which alerts are due: what lasts is told once, again after a while, and once more when it is over. No I/O.

```
fact true                    since ── after ──> firing ── repeat ──> firing again … fact gone ──> resolved
of a flow that is unknown    whatever was said of it stays as it is: nothing that is not known is over
```

A notice is due until it is `told`: where nobody could be told, it is due again, as it is by then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any


class AlertKind(Enum):
    """What there are alerts for; the value is their name in the configuration."""

    NOT_RUNNING = "not-running"
    RPO = "rpo"
    RTO = "rto"
    LAG_UNKNOWN = "lag-unknown"
    GROUP_NOT_SYNCED = "group-not-synced"
    RECORDS_LOST = "records-lost"
    QUARANTINE = "quarantine"
    STANDING_STILL = "standing-still"
    COPIES_DIFFER = "copies-differ"
    AUDIT_LATE = "audit-late"
    BLIND = "blind"


_AT_ONCE = frozenset({AlertKind.RTO, AlertKind.RECORDS_LOST, AlertKind.QUARANTINE, AlertKind.COPIES_DIFFER})
"""They do not pass by themselves."""
_OF_THE_UNKNOWN = frozenset({AlertKind.NOT_RUNNING, AlertKind.BLIND})
"""They are known of flows of which nothing else is."""
_GROWING = frozenset({AlertKind.RECORDS_LOST, AlertKind.COPIES_DIFFER})
"""They are told again at once where there are more of them."""
CRITICAL = frozenset({AlertKind.NOT_RUNNING, AlertKind.RPO, AlertKind.RECORDS_LOST, AlertKind.COPIES_DIFFER})


@dataclass(frozen=True)
class AlertSettings:
    """What is told, to whom, and when. Times are seconds."""

    webhook: str = field(repr=False)
    """An URL; it may have a token in it."""
    kinds: frozenset[AlertKind] = frozenset(AlertKind)
    rpo: float = 300.0
    """More than that, and a failover would lose too much."""
    after: float = 300.0
    """How long something has to be true."""
    repeat: float = 14_400.0


@dataclass(frozen=True)
class Fact:
    """Something that is wrong now."""

    kind: AlertKind
    subject: str
    """The flow, or the cluster."""
    text: str
    """For people."""
    detail: str = ""
    """The group."""
    value: float | None = None

    @property
    def key(self) -> tuple[AlertKind, str, str]:
        """What makes it the same one as before."""
        return self.kind, self.subject, self.detail


@dataclass(frozen=True)
class Notice:
    """What somebody is to be told. Times are seconds since the epoch."""

    fact: Fact
    since: float
    until: float | None = None
    """None while it is true."""


@dataclass
class _Standing:
    fact: Fact
    since: float
    told_at: float | None = None
    told_value: float | None = None
    until: float | None = None


class Alerting:
    """What is wrong, since when, and what of it was told. Not safe to use from several threads."""

    def __init__(self, settings: AlertSettings) -> None:
        self._settings = settings
        self._standing: dict[tuple[AlertKind, str, str], _Standing] = {}

    def judge(
        self, facts: Iterable[Fact], unknown: Collection[str | tuple[AlertKind, str]], now: float
    ) -> list[Notice]:
        """The notices that are due, given all that is wrong `now`.

        Of flows that are `unknown` only some of it is; with a kind in front only that is not known of the flow.
        """
        present = {fact.key: fact for fact in facts if fact.kind in self._settings.kinds}
        for key, fact in present.items():
            standing = self._standing.setdefault(key, _Standing(fact, now))
            standing.fact, standing.until = fact, None
            if standing.told_value is not None and (fact.value or 0) < standing.told_value:
                # Who counts since its driver began has begun anew: all of it is news.
                standing.told_value = 0 if key[0] is AlertKind.RECORDS_LOST else fact.value
        for key, standing in list(self._standing.items()):
            kind, subject, _ = key
            is_unknown = (kind, subject) in unknown or (subject in unknown and kind not in _OF_THE_UNKNOWN)
            if key in present or is_unknown:
                continue
            if standing.told_at is None:
                del self._standing[key]
            else:
                standing.until = standing.until or now
        return [
            Notice(standing.fact, standing.since, standing.until)
            for standing in self._standing.values()
            if self._is_due(standing, now)
        ]

    def told(self, notices: Iterable[Notice], now: float) -> None:
        """Somebody knows of these."""
        for notice in notices:
            key = notice.fact.key
            if notice.until is not None:
                self._standing.pop(key, None)
            elif (standing := self._standing.get(key)) is not None:
                standing.told_at, standing.told_value = now, notice.fact.value

    def _is_due(self, standing: _Standing, now: float) -> bool:
        kind = standing.fact.kind
        if standing.until is not None:
            return True
        if standing.told_at is None:
            return kind in _AT_ONCE or now - standing.since >= self._settings.after
        if kind in _GROWING and (standing.fact.value or 0) > (standing.told_value or 0):
            return True
        return now - standing.told_at >= self._settings.repeat


def document_of(notices: Sequence[Notice], service: str) -> dict[str, Any]:
    """As Prometheus' Alertmanager sends it (webhook, version 4), so that whatever takes its messages takes ours.

    `service` is the address that people may open.
    """
    alerts = [_alert(notice, service) for notice in notices]
    is_firing = any(notice.until is None for notice in notices)
    return {
        "version": "4",
        "groupKey": "srm-service",
        "receiver": "srm-service",
        "status": "firing" if is_firing else "resolved",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": service,
        "truncatedAlerts": 0,
        "alerts": alerts,
    }


def _alert(notice: Notice, service: str) -> dict[str, Any]:
    fact = notice.fact
    labels: Mapping[str, str] = {
        "alertname": fact.kind.value,
        "severity": "critical" if fact.kind in CRITICAL else "warning",
        "cluster" if fact.kind is AlertKind.BLIND else "flow": fact.subject,
        **({"group": fact.detail} if fact.detail else {}),
    }
    return {
        "status": "firing" if notice.until is None else "resolved",
        "labels": labels,
        "annotations": {"summary": fact.text},
        "startsAt": _rfc3339(notice.since),
        "endsAt": "0001-01-01T00:00:00Z" if notice.until is None else _rfc3339(notice.until),
        "generatorURL": service,
        "fingerprint": _fingerprint(fact),
    }


def _fingerprint(fact: Fact) -> str:
    """The same for each notice of the same alert."""
    return hashlib.sha256("\0".join((fact.kind.value, fact.subject, fact.detail)).encode()).hexdigest()[:16]


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
