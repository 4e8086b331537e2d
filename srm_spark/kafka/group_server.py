"""The process that calls group coordinators: reads questions from its pipe and answers each when it can.

A driver has one of them for all of its flows (`group_calls.py` says why it is a process of its own). Questions come
with the client that they are for; each is answered by a thread, so that a silent coordinator holds up nobody else.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import BinaryIO, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from srm_spark.config.settings import ClusterSettings
from srm_spark.kafka.clients import LastError, admin_client
from srm_spark.kafka.failures import named

_AT_ONCE = 100
"""Requests in flight: the client takes one group per request."""
_PAUSE_SECONDS = 0.5

_COMING = (
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
)
"""A cluster that makes its offsets topic, or whose coordinator moves, answers so for a while."""

Row = tuple[str, int, int, str]
"""Topic, partition, offset, metadata."""
Offsets = Mapping[str, Sequence[Row] | str]
"""Group → its rows, or why there are none."""


class Described(NamedTuple):
    """One group; a group that does not exist is DEAD."""

    state: str
    members: tuple[str, ...] = ()
    """Client id and host of each."""


Descriptions = Mapping[str, Described | str]
"""Group → what it is, or why that is not known."""
Refusals = Mapping[tuple[str, int], str | None]
"""Topic and partition → None, or why its offset was not set."""


class Fetch(NamedTuple):
    """Where do these groups stand?"""

    groups: tuple[str, ...]
    timeout: float


class Describe(NamedTuple):
    """Who is in these groups?"""

    groups: tuple[str, ...]
    timeout: float


class Commit(NamedTuple):
    """Let a group stand there."""

    group: str
    rows: tuple[Row, ...]
    timeout: float


Question = Fetch | Describe | Commit


Answer = Offsets | Descriptions | Refusals


class Client(NamedTuple):
    """Which admin client a question is for; made when it is first named."""

    key: str
    cluster: ClusterSettings
    properties: Mapping[str, str]
    role: str


class Asked(NamedTuple):
    """What travels to the process. A question of None lets go of the client."""

    number: int
    client: Client
    question: Question | None


class Answered(NamedTuple):
    """What comes back; without an answer the question could not be understood or the client not be made."""

    number: int
    answer: Answer | None


class Server:
    """Answers what comes through one pipe on another one."""

    def __init__(self, questions: BinaryIO, answers: BinaryIO) -> None:
        self._questions = questions
        self._answers = answers
        self._clients: dict[str, AdminClient] = {}
        self._writing = threading.Lock()

    def serve(self) -> None:
        """Answer until nobody asks any more."""
        while True:
            try:
                asked: Asked = pickle.load(self._questions)
            except EOFError:
                return
            if asked.question is None:
                # By a thread: a client that has a call under way may take long to end.
                threading.Thread(target=self._clients.pop, args=(asked.client.key, None), daemon=True).start()
            else:
                threading.Thread(target=self._answer, args=(asked, asked.question), daemon=True).start()

    def _answer(self, asked: Asked, question: Question) -> None:
        answer = None
        try:
            answer = _answer(self._client(asked.client), question)
        finally:
            with self._writing:
                pickle.dump(Answered(asked.number, answer), self._answers)
                self._answers.flush()

    def _client(self, client: Client) -> AdminClient:
        with self._writing:  # not twice for two questions at once
            if client.key not in self._clients:
                made = admin_client(client.cluster, client.properties, client.role, LastError())
                self._clients[client.key] = made
            return self._clients[client.key]


def _answer(admin: AdminClient, question: Question) -> Offsets | Descriptions | Refusals:
    if isinstance(question, Fetch):
        return _fetch(admin, question)
    return _describe(admin, question) if isinstance(question, Describe) else _commit(admin, question)


def _fetch(admin: AdminClient, question: Fetch) -> Offsets:
    found: dict[str, Sequence[Row] | str] = {}
    for chunk in _chunks(question.groups):
        # Transactions that are still open may move an offset: only stable ones are facts (KIP-447).
        futures = {
            group: admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], require_stable=True, request_timeout=question.timeout
            )[group]
            for group in chunk
        }
        for group, future in futures.items():
            try:
                partitions = future.result().topic_partitions
            except KafkaException as error:
                found[group] = named(error.args[0])
            else:
                known = [p for p in partitions if p.error is None and p.offset >= 0]
                found[group] = [(p.topic, p.partition, p.offset, p.metadata or "") for p in known]
    return found


def _describe(admin: AdminClient, question: Describe) -> Descriptions:
    found: dict[str, Described | str] = {}
    deadline = time.monotonic() + question.timeout
    left = list(question.groups)
    while left:
        again: list[str] = []
        for chunk in _chunks(left):
            seconds = max(1.0, deadline - time.monotonic())
            for group, future in admin.describe_consumer_groups(chunk, request_timeout=seconds).items():
                try:
                    described = future.result()
                except KafkaException as error:
                    code = error.args[0].code()
                    if code in _COMING and time.monotonic() < deadline:
                        again.append(group)
                    is_absent = code == KafkaError.GROUP_ID_NOT_FOUND
                    found[group] = Described("DEAD") if is_absent else named(error.args[0])
                else:
                    members = tuple(f"{member.client_id} at {member.host}" for member in described.members or ())
                    found[group] = Described(described.state.name, members)
        left = again
        time.sleep(_PAUSE_SECONDS if left else 0)
    return found


def _commit(admin: AdminClient, question: Commit) -> Refusals:
    asked = [KafkaTopicPartition(topic, number, offset, metadata) for topic, number, offset, metadata in question.rows]
    request = ConsumerGroupTopicPartitions(question.group, asked)
    future = admin.alter_consumer_group_offsets([request], request_timeout=question.timeout)[question.group]
    try:
        done = future.result().topic_partitions
    except KafkaException as error:
        return dict.fromkeys(((topic, number) for topic, number, _, _ in question.rows), named(error.args[0]))
    return {(p.topic, p.partition): None if p.error is None else named(p.error) for p in done}


def _chunks(groups: Sequence[str]) -> Iterator[list[str]]:
    waiting = iter(groups)
    while chunk := list(islice(waiting, _AT_ONCE)):
        yield chunk


def main() -> None:
    """Serve on the standard streams."""
    # A Ctrl-C goes to the whole process group; the driver ends this process when it has done its last round.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Server(sys.stdin.buffer, sys.stdout.buffer).serve()
    os._exit(0)  # a call that hangs is waited for by nobody
