"""Kinds of failure. What the program does about one hangs on its kind; its sentence is for people.

Kinds are recorded in Kafka by their codes, so a code never changes its meaning. What was recorded before there were
kinds is read by `core/failure_wordings.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum


class Effect(Enum):
    """What the flow does about a failure."""

    PAUSES = "pauses"
    """The partition waits and is tried again every minute; all others go on."""
    WAITS = "waits"
    """The partition waits until somebody changes what its remedy names; all others go on."""
    STARTS_ANEW = "starts anew"
    """Both sides are looked at again, and the query starts at once."""
    DRAWN_IN = "drawn in"
    """Nothing is wrong with the partition: it shared a producer or a transaction with one that failed."""
    SEARCHES = "searches"
    """What it is about is looked for, and those partitions wait; where nothing is found, it retries."""
    RETRIES = "retries"
    """The flow ends, and starts again after `flow.retry.delay.ms`."""
    FAILS = "fails"
    """The flow ends and is not started again."""


class FailureKind(Enum):
    """Code, effect, meaning and remedy."""

    effect: Effect
    meaning: str
    remedy: str

    def __new__(cls, code: str, effect: Effect, meaning: str, remedy: str) -> FailureKind:
        made = object.__new__(cls)
        made._value_ = code
        made.effect, made.meaning, made.remedy = effect, meaning, remedy
        return made

    # A record that the target would refuse, or that cannot be read.
    NO_KEY = (
        "no-key",
        Effect.PAUSES,
        "a record has no key, and the remote topic is compacted",
        "take cleanup.policy=compact off the remote topic, or set refused.record.policy=park",
    )
    TIMESTAMP_OUT_OF_RANGE = (
        "timestamp-out-of-range",
        Effect.PAUSES,
        "a record is older or newer than the remote topic allows",
        "raise message.timestamp.before.max.ms or after.max.ms, or set refused.record.policy=fix or park",
    )
    TOO_LARGE = (
        "too-large",
        Effect.PAUSES,
        "a record does not fit into max.message.bytes of the remote topic",
        "raise max.message.bytes of the remote topic, or set refused.record.policy=park",
    )
    HEADER_NAME = (
        "header-name",
        Effect.PAUSES,
        "a header's name may not be UTF-8, and Spark's source would change it",
        "pip install 'srm-spark[compiled]', which reads names as they are",
    )
    BROKEN_HEADERS = (
        "broken-headers",
        Effect.PAUSES,
        "an older version could not read the headers of a record",
        "delete the record on the source, or let retention pass it",
    )
    BROKEN_BATCH = (
        "broken-batch",
        Effect.PAUSES,
        "a batch of the source's log is damaged",
        "delete its records on the source, or let retention pass them",
    )
    TIMESTAMP_OVERFLOW = (
        "timestamp-overflow",
        Effect.SEARCHES,
        "a timestamp is larger than Spark's source can read",
        "delete the record on the source, or set refused.record.policy=fix or park",
    )

    # A partition whose two sides do not fit together.
    FOREIGN_WRITER = (
        "foreign-writer",
        Effect.WAITS,
        "somebody else writes to the remote topic",
        "stop that writer and reset the partition's progress, or set foreign.writer.policy=resume",
    )
    OPEN_TRANSACTION = (
        "open-transaction",
        Effect.PAUSES,
        "a transaction on the remote topic hangs",
        "end it by kafka-transactions.sh",
    )
    SOURCE_TRUNCATED = (
        "source-truncated",
        Effect.PAUSES,
        "the source deleted records before they were replicated",
        "set source.truncated.policy=resume to go on behind them",
    )
    SOURCE_RECREATED = (
        "source-recreated",
        Effect.PAUSES,
        "the source topic was created anew",
        "set source.recreated.policy=resume to start at its beginning",
    )
    SOURCE_DIVERGED = (
        "source-diverged",
        Effect.PAUSES,
        "the source has none or other records where copies were made",
        "set source.diverged.policy=resume to go on behind them",
    )
    NO_LEADER = (
        "no-leader",
        Effect.WAITS,
        "a partition of one side has no leader: the brokers that could lead it are away",
        "start one of its brokers; the partition goes on once it has a leader",
    )
    COPIES_GONE = (
        "copies-gone",
        Effect.PAUSES,
        "copies on the target are gone: it was truncated or created anew",
        "set target.changed.policy=resume to go on behind them",
    )

    PAUSED = (
        "paused",
        Effect.WAITS,
        "somebody has paused it",
        "srm-control resume",
    )

    # What a task met while it wrote.
    TARGET_DENIED = (
        "target-denied",
        Effect.PAUSES,
        "the target does not let us write to a remote topic",
        "allow WRITE on the topic to the principal of these credentials",
    )
    TARGET_CHANGED = (
        "target-changed",
        Effect.STARTS_ANEW,
        "copies do not lie right behind those before them",
        "nothing: both sides are compared before anything else is written",
    )
    NOT_ACKNOWLEDGED = (
        "not-acknowledged",
        Effect.RETRIES,
        "the target did not acknowledge a record in time",
        "look after the target's brokers",
    )
    OVERTAKEN = (
        "overtaken",
        Effect.RETRIES,
        "a newer writer of the flow has fenced this one: nothing that it sends is taken any more",
        "nothing: this one gives up",
    )
    WRITE_REFUSED = ("write-refused", Effect.RETRIES, "the target refused a record", "see the broker's error")
    NOT_COMMITTED = (
        "not-committed",
        Effect.RETRIES,
        "a transaction could not be committed",
        "see the broker's error; the flow starts again",
    )
    PRODUCER_FAILED = (
        "producer-failed",
        Effect.DRAWN_IN,
        "the producer gave up everything that waited, for another failure",
        "see the other partitions",
    )
    ROLLED_BACK = (
        "rolled-back",
        Effect.DRAWN_IN,
        "the transaction came to nothing, for another failure",
        "see the other partitions",
    )

    # What ends a query or a start.
    SOURCE_DENIED = (
        "source-denied",
        Effect.SEARCHES,
        "the source does not let us read a topic",
        "allow READ on the topic to the principal of these credentials",
    )
    SOURCE_CHANGED = (
        "source-changed",
        Effect.STARTS_ANEW,
        "a source topic is gone, created anew, or went back",
        "nothing: the flow looks at its topics again",
    )
    SOURCE_AWAY = ("source-away", Effect.RETRIES, "the source does not answer or refuses us", "see the sentence")
    TARGET_AWAY = ("target-away", Effect.RETRIES, "the target does not answer or refuses us", "see the sentence")
    NOT_RECORDED = ("not-recorded", Effect.RETRIES, "an internal topic refused a record", "see the broker's error")
    LEASE_HELD = (
        "lease-held",
        Effect.FAILS,
        "another driver owns the flow, and waiting was not wanted",
        "stop that driver, or start without --no-wait",
    )
    LEASE_LOST = (
        "lease-lost",
        Effect.RETRIES,
        "another driver took over the flow, or the lease could not be confirmed",
        "nothing: this one waits",
    )
    ANOTHER_SOURCE = (
        "another-source",
        Effect.RETRIES,
        "the flow is copied from another source cluster than the one that this file names",
        "give the source another alias in one of both files, or set flow.source.cluster.id where it was built anew",
    )

    # Consumer groups.
    GROUP_HAS_MEMBERS = (
        "group-has-members",
        Effect.PAUSES,
        "offsets of a group with members cannot be set",
        "nothing, or stop its consumers",
    )
    GROUP_DENIED = (
        "group-denied",
        Effect.PAUSES,
        "a cluster does not let us ask or set a group",
        "allow READ on the group to the principal of these credentials",
    )
    GROUP_UNANSWERED = ("group-unanswered", Effect.PAUSES, "a group's coordinator does not answer", "wait")

    OTHER = ("other", Effect.RETRIES, "something that has no kind of its own", "see the sentence")

    @classmethod
    def of(cls, code: object) -> FailureKind:
        """The kind with this code; OTHER for one that a newer version has recorded."""
        return next((kind for kind in cls if kind.value == code), cls.OTHER)


@dataclass(frozen=True)
class Failure:
    """What happened: for the program, and for people."""

    kind: FailureKind
    sentence: str
    topics: tuple[str, ...] = ()
    """Source topics that it is about, where it says so."""

    def __str__(self) -> str:
        return self.sentence


_MARK = "srm-failure "


class CrossedFailure(Exception):
    """A failure on its way through Spark, which hands on nothing of an exception but its text."""

    def __init__(self, failure: Failure) -> None:
        content = {"kind": failure.kind.value, "sentence": failure.sentence, "topics": failure.topics}
        super().__init__(_MARK + json.dumps(content))  # ASCII, and one line: nobody on the way cuts or quotes it
        self.failure = failure


def crossed(text: str) -> Failure | None:
    """The failure within what Spark made of a CrossedFailure; None where there is none."""
    at = -1
    while (at := text.find(_MARK, at + 1)) >= 0:
        try:
            document, _ = json.JSONDecoder().raw_decode(text, at + len(_MARK))
            return Failure(FailureKind.of(document["kind"]), str(document["sentence"]), tuple(document["topics"]))
        except (ValueError, TypeError, KeyError):  # cut off
            continue
    return None


class Failing(Exception):
    """An exception that knows its kind."""

    kind: FailureKind = FailureKind.OTHER
    topics: tuple[str, ...] = ()

    @property
    def failure(self) -> Failure:
        """It as a value."""
        return Failure(self.kind, str(self), self.topics)


def failure_of(error: BaseException) -> Failure:
    """An exception as a value; one that is not ours has no kind."""
    if isinstance(error, Failing):
        return error.failure
    return Failure(FailureKind.OTHER, f"{type(error).__name__}: {error}")


@contextmanager
def crossing() -> Iterator[None]:
    """Around everything that Spark calls: a failure of ours leaves it as data."""
    try:
        yield
    except Failing as error:
        raise CrossedFailure(error.failure) from error
