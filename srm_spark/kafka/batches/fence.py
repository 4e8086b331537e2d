"""A fence without transactions: every partition of a flow hears of a new epoch of its producer id, and the brokers
refuse whatever an older writer still sends (KIP-98, KIP-360).

A plain idempotent batch may carry the producer id and epoch that a transactional id was given. So the writers of a flow
share one id, and each generation writes under an epoch of its own:

```
init        transactional id → producer id, epoch e       from here on nobody gets an older epoch
add, abort  a marker of epoch e in every partition        from here on the partitions refuse older epochs
init        → epoch e + 1, under which we write           answered only once all in-sync replicas have all markers
```

So behind `fence` nothing of an older writer can be appended, however late it comes, and what he wrote lies below the
high watermark. After a clean end nobody has anything under way: `begin`, a new epoch without markers, is enough.

A marker takes an offset and is no record. A broker forgets the epoch of a partition to which its producer id has
written nothing for `producer.id.expiration.ms` (a day), and the id itself, unless `keep_alive` is called, after
`transactional.id.expiration.ms` (a week).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author, Fenced
from srm_spark.errors import LeaseLost
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.control import ControlBatches, Overtaken
from srm_spark.kafka.batches.coordinator import NOT_TRIED, Coordinator, Tell

_HIDDEN_SECONDS = 180.0
"""So long a follower may hang before the start fails, and is tried again: a coordinator that loads has loaded in the
end, and in-sync replicas get there or are none any more."""
_LAST_EPOCH = 32_700
"""From about here on an id is given up for a new one (the coordinator does so at 32,766), once it is fenced itself."""


class BrokerFence:
    """The producer id of one flow on one cluster."""

    def __init__(self, brokers: Brokers, name: str, seconds: float, control: Brokers | None = None) -> None:
        """`name` is the transactional id; `seconds` bounds each call.

        Control records go by `control`, whose login may be another one than that of the records.
        """
        self._brokers = brokers
        self._coordinator = Coordinator(brokers, name, seconds, patience=_HIDDEN_SECONDS)
        self._is_first: bool | None = None
        self._control = ControlBatches(control or brokers)

    def look(self) -> None:
        """Whether there is a coordinator that lets us write; changes nothing. Raises what `begin` raises."""
        self._coordinator.look()

    def begin(self, tell: Tell = lambda _: None) -> Author:
        """A new epoch, where nothing of an older writer is under way; `tell` takes what is waited for.

        Raises FenceUnavailable where the cluster does not give one, ProtocolUnavailable where it does not answer.
        """
        author = self._coordinator.init(tell)
        if self._is_first is None:
            self._is_first = author.epoch == 0
        return author

    def plain(self) -> Author:
        """An idempotent producer's id of its own, which nobody else is refused for. Raises ProtocolUnavailable."""
        return self._brokers.new_author()

    def fence(self, partitions: Iterable[TopicPartition], tell: Tell = lambda _: None) -> Fenced:
        """A new epoch, of which all `partitions` have heard; `tell` takes what is waited for.

        Raises LeaseLost where somebody else fences at the same time, and what `begin` raises.
        """
        author = self.begin(tell)
        refused = self._mark(author, partitions)
        author = self.begin(tell)
        while author.epoch >= _LAST_EPOCH:
            author = self.begin(tell)  # all that were given before have markers above them: another id may follow
        return Fenced(author, refused, bool(self._is_first))

    def close(self) -> None:
        """Let go of the connections."""
        self._brokers.close()
        self._control.close()

    def keep_alive(self, author: Author, partitions: Iterable[TopicPartition]) -> None:
        """Let the coordinator know that the id is in use, and these partitions: a marker in each.

        Raises what `fence` raises.
        """
        self._mark(author, partitions)

    def write(self, author: Author, records: Sequence[ControlRecord], seconds: float) -> None:
        """Write control records as this author; see `core.cluster`."""
        try:
            self._control.write(author, records, seconds)
        except Overtaken as error:
            raise LeaseLost(f"{self._brokers.where}: {self._coordinator.name}: {error}") from error

    def _mark(self, author: Author, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Put a marker into each partition; those that get none, with the broker's error."""
        left, refused = set(partitions), dict[TopicPartition, int]()
        while left:
            errors = self._coordinator.add(author, left)
            new = {partition: error for partition, error in errors.items() if error not in (0, NOT_TRIED)}
            refused.update(new)
            left -= new.keys()
            if not new:
                self._coordinator.end(author, committed=False)
                break
        return refused
