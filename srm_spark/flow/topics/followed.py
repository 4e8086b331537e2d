"""A control topic that is followed: each look returns what came since the last one, written by whichever process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from srm_spark.core.cluster import Cluster, Reader, ReadRecord
from srm_spark.core.model import TopicPartition
from srm_spark.core.news import Every
from srm_spark.errors import FlowError

_SAME_SECONDS = 10.0
"""How often a topic is asked for its id where its ends say nothing: another one may have as many records."""


class FollowedTopic:
    """One topic of one cluster, read from its beginning; opened at the first look."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        role: str,
        error: type[FlowError],
        timeout: float,
        *,
        partitions: Sequence[int] | None = None,
        forget: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`error` is raised when it cannot be read to its end within `timeout` seconds; None takes all partitions.

        `forget` is called when the topic is another one: what was read says nothing about it.
        """
        self._chosen = partitions
        self._forget = forget
        self._clock, self._same = clock, Every(_SAME_SECONDS)
        self.topic = topic
        self._cluster = cluster
        self._role = role
        self._error = error
        self._timeout = timeout
        self._partitions: list[TopicPartition] = []
        self._reader: Reader | None = None
        self._topic_id: str | None = None

    def new_records(self) -> Iterator[ReadRecord]:
        """Records since the last call, up to the ends at this moment.

        Raises where the topic is gone, or is not the one that was read; the next call then begins anew.
        """
        reader = self._reader or self._open()
        ends = {p.partition: end for p, end in self._cluster.end_offsets(self._partitions, committed=True).items()}
        if ends != reader.next_offsets or self._same.is_due(self._clock()):
            self._check(ends, reader.next_offsets)
            self._same.done(self._clock())
        yield from reader.read(ends, self._timeout)

    def close(self) -> None:
        """Stop following; the next look starts at the beginning again."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _check(self, ends: Mapping[int, int], read: Mapping[int, int]) -> None:
        """Is it still the same log? A shorter one is not, whatever the cluster says of its id."""
        is_shorter = any(end < read[number] for number, end in ends.items())
        if not is_shorter and self._id() == self._topic_id:
            return
        self.close()
        self._forget()
        raise self._error(
            f"cluster {self._cluster.alias}: topic {self.topic} is not the one that was read any more: it was deleted, "
            "created anew or truncated, and what it held is gone; it is read again from its beginning"
        )

    def _id(self) -> str | None:
        return self._cluster.topic_ids([self.topic]).get(self.topic)

    def _open(self) -> Reader:
        count = self._cluster.topics().get(self.topic, 0)
        if not count:
            raise self._error(
                f"cluster {self._cluster.alias}: topic {self.topic} is not there: the flow has not run yet, or "
                "somebody deleted it; the next start of the flow creates it"
            )
        chosen = range(count) if self._chosen is None else self._chosen
        self._topic_id = self._id()
        self._same.done(self._clock())
        self._partitions = [TopicPartition(self.topic, number) for number in chosen]
        self._reader = self._cluster.follow(self.topic, chosen, self._role)
        return self._reader
