"""What a target answers to the records of one run: where its first and its last one lie, or why one was refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import chain, repeat

from confluent_kafka import KafkaError, Message

from srm_spark.core.reports import Sent

Callback = Callable[[KafkaError | None, Message], None]


class Acks:
    """Delivery reports of the two ends of one run."""

    __slots__ = ("at", "error", "first", "last")

    def __init__(self) -> None:
        self.first = -1
        self.last = -1
        self.at = 0.0
        self.error: KafkaError | None = None

    @property
    def is_over(self) -> bool:
        """Whether the last record has its answer."""
        return self.last >= 0 or self.error is not None

    def callbacks(self, count: int) -> Iterable[Callback | None]:
        """The callback of each of `count` records: only the two ends have one."""
        if count == 1:
            return (self.on_only,)
        return chain((self.on_first,), repeat(None, count - 2), (self.on_last,))

    def ends(self, sent: Sent) -> Iterable[tuple[Sent, int, int]]:
        """What was sent, with its first and last target offset."""
        return ((sent, self.first, self.last),)

    def on_first(self, error: KafkaError | None, message: Message) -> None:
        self.first = self._offset(error, message)

    def on_last(self, error: KafkaError | None, message: Message) -> None:
        self.last = self._offset(error, message)
        self.at = time.time()

    def on_only(self, error: KafkaError | None, message: Message) -> None:
        self.on_last(error, message)
        self.first = self.last

    def _offset(self, error: KafkaError | None, message: Message) -> int:
        if error is not None:
            self.error = self.error or error
            return -1
        offset = message.offset()
        return -1 if offset is None else offset


class EachAck(Acks):
    """Delivery reports of every record of one run, in order."""

    __slots__ = ("offsets",)

    def __init__(self) -> None:
        super().__init__()
        self.offsets: list[int] = []

    def callbacks(self, count: int) -> Iterable[Callback | None]:
        return repeat(self.on_each, count)

    def ends(self, sent: Sent) -> Iterable[tuple[Sent, int, int]]:
        is_complete = len(self.offsets) == sent.count and -1 not in self.offsets
        return sent.pieces(self.offsets) if is_complete else ((sent, -1, -1),)

    def on_each(self, error: KafkaError | None, message: Message) -> None:
        self.offsets.append(self._offset(error, message))
        self.at = time.time()
