"""Who may write a flow: the driver that holds partition 0 of the progress topic in the group `srm-A->B`.

Kafka's group coordinator on the target decides. A driver that dies is dropped after the session timeout; one that
leaves in peace is replaced at once. A driver does not join while another one is there, so the owner is never disturbed.

A thread of its own serves the membership for as long as it lasts, whatever else the flow's threads wait for, and has
it confirmed every few seconds: the coordinator takes an offset commit from a living member only, and counts its session
from there. What is written asks first, see `Permit`.

No task of the driver's clock (`flow/periodic.py`): a consumer is polled all the time, commands without a driver have a
lease, too, and a clock that is late must never cost one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.lease_clock import LeaseClock
from srm_spark.core.model import Flow
from srm_spark.errors import LeaseLost, TargetUnavailable
from srm_spark.kafka.clients import LastError, member
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.failures import is_denied
from srm_spark.kafka.groups import GroupsClient

log = logging.getLogger(__name__)

SESSION_MS = 10_000
"""A dead owner's lease is free after this; with the poll of the one that waits it stays below 15 s."""
POLL_MS = 300_000
"""A member that does not poll for so long is dropped, too; no shorter than the session."""
_JOIN_SECONDS = 30.0
_HAND_OVER_SECONDS = 60.0
"""For the batch in progress; the coordinator waits for `POLL_MS`."""
_CONFIRM_SECONDS = 2.0
_MARGIN_SECONDS = 1.0
"""What was asked right in front of the end is written behind it."""
_POLL_SECONDS = 0.2
_NOTE_POLL_SECONDS = 0.02
_WATCH_SECONDS = 0.5
_SURE_SECONDS = 3.5
_ANSWER_SECONDS = 1.5
"""How long another process relies on what the coordinator said to it."""


def lease_group(flow: Flow) -> str:
    """The group whose only member may write a flow."""
    return f"srm-{flow}"


class Lease:
    """The right to write one flow."""

    def __init__(self, flow: Flow, target: ClusterClient, topic: str, poll_ms: int = POLL_MS) -> None:
        self.group = lease_group(flow)
        self._flow = flow
        self._target = target
        self._topic = topic
        self._poll_ms = poll_ms
        self._last_error = LastError()
        self._consumer: Consumer | None = None
        self._groups = GroupsClient(target, "READ")
        self._clock = LeaseClock(SESSION_MS / 1000 - _MARGIN_SECONDS)
        self._note = self._asked_note = ""
        self._confirmed_note: str | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._member = ""
        self._asked_at = 0.0
        self._is_asking = False

    def other_owner(self) -> str | None:
        """Who holds the lease, if it is somebody else."""
        if self._consumer is not None:
            return None
        described = self._groups.describe(self.group)
        names = (_named(member, name) for member, name in zip(described.ids, described.members, strict=True))
        return ", ".join(names) or None

    def acquire(self) -> bool:
        """Join the group; False when somebody else was faster, and then nothing is left behind."""
        self._groups.close()
        self._clock, self._over = LeaseClock(self._clock.seconds), threading.Event()
        self._is_asking = False
        told = partial(self._told, self._over)
        self._consumer = consumer = member(
            self._target.settings, self.group, SESSION_MS, self._last_error, on_commit=told, poll_ms=self._poll_ms
        )
        try:
            self._join(consumer)
            if self.is_held():
                self._note, self._confirmed_note = self._noted(consumer), None
        except KafkaException as error:
            right = f"READ on group {self.group}, and on topic {self._topic}"
            failure = self._target.failure(f"join the group {self.group}", error, right)
            self.release()
            raise failure from error
        if not self.is_held():
            self.release()
            return False
        self._member = str(consumer.memberid())
        _leases[self._member] = self
        self._thread = threading.Thread(target=self._serve, name=f"srm lease {self._flow}", daemon=True)
        self._thread.start()
        return True

    def is_held(self) -> bool:
        """Whether the lease is ours for certain, and nobody else is to have it."""
        return self._clock.is_held(time.monotonic())

    def require(self) -> None:
        """Raises LeaseLost where nothing may be written any more; what has begun when another driver came may be."""
        if not self._clock.may_write(time.monotonic()):
            raise lost(self._flow, self.group)

    @property
    def permit(self) -> Permit:
        """The same question for who writes elsewhere."""
        target = self._target
        return Permit(self._flow, self._member, target.settings, dict(target.properties), target.timeout)

    def note(self, metadata: str) -> None:
        """Leave a note that others can read, with the next confirmation; only the owner can, since the coordinator
        refuses everybody else.

        Raises LeaseLost where the lease is somebody else's, or ran out while the coordinator did not answer.
        """
        self._note = metadata
        while self._confirmed_note != metadata:
            if not self.is_held():
                raise LeaseLost(f"group {self.group}: cannot get a note: nothing was confirmed in time")
            time.sleep(_NOTE_POLL_SECONDS)

    def release(self) -> None:
        """Leave the group, so that another driver can take over at once."""
        self._over.set()
        self._clock.end()
        if _leases.pop(self._member, None) is not None:
            _ended[self._member] = time.time() + SESSION_MS / 1000
        self._groups.close()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            _leave(consumer)

    def _join(self, consumer: Consumer) -> None:
        consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        deadline = time.monotonic() + _JOIN_SECONDS
        while not self.is_held() and time.monotonic() < deadline:
            self._asked_at = time.monotonic()
            self._look_at(consumer.poll(_POLL_SECONDS))
            if consumer.assignment() and not self.is_held():
                break  # we are a member, but partition 0 is another's

    def _serve(self) -> None:
        consumer, next_time = self._consumer, 0.0
        assert consumer is not None
        while not self._over.is_set():
            consumer.poll(_POLL_SECONDS)
            now = time.monotonic()
            is_due = now >= next_time or self._asked_note != self._note
            if is_due and not self._is_asking and self._clock.may_write(now):
                next_time = now + _CONFIRM_SECONDS
                with suppress(KafkaException):  # then nothing is confirmed
                    self._asked_at, self._asked_note = time.monotonic(), self._note
                    consumer.commit(offsets=[self._place(self._asked_note)], asynchronous=True)
                    self._is_asking = True

    def _told(self, over: threading.Event, error: KafkaError | None, _: list[KafkaTopicPartition]) -> None:
        """The coordinator's answer to a confirmation; one is under way at a time.

        What a consumer hears that was left behind says nothing of the lease, nor do its assignments.
        """
        if over is not self._over:
            return
        if error is None and self._is_asking:
            self._clock.confirmed(self._asked_at)
            self._confirmed_note = self._asked_note
        self._is_asking = False

    def _place(self, note: str) -> KafkaTopicPartition:
        return KafkaTopicPartition(self._topic, 0, 0, note)

    def _noted(self, consumer: Consumer) -> str:
        """What the owner before has left; a confirmation says it again."""
        (committed,) = consumer.committed([KafkaTopicPartition(self._topic, 0)], self._target.timeout)
        return committed.metadata or ""

    def _look_at(self, message: Message | None) -> None:
        error = None if message is None else message.error()
        if error is not None and is_denied(error):
            raise KafkaException(error)

    def _assigned(self, consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)  # membership is all we want; no record is fetched
        if any(partition.partition == 0 for partition in partitions):
            self._clock.confirmed(self._asked_at)

    def _revoked(self, consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
        # The next owner gets the partition only when this returns: until then nobody else writes.
        if consumer is self._consumer and any(partition.partition == 0 for partition in partitions):
            if not self._over.is_set():
                self._clock.hand_over(time.monotonic() + _HAND_OVER_SECONDS)
                self._over.wait(_HAND_OVER_SECONDS)
            self._clock.end()

    def _lost(self, consumer: Consumer, _partitions: list[KafkaTopicPartition]) -> None:
        if consumer is self._consumer:
            self._clock.end()  # the session is over, somebody else may own it by now


@dataclass(frozen=True)
class Permit:
    """Whether a flow may still be written, for whoever writes it; travels with the batch function.

    In the driver's process its lease says so. Elsewhere, where a query of Spark Connect may outlive its driver by an
    hour, the coordinator is asked who the group's member is.
    """

    flow: Flow
    member: str
    """The owner's id in the group."""
    cluster: ClusterSettings
    properties: Mapping[str, str] = field(repr=False)
    """Of administrative clients."""
    seconds: float
    """For a call."""

    def require(self) -> None:
        """Raises LeaseLost where the owner has changed, TargetUnavailable where nobody says whether it has."""
        lease = _leases.get(self.member)
        if lease is not None:
            lease.require()
        elif self.member not in _others.ids(self):
            raise lost(self.flow, lease_group(self.flow))


class Watch:
    """Asks for a permit again and again in a thread of its own, for who writes all the time and cannot wait for it.

    What is called sure was asked `_SURE_SECONDS` ago at most. A driver that takes over waits longer than that until the
    remote topics stand still, before it compares or writes anything.
    """

    def __init__(self, permit: Permit) -> None:
        self._permit = permit
        self._clock = LeaseClock(_SURE_SECONDS)
        self._loss: LeaseLost | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, name=f"srm permit {permit.flow}", daemon=True)
        self._thread.start()

    def is_sure(self) -> bool:
        """Whether something may be written now; while nobody says so, wait. Raises LeaseLost."""
        if self._loss is not None:
            raise self._loss
        return self._clock.may_write(time.monotonic())

    def end(self) -> None:
        """Ask no more."""
        self._over.set()

    def _ask(self) -> None:
        while not self._over.is_set():
            asked_at = time.monotonic()
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
            self._over.wait(_WATCH_SECONDS)


def lost(flow: Flow, group: str) -> LeaseLost:
    """The error where a flow is not ours any more."""
    return LeaseLost(f"flow {flow}: the lease (group {group}) is lost")


def _leave(consumer: Consumer) -> None:
    """Leave the group, or be dropped by it.

    librdkafka's `close` waits without end for the answer to a commit where the brokers are gone (its issue 3740), and
    cannot be interrupted. Once a session has passed the coordinator has dropped us anyway: the thread is left behind.
    """
    leaving = threading.Thread(target=consumer.close, name="srm lease leaves", daemon=True)
    leaving.start()
    leaving.join(SESSION_MS / 1000)
    if leaving.is_alive():
        log.warning("a lease's group did not answer within %d s and was not left", SESSION_MS // 1000)


def _named(member: str, name: str) -> str:
    until = _ended.get(member)
    if until is None:
        return name
    return f"this driver's own lease of before, until {time.strftime('%H:%M:%S', time.localtime(until))} at the latest"


class _Others:
    """Members of lease groups as their coordinators say, in a process that holds no lease."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[Flow, GroupsClient] = {}
        self._answers: dict[Flow, tuple[float, frozenset[str]]] = {}

    def ids(self, permit: Permit) -> frozenset[str]:
        with self._lock:
            at, ids = self._answers.get(permit.flow, (float("-inf"), frozenset[str]()))
            asked_at = time.monotonic()
            if asked_at - at < _ANSWER_SECONDS:
                return ids
            groups = self._groups.get(permit.flow)
            if groups is None:
                role = f"{permit.flow}|permit"
                cluster = ClusterClient(
                    permit.cluster, TargetUnavailable, properties=permit.properties, timeout=permit.seconds, role=role
                )
                groups = self._groups[permit.flow] = GroupsClient(cluster, "READ")
            answer = frozenset(groups.describe(lease_group(permit.flow)).ids)
            self._answers[permit.flow] = asked_at, answer
            return answer


_leases: dict[str, Lease] = {}
"""Leases of this process, by the owner's id in the group."""
_ended: dict[str, float] = {}
"""Ids of owners that this process was, and when the coordinator has forgotten them for certain (time of day)."""
_others = _Others()
