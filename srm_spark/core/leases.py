"""Whose a flow is, by what stands in one partition of a log, and for how long that can be relied on.

Pure: records and moments are handed in. Who wants a flow appends to the log, and everybody reads the same records in
the same order:

```
claim   term, holder, behind    takes the flow from an owner whose newest record lies at `behind`
held    term, holder            its owner is still there
left    term, holder            its owner gives it up
```

A claim counts where nothing of the owner lies between `behind` and the claim, so of several the first one does, and one
that was made too early, of an owner who was only not heard, does nothing. An owner relies on a record of his own once
he has read it again with no claim in front of it, for `SURE_SECONDS` from before it was sent. Whoever waits claims when
nothing was heard for `PATIENCE_SECONDS`: longer than that by more than clocks drift.

A process may be stopped at any moment, for any time, and not know it: so a right is never a flag, it is a moment.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

BEAT_SECONDS = 0.5
"""How often an owner is heard."""
SURE_SECONDS = 2.5
PATIENCE_SECONDS = 3.0
HELD_SECONDS = 9.0
"""An owner who cannot be sure waits for so long before he ends, and says so: a leader that moves keeps others from
claiming, too."""
_DOUBT_SECONDS = 2 * BEAT_SECONDS
"""Who was not heard for so long is heard soon, or is not there."""
_VERSION = 1


class Act(Enum):
    """What a record of the log says."""

    CLAIM = "claim"
    HELD = "held"
    LEFT = "left"


@dataclass(frozen=True)
class LeaseRecord:
    """One of them."""

    act: Act
    term: int
    """Which ownership it is about; each is one more than the one before."""
    holder: str
    """Of one ownership of one process, nobody else's."""
    name: str
    """Where to find it, for people."""
    beat: int = 0
    """Number of this record, of all that the holder has sent."""
    behind: int = -1
    """Offset of the newest record of the owner that a claim knows; -1 for nobody's."""
    note: str = ""
    """What the owner wants its writers, and the next owner, to know."""
    source: str = ""
    """Kafka's id of the cluster that the owner copies from; empty where nobody has said."""

    def encode(self) -> bytes:
        """As a record's value."""
        fields = {"term": self.term, "holder": self.holder, "name": self.name, "beat": self.beat}
        fields |= {"behind": self.behind} if self.act is Act.CLAIM else {}
        fields |= {"source": self.source} if self.source else {}
        document = {"v": _VERSION, "act": self.act.value, **fields, "note": self.note}
        return json.dumps(document, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes | None) -> LeaseRecord | None:
        """What `encode` made; None for anything else, which says nothing of a lease."""
        try:
            document = json.loads(value or b"null")
            return cls(
                Act(document["act"]),
                int(document["term"]),
                str(document["holder"]),
                str(document["name"]),
                int(document["beat"]),
                int(document.get("behind", -1)),
                str(document["note"]),
                str(document.get("source", "")),
            )
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None


@dataclass(frozen=True)
class Standing:
    """Whose the flow is, as far as the log was read."""

    term: int = 0
    holder: str = ""
    """Empty for nobody."""
    name: str = ""
    newest: int = -1
    """Offset of the owner's newest record."""
    note: str = ""
    is_left: bool = False
    """Its owner gave it up."""
    source: str = ""
    """Id of the cluster that its owner copies from, or the last one who said so."""

    @property
    def is_free(self) -> bool:
        """Whether it can be claimed at once."""
        return not self.holder or self.is_left

    def after(self, offset: int, record: LeaseRecord) -> Standing:
        """The standing behind the next record of the log."""
        if record.act is Act.CLAIM:
            counts = (record.term, record.behind) == (self.term + 1, self.newest)
            return self._taken(offset, record) if counts else self
        if record.term > self.term:  # what made it the owner's lies in front of what was read
            return self._taken(offset, record)
        if self.is_left or (record.term, record.holder) != (self.term, self.holder):
            return self
        return replace(self, newest=offset, note=record.note, is_left=record.act is Act.LEFT)

    def claim(self, holder: str, name: str) -> LeaseRecord:
        """The record that takes it from its owner."""
        return LeaseRecord(
            Act.CLAIM, self.term + 1, holder, name, behind=self.newest, note=self.note, source=self.source
        )

    def _taken(self, offset: int, record: LeaseRecord) -> Standing:
        source = record.source or self.source  # an older version says nothing of it
        return Standing(record.term, record.holder, record.name, offset, record.note, record.act is Act.LEFT, source)


@dataclass
class LeaseClock:
    """A right that is confirmed now and then; moments are of one monotonic clock, in seconds."""

    seconds: float
    """How long a confirmation lasts."""
    until: float = float("-inf")

    def confirmed(self, asked_at: float) -> None:
        """The cluster confirmed a question that was asked then."""
        self.until = max(self.until, asked_at + self.seconds)

    def end(self) -> None:
        """It is somebody else's, or may be."""
        self.until = float("-inf")

    def is_held(self, now: float) -> bool:
        """Whether it can be relied on."""
        return now < self.until


class Candidate:
    """One process that wants a flow, or has it: what it may believe, and what it has to say. Moments are monotonic."""

    def __init__(self, name: str, source: str = "") -> None:
        """`source` is the id of the cluster that it copies from; empty: as the owner before."""
        self.name, self.source = name, source
        self.standing = Standing()
        self.holder = ""
        """As whom it wants the flow, or has it; empty for not at all."""
        self.is_owner = self.is_late = False
        """Whether its claim counts; whether it came behind another one."""
        self.note = ""
        """What its next records say."""
        self.confirmed_note: str | None = None
        self._is_listening = False
        self._heard_at = float("-inf")
        self._is_heard = False
        """Whether the owner has said something since we listen."""
        self._sure, self._held = LeaseClock(SURE_SECONDS), LeaseClock(HELD_SECONDS)
        self._asked: dict[int, float] = {}
        self._term, self._beats, self._next_beat = 0, 0, 0.0

    def heard(self, records: Iterable[LeaseRecord], standing: Standing, now: float, *, is_all: bool = True) -> None:
        """The next records of the log, and the standing behind them; before `is_all` was read, nothing is known."""
        if standing != self.standing or not self._is_listening:
            self._heard_at, self._is_heard = now, self._is_listening
        self._is_listening, self.standing = is_all, standing
        for record in records:
            if record.holder == self.holder:
                self._heard_ourselves(record)
        if self.is_owner and standing.holder != self.holder:
            self._end()

    def owner(self, now: float) -> str | None:
        """Who has it, empty for nobody who is there; None while that is not known yet."""
        silence = now - self._heard_at
        if not self._is_listening:
            return None
        if self.standing.is_free or silence > PATIENCE_SECONDS:
            return ""
        return self.standing.name if self._is_heard and silence < _DOUBT_SECONDS else None

    def claim(self, holder: str, now: float) -> LeaseRecord:
        """What takes the flow from an owner who is not there; `holder` is nobody else's."""
        self.holder, self.is_owner, self.is_late = holder, False, False
        self._sure, self._held = LeaseClock(SURE_SECONDS), LeaseClock(HELD_SECONDS)
        record = self.standing.claim(holder, self.name)
        self.source = self.source or record.source
        record = replace(record, source=self.source)
        self.note, self.confirmed_note = record.note, None
        self._term, self._beats, self._next_beat, self._asked = record.term, 0, now, {record.beat: now}
        return record

    def give_up(self) -> None:
        """Want it no more: a claim that counts after all, once the log goes on, is nobody's, and is not heard."""
        self._end()
        self.holder, self.is_owner = "", False

    def beat(self, now: float) -> LeaseRecord | None:
        """What an owner has to say now."""
        if not self.is_owner or self.standing.holder != self.holder or now < self._next_beat:
            return None
        self._next_beat = now + BEAT_SECONDS
        record = self._record(Act.HELD)
        self._asked = {beat: at for beat, at in self._asked.items() if now - at < HELD_SECONDS}
        self._asked[record.beat] = now
        return record

    def leave(self, now: float) -> LeaseRecord | None:
        """What gives it up, where it is ours."""
        record = self._record(Act.LEFT) if self.is_held(now) else None
        self.give_up()
        return record

    def say(self, note: str) -> None:
        """With the next record, at once."""
        self.note, self._next_beat = note, float("-inf")

    def is_sure(self, now: float) -> bool:
        """Whether it is ours for certain, and nobody else is to have it."""
        return self._sure.is_held(now)

    def is_held(self, now: float) -> bool:
        """Whether it is ours as far as anybody knows: while a log takes nothing, nobody else can claim it either."""
        return self._held.is_held(now)

    def _heard_ourselves(self, record: LeaseRecord) -> None:
        """What we sent stands in the log, with all that is in front of it."""
        asked_at = self._asked.pop(record.beat, None)
        if self.standing.holder != self.holder:
            self.is_late = True
        elif asked_at is not None:
            self.is_owner, self.confirmed_note = True, record.note
            self._sure.confirmed(asked_at)
            self._held.confirmed(asked_at)

    def _end(self) -> None:
        self._sure.end()
        self._held.end()

    def _record(self, act: Act) -> LeaseRecord:
        self._beats += 1
        return LeaseRecord(act, self._term, self.holder, self.name, self._beats, note=self.note, source=self.source)
