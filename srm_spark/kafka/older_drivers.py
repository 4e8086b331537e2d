"""Drivers of versions that know nothing of the log of leases: they own a flow as members of the group `srm-A->B`.

While one of them is in the group the flow is his. While we own it a member of ours is in the group: they do not join
then, and wait. Such members of ours mean nothing to each other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from srm_spark.errors import TargetUnavailable
from srm_spark.kafka.clients import LastError, member
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.fencing import TokenNote
from srm_spark.kafka.groups import GroupsClient

log = logging.getLogger(__name__)

_SESSION_MS = 10_000
_POLL_MS = 300_000
_POLL_SECONDS = 0.5
_CLOSE_SECONDS, _AGAIN_SECONDS = 3.0, 5.0
_ASK_SECONDS = 2.0
_ROLE = "newer"
_TAKEN = "taken over"
_HAS_MEMBERS = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)


class OlderDrivers:
    """Of one flow. Raises TargetUnavailable where the coordinator does not say who is in the group."""

    def __init__(self, target: ClusterClient, group: str, topic: str) -> None:
        """`topic` is that of which they hold a partition, the progress topic."""
        self._target, self._group, self._topic = target, group, topic
        self._groups = GroupsClient(target, "READ")
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.has_come = False
        """Whether one of them has the flow although it is ours: he came at the same time, or while we stood still."""

    def owner(self) -> str | None:
        """Which of them has the flow."""
        return self._named(self._groups)

    def _named(self, groups: GroupsClient) -> str | None:
        described = groups.describe(self._group)
        found = zip(described.members, described.ids, strict=True)
        return ", ".join(name for name, member_id in found if f"|{_ROLE}-" not in member_id) or None

    def take_note(self) -> TokenNote | None:
        """The fencing token of the last of them; from now on another one is noted, so that its writers give up.

        Where somebody is in the group it is one of ours, who has done so.
        """
        consumer, note = self._member(LastError()), None
        try:
            (committed,) = consumer.committed([KafkaTopicPartition(self._topic, 0)], self._target.timeout)
            note = TokenNote.decode(committed.metadata)
            if note is not None and note.token != _TAKEN:
                place = KafkaTopicPartition(self._topic, 0, 0, note._replace(token=_TAKEN).encode())
                consumer.commit(offsets=[place], asynchronous=False)
        except KafkaException as error:
            if note is not None and error.args[0].code() in _HAS_MEMBERS:
                return note
            right = f"READ on group {self._group}, and on topic {self._topic}"
            raise self._target.failure(f"read the note of group {self._group}", error, right) from error
        finally:
            consumer.close()
        return note

    def keep_out(self) -> None:
        """Be in the group from now on, in a thread."""
        self._groups.close()
        self._over, self.has_come = threading.Event(), False
        name = f"srm member {self._group}"
        self._thread = threading.Thread(target=self._stay, args=(self._over,), name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave the group; one that does not answer drops us by itself."""
        self._over.set()
        self._groups.close()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_CLOSE_SECONDS)

    def _member(self, on_error: LastError) -> Consumer:
        role = f"{self._group}|{_ROLE}"
        return member(self._target.settings, self._group, role, on_error, session_ms=_SESSION_MS, poll_ms=_POLL_MS)

    def _stay(self, over: threading.Event) -> None:
        while not over.is_set():
            try:
                self._be_member(over)
            except Exception:  # without us in the group one of them may come
                log.exception("group=%s drivers of older versions are not kept out for a moment", self._group)
                over.wait(_AGAIN_SECONDS)

    def _be_member(self, over: threading.Event) -> None:
        consumer, is_new = self._member(LastError()), False
        asked = GroupsClient(self._target.beside(f"{self._group}|asks", _ASK_SECONDS), "READ")

        def assigned(_: Consumer, partitions: Sequence[KafkaTopicPartition]) -> None:
            nonlocal is_new
            consumer.incremental_assign(list(partitions))
            consumer.pause(list(partitions))  # membership is all we want; no record is fetched
            is_new = True

        consumer.subscribe([self._topic], on_assign=assigned)
        try:
            while not over.is_set():
                consumer.poll(_POLL_SECONDS)
                if is_new:
                    # One who comes and finds that the first partition is another's leaves again.
                    is_ours = any(partition.partition == 0 for partition in consumer.assignment())
                    try:
                        self.has_come = not is_ours and self._named(asked) is not None
                    except TargetUnavailable:
                        continue  # coordinators are slow while groups change; who leaves the group would let him stay
                    is_new = False
        finally:
            asked.close()
            consumer.close()
