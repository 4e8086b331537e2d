"""What only the owner of a flow writes on its target: under the flow's producer id, wherever the target gives one.

Then a partition that has heard of a newer owner refuses what an older one still writes, however late that comes. The
epoch moves on with each generation, so whoever writes asks for the newest one each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from srm_spark.core.cluster import ControlRecord, Fence, Writer
from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author
from srm_spark.errors import FlowError, LeaseLost, NotWritten, ProtocolUnavailable

_END_SECONDS = 2.0


class CurrentAuthor:
    """As whom one run of a flow writes now; shared by all of its threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._fence: Fence | None = None
        self._author: Author | None = None
        self.generation: Author | None = None
        """Whom the newest `become` named: under a renewed epoch it is the same generation still."""
        self._is_over = False

    def become(self, fence: Fence, ask: Callable[[], Author]) -> Author:
        """Go on as whom `ask` names; nothing is written meanwhile."""
        with self._lock:
            self.generation = self._author = ask()
            self._fence, self._is_over = fence, False
            return self._author

    def renew(self) -> None:
        """Go on under a newer epoch: this one was taken over, or is of no use any more. Raises ProtocolUnavailable."""
        with self._lock:
            if self._fence is not None:
                self._author = self._fence.begin(lambda _: None)

    def keep_alive(self, partitions: Iterable[TopicPartition]) -> None:
        """Let the target know that the id is in use. Raises ProtocolUnavailable, LeaseLost."""
        with self._lock:
            if self._fence is not None and self._author is not None:
                self._fence.keep_alive(self._author, partitions)

    def end(self) -> None:
        """Nothing more is written; whoever is at it is waited for, but not for long: nobody else may begin before."""
        self._is_over = True
        is_alone = self._lock.acquire(timeout=_END_SECONDS)
        try:
            self._fence, self._author = None, None
        finally:
            if is_alone:
                self._lock.release()

    def writer(
        self, plain: Writer, role: str, error: type[FlowError], seconds: float, *, only: Author | None = None
    ) -> AuthorWriter:
        """Writes as the author, in the generation of `only` where that is said; by `plain` where there is none."""
        return AuthorWriter(self, plain, _Terms(role, error, seconds, only))

    @contextmanager
    def held(self, error: type[FlowError], seconds: float) -> Iterator[tuple[Fence, Author] | None]:
        """The author for as long as the block lasts; None where there is none.

        Raises `error` where others go on writing, LeaseLost where the run has ended.
        """
        if not self._lock.acquire(timeout=seconds):
            raise error(f"another thread of this driver writes to the target for more than {seconds:g} s")
        try:
            if self._is_over:
                raise LeaseLost("this run of the flow has ended, and writes nothing more")
            yield None if self._fence is None or self._author is None else (self._fence, self._author)
        finally:
            self._lock.release()


class _Terms(NamedTuple):
    """What one role writes by."""

    role: str
    error: type[FlowError]
    seconds: float
    only: Author | None
    """What `become` gave the only generation that may write."""


class AuthorWriter:
    """A `Writer` of one role.

    In another process, where the batch function of Spark Connect runs, it is the plain one: only here are the numbers
    of the author known.
    """

    def __init__(self, current: CurrentAuthor, plain: Writer, terms: _Terms) -> None:
        self._current, self._plain, self._terms = current, plain, terms

    def write(self, records: Iterable[ControlRecord]) -> None:
        """Write them. Raises LeaseLost where there is a newer author, and its error where they are not acknowledged."""
        rows = list(records)
        if not rows:
            return
        with self._current.held(self._terms.error, self._terms.seconds) as held:
            if held is not None:
                self._write(*held, rows)
                return
        self._plain.write(rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._plain,)

    def _write(self, fence: Fence, author: Author, rows: list[ControlRecord]) -> None:
        if self._terms.only is not None and self._terms.only != self._current.generation:
            raise LeaseLost(f"{self._terms.role}: a newer generation of the flow has begun; this one writes no more")
        try:
            fence.write(author, rows, self._terms.seconds)
        except NotWritten as error:
            if error.is_spent:
                with suppress(ProtocolUnavailable):  # then the next one tries again
                    self._current.renew()
            raise self._terms.error(f"{self._terms.role} cannot write: {error}") from error


def _itself(writer: Writer) -> Writer:
    return writer
