"""The process that calls group coordinators: takes questions from its connection and answers each when it can.

A driver has one of them for all of its flows (`group_calls.py` says why it is a process of its own). Questions come
with the client that they are for; each is answered by a thread, so that a silent coordinator holds up nobody else.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from typing import NamedTuple, cast

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from srm_spark.config.settings import ClusterSettings
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.clients import LastError, admin_client
from srm_spark.kafka.failures import named

_AT_ONCE = 100
"""Requests in flight: the client takes one group per request."""
_PAUSE_SECONDS = 0.5
_TRY_SECONDS = 5.0
"""How long one request may take: a coordinator answers at once or says that it cannot yet."""

_COMING = (
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
)
"""A cluster that makes its offsets topic, or whose coordinator moves, answers so for a while."""
_STUCK = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
"""After a coordinator's restart a client can wait for an answer in vain, again and again: a new one is answered."""

OffsetRow = tuple[str, int, int, str]
"""Topic, partition, offset, metadata; see `UNSETTLED`."""
UNSETTLED = -1
"""In place of an offset that an open transaction may move (KIP-447)."""
_SETTLING = 3
"""So often such a group is asked: most transactions are over at once, and of the others it is told."""
GroupsOffsets = Mapping[str, Sequence[OffsetRow] | Failure]
"""Group → its rows, or why there are none."""


class Described(NamedTuple):
    """One group; a group that does not exist is DEAD."""

    state: str
    members: tuple[str, ...] = ()
    """Client id and host of each."""
    ids: tuple[str, ...] = ()
    """What the coordinator calls each of them, in the same order."""


Descriptions = Mapping[str, Described | Failure]
"""Group → what it is, or why that is not known."""
Refusals = Mapping[tuple[str, int], Failure | None]
"""Topic and partition → None, or why its offset was not set."""


class FetchOffsets(NamedTuple):
    """Where do these groups stand?"""

    groups: tuple[str, ...]
    timeout: float
    places: tuple[tuple[str, int], ...] = ()
    """Topics and partitions; none for all where they have committed."""


class Describe(NamedTuple):
    """Who is in these groups?"""

    groups: tuple[str, ...]
    timeout: float


class Commit(NamedTuple):
    """Let a group stand there."""

    group: str
    rows: tuple[OffsetRow, ...]
    timeout: float


Question = FetchOffsets | Describe | Commit


Answer = GroupsOffsets | Descriptions | Refusals
_Found = dict[str, Sequence[OffsetRow] | Described | KafkaError]
_Ask = Callable[[AdminClient, Sequence[str], float], _Found]
"""Asks once about some groups; seconds."""


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
    """Answers what comes through one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._clients: dict[str, AdminClient] = {}
        self._writing = threading.Lock()

    def serve(self) -> None:
        """Answer until nobody asks any more."""
        while True:
            try:
                asked: Asked = self._connection.recv()
            except EOFError:
                return
            if asked.question is None:
                self._drop(asked.client)
            else:
                threading.Thread(target=self._answer, args=(asked, asked.question), daemon=True).start()

    def _answer(self, asked: Asked, question: Question) -> None:
        answer = None
        try:
            answer = self._find(asked.client, question)
        finally:
            with self._writing:
                self._connection.send(Answered(asked.number, answer))

    def _find(self, client: Client, question: Question) -> Answer:
        if isinstance(question, Commit):
            return _commit(self._client(client), question)
        ask = _describe if isinstance(question, Describe) else partial(_fetch, places=question.places)
        reply = self._ask(client, question, ask)
        told = {
            group: failure_of(answer) if isinstance(answer, KafkaError) else answer for group, answer in reply.items()
        }
        return cast("Answer", told)

    def _ask(self, client: Client, question: FetchOffsets | Describe, ask: _Ask) -> _Found:
        """The newest answer for each group; asks again for those whose coordinator cannot be reached yet."""
        answers: _Found = {}
        deadline = time.monotonic() + question.timeout
        left, tries = list(question.groups), 0
        while left:
            tries += 1
            for chunk in _chunks(left):
                seconds = max(1.0, min(_TRY_SECONDS, deadline - time.monotonic()))
                answers |= ask(self._client(client), chunk, seconds)
                if any(_code(answers[group]) in _STUCK for group in chunk):
                    self._drop(client)
            left = [
                group
                for group in left
                if _code(answers[group]) in (*_COMING, *_STUCK) or (tries < _SETTLING and _is_unsettled(answers[group]))
            ]
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_SECONDS if left else 0)
        return answers

    def _client(self, client: Client) -> AdminClient:
        with self._writing:  # not twice for two questions at once
            if client.key not in self._clients:
                made = admin_client(client.cluster, client.properties, client.role, LastError())
                self._clients[client.key] = made
            return self._clients[client.key]

    def _drop(self, client: Client) -> None:
        # The last reference is a thread's: a client that has a call under way may take long to end.
        threading.Thread(target=bool, args=[self._clients.pop(client.key, None)], daemon=True).start()


def _code(answer: object) -> int | None:
    return answer.code() if isinstance(answer, KafkaError) else None


def _is_unsettled(answer: Sequence[OffsetRow] | Described | KafkaError) -> bool:
    return isinstance(answer, list) and any(row[2] == UNSETTLED for row in answer)


def _fetch(admin: AdminClient, groups: Sequence[str], timeout: float, places: Sequence[tuple[str, int]] = ()) -> _Found:
    asked = [KafkaTopicPartition(*place) for place in places] or None
    # Transactions that are still open may move an offset: only stable ones are facts (KIP-447).
    futures = {
        group: admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, asked)], require_stable=True, request_timeout=timeout
        )[group]
        for group in groups
    }
    answers: _Found = {}
    for group, future in futures.items():
        try:
            partitions = future.result().topic_partitions
        except KafkaException as error:
            answers[group] = error.args[0]
        else:
            answers[group] = [
                (p.topic, p.partition, p.offset if p.error is None else UNSETTLED, p.metadata or "")
                for p in partitions
                if p.error is not None or p.offset >= 0
            ]
    return answers


def _describe(admin: AdminClient, groups: Sequence[str], timeout: float) -> _Found:
    answers: _Found = {}
    for group, future in admin.describe_consumer_groups(list(groups), request_timeout=timeout).items():
        try:
            described = future.result()
        except KafkaException as error:
            is_absent = error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND
            answers[group] = Described("DEAD") if is_absent else error.args[0]
        else:
            there = described.members or ()
            members = tuple(f"{member.client_id} at {member.host}" for member in there)
            answers[group] = Described(described.state.name, members, tuple(member.member_id for member in there))
    return answers


def _commit(admin: AdminClient, question: Commit) -> Refusals:
    asked = [KafkaTopicPartition(topic, number, offset, metadata) for topic, number, offset, metadata in question.rows]
    request = ConsumerGroupTopicPartitions(question.group, asked)
    future = admin.alter_consumer_group_offsets([request], request_timeout=question.timeout)[question.group]
    try:
        done = future.result().topic_partitions
    except KafkaException as error:
        return dict.fromkeys(((topic, number) for topic, number, _, _ in question.rows), failure_of(error.args[0]))
    return {(p.topic, p.partition): None if p.error is None else failure_of(p.error) for p in done}


_KINDS = {
    KafkaError.UNKNOWN_MEMBER_ID: FailureKind.GROUP_HAS_MEMBERS,
    KafkaError.GROUP_AUTHORIZATION_FAILED: FailureKind.GROUP_DENIED,
}


def failure_of(error: KafkaError) -> Failure:
    """What a coordinator's answer means."""
    return Failure(_KINDS.get(error.code(), FailureKind.GROUP_UNANSWERED), named(error))


def _chunks(groups: Sequence[str]) -> Iterator[list[str]]:
    waiting = iter(groups)
    while chunk := list(islice(waiting, _AT_ONCE)):
        yield chunk


def main(descriptor: int) -> None:
    """Serve on the connection with this file descriptor."""
    # A Ctrl-C goes to the whole process group; the driver ends this process when it has done its last round.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Server(Connection(descriptor)).serve()
    os._exit(0)  # a call that hangs is waited for by nobody
