"""What a driver says of one flow every few seconds, as it lies in the status topic, and what it means later. No I/O.

A record here is the word of one driver; the next one takes its place:

```
key    ["status","host-1/4711/1700000000000"]
value  {"v":1,"at":1700000005000,"every":5.0,"state":"running","since":1700000003000,"topics":2,"partitions":5, …}
```

What is not known is left out. A driver that ends says so by its last word; one that says nothing any more is silent,
and whatever it said last is true no longer.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum

from srm_spark.core.audit import Audit, audit_of
from srm_spark.core.audit import document_of as facts_of
from srm_spark.core.compact_json import compact_json
from srm_spark.core.model import Flow
from srm_spark.core.standstills import Standstill, by_name, document_of, from_names, standstill_of

VERSION = 1
MISSED_WORDS = 3
"""Of a driver that missed so many in a row nothing is known."""
_KIND = "status"
_NAMES = 200
"""Of what is held, and of groups; the others are counted. Clients and brokers refuse records above 1 MB."""
_CHARACTERS = 1_000
"""Of one sentence."""
_BRIEF = 200
"""Of one that is there in full, too."""


class FlowState(Enum):
    """Where a flow's driver stands."""

    STARTING = "starting"
    WAITING = "waiting"
    """Another driver owns the flow."""
    RUNNING = "running"
    STALLED = "stalled"
    """A cluster does not answer, or nothing is copied though there is something to copy; it goes on by itself."""
    RETRYING = "retrying"
    """It failed and starts again after a delay."""
    FAILED = "failed"
    """It failed as often as it was allowed to."""
    STOPPED = "stopped"


HEALTH_CODES: Mapping[FlowState, int] = {
    FlowState.RUNNING: 0,
    FlowState.WAITING: 1,
    FlowState.STOPPED: 1,
    FlowState.STARTING: 2,
    FlowState.STALLED: 3,
    FlowState.RETRYING: 3,
    FlowState.FAILED: 4,
}
"""As Cloudera Manager counts the herder of a flow: 0 healthy, 1 unknown, 2 starting, 3 interrupted, 4 failed. Of a flow
that another driver has, one that waits knows nothing.
"""


@dataclass(frozen=True)
class DriverId:
    """One run of one driver process."""

    host: str
    pid: int
    started: int
    """Milliseconds since the epoch."""

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.started}"

    @classmethod
    def parse(cls, written: str) -> DriverId:
        """What `str` made. Raises ValueError for anything else."""
        host, *numbers = written.rsplit("/", 2)
        if len(numbers) != 2 or not all(number.isascii() and number.isdecimal() for number in numbers):
            raise ValueError(f"{written!r} names no driver")
        return cls(host, *map(int, numbers))

    @property
    def place(self) -> str:
        """Where to find it, for people."""
        return place_of(self.host, self.pid)


def place_of(host: str, pid: int) -> str:
    """Where to find a process, for people."""
    return f"{host} pid {pid}"


def host_of(place: str) -> str:
    """The host of such a place; all of it where it is none."""
    return place.rpartition(" pid ")[0] or place


@dataclass(frozen=True)
class GroupsSummary:
    """How many consumer groups are where they should be on the target."""

    taken: int
    in_sync: int | None
    """None where group offsets are not synced."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Group → why it is not in sync; where none is synced, why it has no translation."""
    more: int = 0
    """Further ones that are left, without their names."""


@dataclass(frozen=True)
class DriverStatus:
    """The word of one driver about one flow. Times are milliseconds since the epoch, by its own clock."""

    driver: DriverId
    at: int
    every: float
    """Seconds until its next word."""
    state: FlowState
    since: int | None = None
    """When it came into this state."""
    is_last: bool = False
    """There will be no other one."""
    reason: str | None = None
    topics: int | None = None
    partitions: int | None = None
    realtime: int = 0
    """Of the partitions, those in the real-time lane; all others are in the lane of micro-batches."""
    records: int = 0
    """Since it started."""
    bytes: int = 0
    records_per_second: float | None = None
    bytes_per_second: float | None = None
    latency_ms: int | None = None
    lag_records: int | None = None
    unknown_since: int | None = None
    """Since when lag and latency are not known."""
    limit: str | None = None
    standing: tuple[Standstill, ...] = ()
    """What stands still."""
    held_more: int = 0
    """Further topics and partitions that are held, without their names."""
    parked: int = 0
    """Source topics with records in quarantine."""
    lost_records: int = 0
    groups: GroupsSummary | None = None
    audit: Audit | None = None
    """None where no copies are compared with their records."""
    last_error: str | None = None
    last_error_at: int | None = None

    @property
    def is_owner(self) -> bool:
        """Whether it runs the flow, as far as it says itself."""
        return self.state in (FlowState.RUNNING, FlowState.STALLED)


def driver_key(driver: DriverId) -> bytes:
    """Key of what a driver says."""
    return compact_json([_KIND, str(driver)])


def encode_status(status: DriverStatus, flow: Flow) -> bytes:
    """Value of what it says of a flow; what is not known or empty is left out, long lists are cut.

    `held` is for readers of before, which know no other form.
    """
    ordered = sorted(status.standing, key=lambda one: (str(one.scope), one.scope.partition is not None))
    standing = tuple(replace(one, why=_short(one.why) or "") for one in ordered[:_NAMES])
    held_more = status.held_more + len(ordered) - len(standing)
    groups = status.groups
    if groups is not None:
        left, more = _cut(groups.left, groups.more)
        groups = replace(groups, left=left, more=more)
    cut = replace(status, standing=(), held_more=held_more, groups=groups, reason=_short(status.reason))
    document = asdict(replace(cut, last_error=_short(status.last_error)))
    del document["driver"]
    document["standing"] = [document_of(one) for one in standing] or None
    document["held"] = {name: _short(why, _BRIEF) for name, why in by_name(standing, flow).items()}
    document["state"] = status.state.value
    if (audit := status.audit) is not None:
        first, unchecked, failed = (_short(text, _BRIEF) for text in (audit.first, audit.unchecked, audit.failed))
        document["audit"] = facts_of(replace(audit, first=first, unchecked=unchecked, failed=failed))
    kept = {name: value for name, value in document.items() if value is not None and value is not False and value != {}}
    return compact_json({"v": VERSION, **kept})


def decode_status(key: bytes | None, value: bytes | None) -> DriverStatus | None:
    """Read what a driver says; None for anything else, and for a version that this reader does not know."""
    try:
        kind, written = json.loads(key or b"")
        document = json.loads(value or b"")
        if kind != _KIND or document.pop("v") != VERSION:
            return None
        groups, audit = document.pop("groups", None), document.pop("audit", None)
        state = FlowState(document.pop("state"))
        standing = tuple(map(standstill_of, document.pop("standing", ()))) or from_names(document.pop("held", {}))
        known = {name: value for name, value in document.items() if name in DriverStatus.__dataclass_fields__}
        return DriverStatus(
            driver=DriverId.parse(str(written)),
            state=state,
            groups=None if groups is None else GroupsSummary(**groups),
            audit=_audit_of(audit),
            standing=standing,
            **known,
        )
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _audit_of(document: object) -> Audit | None:
    """None also for what is not understood: the driver's word counts all the same."""
    try:
        return audit_of(document) if isinstance(document, dict) else None
    except TypeError:
        return None


@dataclass(frozen=True)
class Heard:
    """A driver's word, and how it was heard."""

    status: DriverStatus
    """Its `at` is by the clock that stamps records: the broker's, where the topic is as we make it."""
    seconds_ago: float | None = None
    """How long ago it came, where the reader saw it come: then no clocks of two hosts are compared."""
    at_least: float = 0.0
    """How long ago the reader looked first, in seconds, where the word was there then."""

    def is_silent(self, now: int) -> bool:
        """Whether the driver should have said something else by now, in milliseconds of the reader's clock."""
        ago = max(self.at_least, (now - self.status.at) / 1000) if self.seconds_ago is None else self.seconds_ago
        return not self.status.is_last and ago > MISSED_WORDS * self.status.every


@dataclass(frozen=True)
class FlowDrivers:
    """All drivers that said something of one flow, the newest first in each list."""

    owner: DriverStatus | None = None
    """Who runs the flow."""
    trying: tuple[DriverStatus, ...] = ()
    """Who would run it, but starts only now, or failed and tries again."""
    standby: tuple[DriverStatus, ...] = ()
    """Who would take over."""
    ended: tuple[DriverStatus, ...] = ()
    """Who said that it ended."""
    silent: tuple[DriverStatus, ...] = ()
    """Of whom nothing is known any more; each says since when by `at`."""

    @property
    def live(self) -> tuple[DriverStatus, ...]:
        """Those that speak, the most important first."""
        return (*filter(None, [self.owner]), *self.trying, *self.standby)

    @property
    def spokesman(self) -> DriverStatus | None:
        """Whose word counts for the flow now; None where nobody's does."""
        gone = [one for one in self.silent if one.state is not FlowState.WAITING]
        if self.owner is None and not self.trying and gone and not self._ended_after(gone[0]):
            return None  # whoever waits for it does not know how it is
        return next(iter((*self.live, *self.ended)), None)

    @property
    def state(self) -> FlowState | None:
        """Where the flow stands; None where that is not known."""
        return None if self.spokesman is None else self.spokesman.state

    @property
    def unknown_since(self) -> int | None:
        """Since when it is not known; None where it is, or where no driver ever said anything."""
        if self.spokesman is not None or not self.silent:
            return None
        return next((one.at for one in self.silent if one.state is not FlowState.WAITING), self.silent[0].at)

    def _ended_after(self, silent: DriverStatus) -> bool:
        return any(one.at > silent.at for one in self.ended)


def drivers_of(words: Collection[Heard], now: int) -> FlowDrivers:
    """Sort them. A reader's clock `now` that is behind the newest word is set to it."""
    now = max((now, *(word.status.at for word in words)))
    newest = sorted(words, key=lambda word: word.status.at, reverse=True)
    silent = tuple(word.status for word in newest if word.is_silent(now))
    ended = tuple(word.status for word in newest if word.status.is_last)
    live = [word.status for word in newest if not word.status.is_last and not word.is_silent(now)]
    owners = [one for one in live if one.is_owner]
    # One that stalls may be on its way in or out: it does not know that somebody else has the flow.
    owner = next((one for one in owners if one.state is FlowState.RUNNING), next(iter(owners), None))
    standby = tuple(one for one in live if one.state is FlowState.WAITING)
    trying = tuple(one for one in live if one is not owner and one not in standby)
    return FlowDrivers(owner, trying, standby, ended, silent)


def _cut(names: Mapping[str, str], more: int) -> tuple[dict[str, str], int]:
    shown = {name: _short(why) or "" for name, why in sorted(names.items())[:_NAMES]}
    return shown, more + len(names) - len(shown)


def _short(text: str | None, most: int = _CHARACTERS) -> str | None:
    return text if text is None or len(text) <= most else f"{text[: most - 1]}…"
