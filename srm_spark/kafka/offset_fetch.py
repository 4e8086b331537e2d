"""Reads committed offsets of groups in a process of its own.

librdkafka dies of a segmentation fault when a coordinator that moves answers an admin client's OffsetFetch
(librdkafka issue 5040, open): a broker that restarts would take the driver with it. Here it takes this process, which
is started again. Questions and answers go through its pipes as pickles, so no secret shows in its arguments.
"""

from __future__ import annotations

import pickle
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import BinaryIO, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
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


class Question(NamedTuple):
    """Which groups to ask for."""

    groups: tuple[str, ...]
    timeout: float


Row = tuple[str, int, int, str]
"""Topic, partition, offset, metadata."""
Answer = Mapping[str, Sequence[Row] | str]
"""Group → its rows, or why there are none."""


class OffsetFetchDied(Exception):
    """The process died again and again, or did not answer."""


class OffsetFetch:
    """The process, seen from outside; started when it is first asked."""

    def __init__(self, cluster: ClusterSettings, properties: Mapping[str, str], role: str) -> None:
        self._client = (cluster, dict(properties), role)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def ask(self, groups: Sequence[str], timeout: float) -> Answer:
        """Where these groups stand. Raises OffsetFetchDied when no try brought an answer."""
        with self._lock:
            for _ in range(_TRIES):
                try:
                    return self._ask(Question(tuple(groups), timeout))
                except (EOFError, OSError, pickle.UnpicklingError):
                    self._end()
                    time.sleep(_PAUSE_SECONDS)
            raise OffsetFetchDied(f"no answer in {_TRIES} tries: its coordinators are moving")

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _ask(self, question: Question) -> Answer:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump(question, process.stdin)
        process.stdin.flush()
        with selectors.DefaultSelector() as answering:  # `select` itself knows no file beyond the 1024th
            answering.register(process.stdout, selectors.EVENT_READ)
            if not answering.select(question.timeout + _GRACE_SECONDS):
                raise TimeoutError
        answer: Answer = pickle.load(process.stdout)
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "srm_spark.kafka.offset_fetch"]
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


def _answer(admin: AdminClient, question: Question) -> Answer:
    found: dict[str, Sequence[Row] | str] = {}
    waiting = iter(question.groups)
    while chunk := list(islice(waiting, _AT_ONCE)):
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


if __name__ == "__main__":
    # A Ctrl-C goes to the whole process group; the driver ends this process when it has done its last round.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve(sys.stdin.buffer, sys.stdout.buffer)
