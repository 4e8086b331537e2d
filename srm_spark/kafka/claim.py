"""Who may write a flow: the driver that holds partition 0 of the progress topic in the group `srm-A->B`.

Kafka's group coordinator on the target decides. A driver that dies is dropped after the session timeout; one that
leaves in peace is replaced at once. A driver does not join while another one is there, so the owner is never disturbed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from srm_spark.errors import ClaimLost
from srm_spark.kafka.clients import LastError, member
from srm_spark.kafka.cluster import Cluster
from srm_spark.kafka.failures import is_denied
from srm_spark.kafka.groups import Groups
from srm_spark.model import Flow

SESSION_MS = 10_000
"""A dead owner's claim is free after this; with the poll of the one that waits it stays below 15 s."""
_JOIN_SECONDS = 30.0
_HAND_OVER_SECONDS = 60.0
"""For the batch in progress; the coordinator waits for five minutes (`max.poll.interval.ms`)."""


def claim_group(flow: Flow) -> str:
    """The group whose only member may write a flow."""
    return f"srm-{flow}"


class Claim:
    """The right to write one flow."""

    def __init__(self, flow: Flow, target: Cluster, topic: str, stop_writing: Callable[[float], None]) -> None:
        self._stop_writing = stop_writing
        self.group = claim_group(flow)
        self._target = target
        self._topic = topic
        self._last_error = LastError()
        self._consumer: Consumer | None = None
        self._groups = Groups(target, "READ")
        self._held = False

    def other_owner(self) -> str | None:
        """Who holds the claim, if it is somebody else."""
        if self._consumer is not None:
            return None
        return ", ".join(self._groups.members(self.group)) or None

    def acquire(self) -> bool:
        """Join the group; False when somebody else was faster, and then nothing is left behind."""
        self._groups.close()
        self._consumer = member(self._target.settings, self.group, SESSION_MS, self._last_error)
        self._consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        deadline = time.monotonic() + _JOIN_SECONDS
        try:
            while not self._held and time.monotonic() < deadline:
                self._look_at(self._consumer.poll(0.2))
                if self._consumer.assignment() and not self._held:
                    break  # we are a member, but partition 0 is another's
        except KafkaException as error:
            right = f"READ on group {self.group}, and on topic {self._topic}"
            failure = self._target.failure(f"join the group {self.group}", error, right)
            self.release()
            raise failure from error
        if not self._held:
            self.release()
        return self._held

    def is_held(self) -> bool:
        """Whether the claim is still ours; call it at least every few seconds."""
        if self._consumer is not None:
            self._consumer.poll(0)
        return self._held

    def mark(self, metadata: str) -> None:
        """Leave a note that others can read; only the owner can, since the coordinator refuses everybody else.

        Raises ClaimLost where the claim is somebody else's now.
        """
        assert self._consumer is not None
        place = KafkaTopicPartition(self._topic, 0, 0, metadata)
        try:
            self._consumer.commit(offsets=[place], asynchronous=False)
        except KafkaException as error:
            raise ClaimLost(f"group {self.group}: cannot be marked: {error.args[0].str()}") from error

    def release(self) -> None:
        """Leave the group, so that another driver can take over at once."""
        self._held = False
        self._groups.close()
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _look_at(self, message: Message | None) -> None:
        error = None if message is None else message.error()
        if error is not None and is_denied(error):
            raise KafkaException(error)

    def _assigned(self, consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)  # membership is all we want; no record is fetched
        self._held = self._held or any(partition.partition == 0 for partition in partitions)

    def _revoked(self, consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
        # The next owner gets the partition only when this returns: until then nobody else writes.
        self._give_up(partitions, _HAND_OVER_SECONDS)

    def _lost(self, consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
        self._give_up(partitions, 0)  # the session is over, somebody else may own it by now

    def _give_up(self, partitions: list[KafkaTopicPartition], seconds: float) -> None:
        if any(partition.partition == 0 for partition in partitions):
            self._held = False
            self._stop_writing(seconds)
