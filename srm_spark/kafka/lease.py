"""Who may write a flow: the owner by the log of leases on its target (`core/leases.py` has the rules).

A thread of its own reads the log and lets the owner be heard twice a second, whatever else the flow's threads wait for.
What is written asks first, see `Permit`.

No task of the driver's clock (`flow/periodic.py`): commands without a driver have a lease, too, and a clock that is
late must never cost one.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.driver_status import place_of
from srm_spark.core.leases import HELD_SECONDS, PATIENCE_SECONDS, Candidate, LeaseClock
from srm_spark.core.model import Flow
from srm_spark.core.spreading import StandBy
from srm_spark.errors import LeaseLost, TargetUnavailable
from srm_spark.kafka.clients import options
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.fencing import TokenNote
from srm_spark.kafka.lease_log import LeaseLog, clock
from srm_spark.kafka.older_drivers import OlderDrivers

log = logging.getLogger(__name__)

_READ_SECONDS = 0.2
_CLAIM_SECONDS = 10.0
_LEAVE_SECONDS = 2.0
_STAND_BY_SECONDS = 1.0
_MISSED_SECONDS = 2.5 * _STAND_BY_SECONDS
"""Who was not heard for so long does not stand by any more."""
_WATCH_SECONDS = 0.5
_WATCHED_SECONDS = 1.4
_ANSWER_SECONDS = 0.5
"""How long another process relies on what it has read of the owner."""


def lease_group(flow: Flow) -> str:
    """What the lease of a flow is called; its transactional ids begin with it."""
    return f"srm-{flow}"


def lease_log(flow: Flow, cluster: ClusterSettings, topic: str, role: str) -> LeaseLog:
    """The log of a flow's leases; nothing is asked of the target yet."""
    return LeaseLog(options(cluster, {}, f"{flow}|{role}"), topic, lease_group(flow))


class Lease:
    """The right to write one flow."""

    def __init__(self, flow: Flow, target: ClusterClient, topic: str, older: OlderDrivers | None = None) -> None:
        """`topic` is that of the leases; `older` are drivers that know nothing of it."""
        self.group = lease_group(flow)
        self._flow, self._target, self._topic, self._older = flow, target, topic, older
        self._ours = Candidate(place_of(socket.gethostname(), os.getpid()))
        self._log: LeaseLog | None = None
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._failed: Exception | None = None
        self._says: Callable[[], StandBy | None] | None = None
        self._next_word = 0.0
        self.older_token: TokenNote | None = None
        """That of the last owner who knew nothing of the log."""

    def other_owner(self) -> str | None:
        """Who holds the lease, if it is somebody else; one that is not heard is waited for.

        Raises TargetUnavailable where the target does not say.
        """
        if self._ours.is_owner:
            return None
        if self._older is not None and (older := self._older.owner()) is not None:
            return older
        self._listen()
        with self._changed:
            deadline = clock() + max(self._target.timeout, PATIENCE_SECONDS + _CLAIM_SECONDS)
            # What this process has given up is free as soon as that is read.
            while (owner := self._ours.owner(clock())) is None or (owner and self._ours.standing.holder in _ended):
                self._wait(deadline)
            return owner or None

    def await_free(self, over: threading.Event, seconds: float) -> None:
        """Wait until an owner whom the log knows may be replaced, `seconds` at most, and until `over`.

        Costs the target nothing. Where the log knows of none, the owner is a driver that does not know it.
        """
        deadline = clock() + seconds
        with self._changed:
            if self._ours.owner(clock()) != "":
                while self._ours.owner(now := clock()) != "" and now < deadline and not over.is_set():
                    self._changed.wait(_READ_SECONDS)
                return
        over.wait(seconds)

    def stand_by(self, says: Callable[[], StandBy | None]) -> None:
        """Let the owner know, from now on, that this process would have it: asked each second, None for not now."""
        self._says = says

    def standbys(self) -> list[StandBy]:
        """Who would have it, others and ourselves, by what was heard just now."""
        # At once, for the thread that reads the log goes on with it.
        said = [] if self._log is None else list(self._log.standing_by.values())
        return [one for at, one in said if at > clock() - _MISSED_SECONDS]

    @property
    def copied_from(self) -> str:
        """Id of the source cluster of who has it, or had it last; empty where nobody has said."""
        return self._ours.standing.source

    def copy_from(self, source: str) -> None:
        """The id of our source cluster, in front of a claim; where nobody says it, the last owner's stands."""
        self._ours.source = source

    def acquire(self) -> bool:
        """Claim it; False when somebody else was faster, or an owner who is not heard cannot be replaced now.

        Raises TargetUnavailable where nobody has it, and the claim gets no answer.
        """
        lease_log = self._listen()
        with self._changed:
            now = clock()
            if self._ours.owner(now) != "":  # somebody has come since it was free
                return False
            is_free = self._ours.standing.is_free
            lease_log.append(self._ours.claim(uuid.uuid4().hex, now))
            while not (self._ours.is_owner or self._ours.is_late):
                if not is_free and clock() > now + PATIENCE_SECONDS:
                    self._ours.give_up()
                    return False  # a log that takes no claim takes nothing of its owner's either
                self._wait(now + _CLAIM_SECONDS)
            if self._ours.is_late:
                return False
        _leases[self._ours.holder] = self
        if self._older is not None:
            self.older_token = self._older.take_note()
            self._older.keep_out()
        return True

    def is_held(self) -> bool:
        """Whether the lease is ours, as far as anybody knows; see `require` for what is certain."""
        return self._ours.is_held(clock()) and not self._is_overruled

    @property
    def why_lost(self) -> str:
        """Whose it is, or why nothing of it can be confirmed; for where it is not held."""
        ours, lease_log = self._ours, self._log
        if self._is_overruled:
            return "a driver of an older version has it"
        if lease_log is None:
            return "it was given up"
        if ours.standing.holder != ours.holder:
            return f"{ours.standing.name} has it"
        return f"nothing was confirmed for {HELD_SECONDS:g} s; last seen: {self._failed or lease_log.last_error}"

    @property
    def _is_overruled(self) -> bool:
        return self._older is not None and self._older.has_come

    def is_certain(self) -> bool:
        """Wait until it is ours for certain, and nobody else is to have it; False where it is not ours."""
        with self._changed:
            while not self._ours.is_sure(clock()) or self._is_overruled:
                if not self.is_held():
                    return False
                self._changed.wait(_READ_SECONDS)
        return True

    def require(self) -> None:
        """The same. Raises LeaseLost where it is not ours."""
        if not self.is_certain():
            raise lost(self._flow, self.why_lost)

    @property
    def permit(self) -> Permit:
        """The same question for who writes elsewhere."""
        return Permit(self._flow, self._ours.holder, self._target.settings, self._topic, self._target.timeout)

    @property
    def noted(self) -> str:
        """The newest note: of the owner before, until another one is left."""
        return self._ours.note

    def note(self, text: str) -> None:
        """Leave a note that others can read; only the owner's counts.

        Raises LeaseLost where the lease is somebody else's, or ran out while the target did not answer.
        """
        with self._changed:
            self._ours.say(text)
            while self._ours.confirmed_note != text or not self._ours.is_sure(clock()):
                if not self.is_held():
                    raise lost(self._flow, self.why_lost)
                self._changed.wait(_READ_SECONDS)

    def release(self) -> None:
        """Give it up, so that another driver can take over at once."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if _leases.pop(self._ours.holder, None) is not None:
            _ended.add(self._ours.holder)
        last = self._ours.leave(clock())
        if self._log is not None:
            if last is not None:
                self._log.append(last)
                self._log.flush(_LEAVE_SECONDS)
            self._log.close()
        if self._older is not None:
            self._older.close()
        self._log = self._thread = None

    def _listen(self) -> LeaseLog:
        """Read the log from now on, in a thread."""
        if self._log is None:
            self._over, self._failed = threading.Event(), None
            self._ours = Candidate(self._ours.name, self._ours.source)
            self._log = lease_log(self._flow, self._target.settings, self._topic, "lease")
            self._thread = threading.Thread(
                target=self._serve, args=(self._log, self._over), name=f"srm lease {self._flow}", daemon=True
            )
            self._thread.start()
        return self._log

    def _serve(self, lease_log: LeaseLog, over: threading.Event) -> None:
        try:
            self._listen_until(lease_log, over)
        except Exception as error:  # nothing is confirmed any more, and whoever waits is told why
            log.exception("flow=%s its lease is not kept", self._flow)
            with self._changed:
                self._failed = error
                self._changed.notify_all()

    def _listen_until(self, lease_log: LeaseLog, over: threading.Event) -> None:
        while not over.is_set():
            records = lease_log.read(_READ_SECONDS)
            with self._changed:
                now = clock()
                self._ours.heard(records, lease_log.standing, now, is_all=lease_log.is_at_end)
                if (record := self._ours.beat(now)) is not None:
                    lease_log.append(record)
                elif self._says is not None and not self._ours.is_owner and now >= self._next_word:
                    self._next_word = now + _STAND_BY_SECONDS
                    if (word := self._says()) is not None:
                        lease_log.append(word)
                self._changed.notify_all()

    def _wait(self, deadline: float) -> None:
        """For what is read next. Raises TargetUnavailable where nothing is, or we may not."""
        assert self._log is not None
        what = f"take the lease {self.group}"
        if self._failed is not None:
            raise self._target.refused(what, str(self._failed)) from self._failed
        if self._log.refused is not None:
            raise self._target.failure(what, KafkaException(self._log.refused), self._log.missing_right)
        if clock() > deadline:
            reason = f"topic {self._topic} does not answer in time; last seen: {self._log.last_error}"
            raise self._target.refused(what, reason)
        self._changed.wait(_READ_SECONDS)


@dataclass(frozen=True)
class Permit:
    """Whether a flow may still be written, for whoever writes it; travels with the batch function.

    In the driver's process its lease says so. Elsewhere, where a query of Spark Connect may outlive its driver by an
    hour, the log is read.
    """

    flow: Flow
    holder: str
    """The owner, as the log calls him."""
    cluster: ClusterSettings = field(repr=False)
    topic: str
    """That of the leases."""
    seconds: float
    """For an answer."""

    def require(self) -> None:
        """Raises LeaseLost where the owner has changed, TargetUnavailable where nobody says whether it has."""
        lease = _leases.get(self.holder)
        if lease is not None:
            lease.require()
        else:
            _others.require(self)


class Watch:
    """Asks for a permit again and again in a thread of its own, for who writes all the time and cannot wait for it.

    What is called sure was asked `_WATCHED_SECONDS` ago at most. With how long the answer counts that is less than who
    takes over waits, where nobody is fenced, from the owner's last sign of life on (`PATIENCE_SECONDS`) until the
    remote topics have stood still (`Patience` in `flow/recovery/settling.py`).
    """

    def __init__(self, permit: Permit) -> None:
        self._permit = permit
        self._clock = LeaseClock(_WATCHED_SECONDS)
        self._loss: LeaseLost | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, name=f"srm permit {permit.flow}", daemon=True)
        self._thread.start()

    def is_sure(self) -> bool:
        """Whether something may be written now; while nobody says so, wait. Raises LeaseLost."""
        if self._loss is not None:
            raise self._loss
        return self._clock.is_held(clock())

    def end(self) -> None:
        """Ask no more."""
        self._over.set()

    def _ask(self) -> None:
        while not self._over.is_set():
            asked_at = clock()
            try:
                self._permit.require()
                self._clock.confirmed(asked_at)
            except LeaseLost as error:
                self._loss = error
                return
            except TargetUnavailable:
                pass  # it is not sure any more, soon
            except Exception:  # without this thread its task would wait for ever, and nobody would know why
                log.exception("flow=%s whether it may still write is not known, and is asked again", self._permit.flow)
            # What answers may take counts, too: the end of a log is told behind a fetch that waits for half a second.
            self._over.wait(max(0.0, _WATCH_SECONDS - (clock() - asked_at)))


def lost(flow: Flow, why: str = "") -> LeaseLost:
    """The error where a flow is not ours any more."""
    return LeaseLost(f"the lease of flow {flow} is lost{f': {why}' * bool(why)}")


class _Other:
    """The log of one flow's leases, in a process that holds none."""

    def __init__(self, permit: Permit) -> None:
        self.lock = threading.Lock()
        self.place = permit.cluster, permit.topic
        self._log = lease_log(permit.flow, permit.cluster, permit.topic, "permit")
        self._clock = LeaseClock(_ANSWER_SECONDS)

    def require(self, permit: Permit) -> None:
        asked_at = clock()
        if self._clock.is_held(asked_at) and self._is_of(permit):
            return
        self._log.caught_up(permit.seconds)
        self._clock.confirmed(asked_at)
        if not self._is_of(permit):
            raise lost(permit.flow)

    def close(self) -> None:
        """Let go of the connections."""
        with self.lock:
            self._log.close()

    def _is_of(self, permit: Permit) -> bool:
        return self._log.standing.holder == permit.holder and not self._log.standing.is_left


class _Others:
    """Of all flows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Flow, _Other] = {}

    def require(self, permit: Permit) -> None:
        with self._lock:
            other = self._known.get(permit.flow)
            if other is not None and other.place != (permit.cluster, permit.topic):  # its settings are others by now
                other.close()
                other = None
            if other is None:
                other = self._known[permit.flow] = _Other(permit)
        with other.lock:
            other.require(permit)


_leases: dict[str, Lease] = {}
"""Leases of this process, by their holder."""
_ended: set[str] = set()
"""Holders that this process was."""
_others = _Others()
