"""Calls to group coordinators, in a process of its own.

librdkafka dies when a coordinator that moves answers an admin client's OffsetFetch (issue 5040, open), and when the
connection drops under any admin request to a coordinator (issue 4605, pull request 5397, both open): a broker that
restarts would take the driver with it. Here it takes the process of `group_server.py`, which is started again; all
flows of a driver share one. Questions and answers go through a connection, so no secret shows in its arguments.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from multiprocessing import Pipe
from pickle import UnpicklingError
from typing import cast

from srm_spark.config.settings import ClusterSettings
from srm_spark.kafka.group_server import (
    Answer,
    Answered,
    Asked,
    Client,
    Commit,
    Describe,
    Descriptions,
    FetchOffsets,
    GroupsOffsets,
    OffsetRow,
    Question,
    Refusals,
    main,
)

_GRACE_SECONDS = 15.0
"""For starting the process, beyond the time that a request may take."""
_PAUSE_SECONDS = 0.5
_FIRST_FREE = 3
"""File descriptors in front of it are standard streams."""
_TRIES = 6


class GroupCallsDied(Exception):
    """The process died again and again, or did not answer."""


class GroupCalls:
    """One client of the process, which is started when somebody first asks and ends when nobody is left."""

    def __init__(
        self,
        cluster: ClusterSettings,
        properties: Mapping[str, str],
        role: str,
        process: SharedProcess | None = None,
    ) -> None:
        """`process` is the one to share; by default that of this driver."""
        self._process = _shared if process is None else process
        self._client = Client(uuid.uuid4().hex, cluster, dict(properties), role)
        self._is_used = False

    def offsets(self, groups: Sequence[str], timeout: float, at: Iterable[tuple[str, int]] = ()) -> GroupsOffsets:
        """Where these groups stand, `at` these partitions or everywhere. Raises GroupCallsDied when no try brought an
        answer.
        """
        places = tuple((topic, number) for topic, number in at)
        return cast("GroupsOffsets", self._ask(FetchOffsets(tuple(groups), timeout, places), _TRIES))

    def describe(self, groups: Sequence[str], timeout: float) -> Descriptions:
        """Who is in these groups. Raises GroupCallsDied when no try brought an answer."""
        return cast("Descriptions", self._ask(Describe(tuple(groups), timeout), _TRIES))

    def commit(self, group: str, rows: Sequence[OffsetRow], timeout: float) -> Refusals:
        """Set offsets. Tried once, since nobody knows what a call did that died; raises GroupCallsDied then."""
        return cast("Refusals", self._ask(Commit(group, tuple(rows), timeout), 1))

    def close(self) -> None:
        """Let go of the client; another question makes it anew."""
        if self._is_used:
            self._is_used = False
            self._process.leave(self._client)

    def _ask(self, question: Question, tries: int) -> Answer:
        if not self._is_used:
            self._is_used = True
            self._process.enter()
        for number in range(tries):
            try:
                answer = self._process.ask(self._client, question).result(question.timeout + _GRACE_SECONDS)
            except FutureTimeout:
                self._process.forget(self._client)  # a call may hang for good while another client is answered at once
            except EOFError:
                time.sleep(_PAUSE_SECONDS if number + 1 < tries else 0)
            else:
                if answer is None:
                    break
                return answer
        raise GroupCallsDied(f"no answer in {tries} tries: the coordinators are moving")


class _Process:
    """One life of the process, seen from outside."""

    def __init__(self) -> None:
        # Not with `-m`: pickles name the classes of that module, and there they would be those of `__main__`.
        self._connection, theirs = Pipe()
        with theirs:  # a driver without standard streams (a daemon) may get one of theirs: it would be replaced
            descriptor = fcntl(theirs.fileno(), F_DUPFD_CLOEXEC, _FIRST_FREE)
        command = [sys.executable, "-c", f"from {main.__module__} import main; main({descriptor})"]
        nothing = subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(
                command, pass_fds=[descriptor], stdin=nothing, stdout=nothing, stderr=nothing
            )
        finally:
            os.close(descriptor)
        self._waiting: dict[int, Future[Answer | None]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self.is_alive = True
        threading.Thread(target=self._listen, name="srm group calls", daemon=True).start()

    def ask(self, client: Client, question: Question | None) -> Future[Answer | None]:
        """The answer to come; EOFError where the process dies before."""
        future: Future[Answer | None] = Future()
        with self._lock:
            number = next(self._numbers)
            if self.is_alive and question is not None:
                self._waiting[number] = future
            try:
                self._connection.send(Asked(number, client, question))
            except (OSError, ValueError):  # it is dead, or its connection is closed already
                self._waiting.pop(number, None)
                future.set_exception(EOFError())
        return future

    def end(self) -> None:
        """Kill it; what was asked has no answer then."""
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        with suppress(EOFError, OSError, ValueError, UnpicklingError):
            while True:
                answered: Answered = self._connection.recv()
                with self._lock:
                    future = self._waiting.pop(answered.number, None)
                if future is not None:
                    future.set_result(answered.answer)
        with self._lock:
            self.is_alive = False
            left, self._waiting = self._waiting, {}
        self._process.kill()
        self._process.wait()
        with self._lock:  # nobody else may get its descriptor while a question is being sent
            self._connection.close()
        for future in left.values():
            future.set_exception(EOFError())


class SharedProcess:
    """The process of this driver, while anybody uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._process: _Process | None = None

    def enter(self) -> None:
        """One more user."""
        with self._lock:
            self._users += 1

    def leave(self, client: Client) -> None:
        """One less; the last one ends the process."""
        self.forget(client)
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._process is not None:
                self._process.end()
                self._process = None

    def ask(self, client: Client, question: Question) -> Future[Answer | None]:
        """The answer to come."""
        with self._lock:
            if self._process is None or not self._process.is_alive:
                self._process = _Process()
            process = self._process
        return process.ask(client, question)

    def forget(self, client: Client) -> None:
        """Let the process drop a client."""
        with self._lock:
            process = self._process
        if process is not None and process.is_alive:
            process.ask(client, None)


_shared = SharedProcess()
