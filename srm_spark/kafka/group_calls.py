"""Calls to group coordinators, in a process of its own.

librdkafka dies when a coordinator that moves answers an admin client's OffsetFetch (issue 5040, open), and when the
connection drops under any admin request to a coordinator (issue 4605, pull request 5397, both open): a broker that
restarts would take the driver with it. Here it takes this process, which is started again. Questions and answers go
through its pipes as pickles, so no secret shows in its arguments.
"""

from __future__ import annotations

import pickle
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from srm_spark.config.settings import ClusterSettings
from srm_spark.kafka.clients import LastError, admin_client
from srm_spark.kafka.failures import named

_AT_ONCE = 100
"""Requests in flight: the client takes one group per request."""
_GRACE_SECONDS = 15.0
"""For starting the process, beyond the time that a request may take."""
_PAUSE_SECONDS = 0.5
_TRIES = 6


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


class GroupCallsDied(Exception):
    """The process died again and again, or did not answer."""


class GroupCalls:
    """The process, seen from outside; started when it is first asked."""

    def __init__(self, cluster: ClusterSettings, properties: Mapping[str, str], role: str) -> None:
        self._client = (cluster, dict(properties), role)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def offsets(self, groups: Sequence[str], timeout: float) -> Offsets:
        """Where these groups stand. Raises GroupCallsDied when no try brought an answer."""
        found: Offsets = self._ask(Fetch(tuple(groups), timeout), _TRIES)
        return found

    def describe(self, groups: Sequence[str], timeout: float) -> Descriptions:
        """Who is in these groups. Raises GroupCallsDied when no try brought an answer."""
        found: Descriptions = self._ask(Describe(tuple(groups), timeout), _TRIES)
        return found

    def commit(self, group: str, rows: Sequence[Row], timeout: float) -> Refusals:
        """Set offsets. Tried once, since nobody knows what a call did that died; raises GroupCallsDied then."""
        found: Refusals = self._ask(Commit(group, tuple(rows), timeout), 1)
        return found

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _ask(self, question: Question, tries: int) -> Any:
        with self._lock:
            for _ in range(tries):
                try:
                    return self._try(question)
                except (EOFError, OSError, pickle.UnpicklingError):
                    self._end()
                    time.sleep(_PAUSE_SECONDS)
            raise GroupCallsDied(f"no answer in {tries} tries: the coordinators are moving")

    def _try(self, question: Question) -> Any:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump(question, process.stdin)
        process.stdin.flush()
        with selectors.DefaultSelector() as answering:  # `select` itself knows no file beyond the 1024th
            answering.register(process.stdout, selectors.EVENT_READ)
            if not answering.select(question.timeout + _GRACE_SECONDS):
                raise TimeoutError
        return pickle.load(process.stdout)

    def _start(self) -> subprocess.Popen[bytes]:
        # Not with `-m`: pickles name the classes of this module, and there they would be those of `__main__`.
        command = [sys.executable, "-c", f"from {__name__} import main; main()"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdin is not None
        pickle.dump(self._client, process.stdin)
        self._process = process
        return process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what it did not read any more
                    if pipe is not None:
                        pipe.close()


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """The process itself: answer until nobody asks any more."""
    cluster, properties, role = pickle.load(questions)
    admin = admin_client(cluster, properties, role, LastError())
    while True:
        try:
            question: Question = pickle.load(questions)
        except EOFError:
            return
        pickle.dump(_answer(admin, question), answers)
        answers.flush()


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
    serve(sys.stdin.buffer, sys.stdout.buffer)
