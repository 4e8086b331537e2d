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

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author, Fenced
from srm_spark.errors import FenceUnavailable, LeaseLost, ProtocolUnavailable
from srm_spark.kafka.batches.brokers import Brokers

_TRANSACTION = 1
"""The type of a coordinator's key."""
_TIMEOUT_MS = 60_000
"""A writer that dies between `add` and `abort` is ended by the coordinator then."""
_COORDINATORS, _INITS, _ADDS, _ENDS = 3, 4, 3, 4
"""Newest versions of requests that are used: later ones end transactions by another epoch (KIP-890)."""
_MOVED = frozenset({14, 15, 16})
"""Its coordinator loads, is not there yet, or is another broker by now."""
_BUSY = 51
"""The transaction before is not over on all partitions."""
_HIDDEN = "not all in-sync replicas have the markers that fence off older writers"
_LOADING = "the transaction coordinator of this flow's producer id is not there yet"
_HIDDEN_SECONDS = 180.0
"""So long a follower may hang before the start fails, and is tried again."""
_TELL_SECONDS = 2.0
_IN_TIME = frozenset({14, _BUSY})
"""A coordinator that loads has loaded in the end, and in-sync replicas get there or are none any more."""
_OVERTAKEN = frozenset({47, 90})
_DENIED = 53
_NOT_TRIED = 55
"""Another partition of the same request was refused."""
_REFUSALS = {
    31: "IDEMPOTENT_WRITE is not allowed on the cluster",
    35: "the broker is too old",
}
_LAST_EPOCH = 32_700
"""From about here on an id is given up for a new one (the coordinator does so at 32,766), once it is fenced itself."""
_RETRY_SECONDS = 0.05


class BrokerFence:
    """The producer id of one flow on one cluster."""

    def __init__(self, brokers: Brokers, name: str, seconds: float) -> None:
        """`name` is the transactional id; `seconds` bounds each call."""
        self._brokers, self._name, self._seconds = brokers, name, seconds
        self._node: int | None = None
        self._is_first: bool | None = None

    def look(self) -> None:
        """Whether there is a coordinator that would talk to us; changes nothing. Raises what `begin` raises."""
        self._coordinator(time.monotonic() + self._seconds)

    def begin(self, tell: Callable[[str], None] = lambda _: None) -> Author:
        """A new epoch, where nothing of an older writer is under way; `tell` takes what is waited for.

        Raises FenceUnavailable where the cluster does not give one, ProtocolUnavailable where it does not answer.
        """
        return self._init(tell)

    def plain(self) -> Author:
        """An idempotent producer's id of its own, which nobody else is refused for. Raises ProtocolUnavailable."""
        return self._brokers.new_author()

    def fence(self, partitions: Iterable[TopicPartition], tell: Callable[[str], None] = lambda _: None) -> Fenced:
        """A new epoch, of which all `partitions` have heard; `tell` takes what is waited for.

        Raises LeaseLost where somebody else fences at the same time, and what `begin` raises.
        """
        author = self._init(tell)
        left, refused = set(partitions), dict[TopicPartition, int]()
        while left:
            errors = self._add(author, left)
            new = {partition: error for partition, error in errors.items() if error not in (0, _NOT_TRIED)}
            refused.update(new)
            left -= new.keys()
            if not new:
                self._abort(author)
                break
        author = self._init(tell)
        while author.epoch >= _LAST_EPOCH:
            author = self._init(tell)  # all that were given before have markers above them: another id may follow
        return Fenced(author, refused, bool(self._is_first))

    def close(self) -> None:
        """Let go of the connections."""
        self._brokers.close()

    def keep_alive(self, author: Author, partition: TopicPartition) -> None:
        """Let the coordinator know that the id is in use: a marker in one partition. Raises what `fence` raises."""
        if not any(self._add(author, [partition]).values()):
            self._abort(author)

    def _init(self, tell: Callable[[str], None] = lambda _: None) -> Author:
        answer = self._persist(
            lambda: InitProducerIdRequest(
                transactional_id=self._name,
                transaction_timeout_ms=_TIMEOUT_MS,
                producer_id=-1,
                producer_epoch=-1,
                max_version=_INITS,
            ),
            lambda answer: int(answer.error_code),
            tell,
        )
        if self._is_first is None:
            self._is_first = answer.producer_epoch == 0
        return Author(answer.producer_id, answer.producer_epoch)

    def _add(self, author: Author, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        topics = defaultdict[str, list[int]](list)
        for partition in sorted(partitions):
            topics[partition.topic].append(partition.partition)
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic

        def codes(answer: Any) -> dict[TopicPartition, int]:
            return {
                TopicPartition(of_topic.name, one.partition_index): one.partition_error_code
                for of_topic in answer.results_by_topic_v3_and_below
                for one in of_topic.results_by_partition
            }

        passing = {*_MOVED, _BUSY, *_OVERTAKEN}
        answer = self._persist(
            lambda: AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._name,
                v3_and_below_producer_id=author.producer_id,
                v3_and_below_producer_epoch=author.epoch,
                v3_and_below_topics=[topic(name=name, partitions=numbers) for name, numbers in topics.items()],
                max_version=_ADDS,
            ),
            lambda answer: next((code for code in codes(answer).values() if code in passing), 0),
        )
        return codes(answer)

    def _abort(self, author: Author) -> None:
        self._persist(
            lambda: EndTxnRequest(
                transactional_id=self._name,
                producer_id=author.producer_id,
                producer_epoch=author.epoch,
                committed=False,
                max_version=_ENDS,
            ),
            lambda answer: int(answer.error_code),
        )

    def _persist(
        self, request: Callable[[], Any], error_of: Callable[[Any], int], tell: Callable[[str], None] = lambda _: None
    ) -> Any:
        """Ask the coordinator until it has an answer that stays."""
        began = time.monotonic()
        deadline, patience = began + self._seconds, began + _HIDDEN_SECONDS
        while True:
            answer = self._brokers.ask(request(), self._coordinator(deadline))
            error = error_of(answer)
            if not error:
                return answer
            if error in _OVERTAKEN:
                raise LeaseLost(f"{self._brokers.where}: {self._name}: another driver has fenced this one")
            if error in _MOVED:
                self._node = None
            elif error != _BUSY:
                self._refuse(error)
            if time.monotonic() > began + _TELL_SECONDS:
                tell(_HIDDEN if error == _BUSY else _LOADING)
            if time.monotonic() > (patience if error in _IN_TIME else deadline):
                self._refuse(error)
            time.sleep(_RETRY_SECONDS)

    def _coordinator(self, deadline: float) -> int:
        while self._node is None:
            answer = self._brokers.ask(
                FindCoordinatorRequest(key=self._name, key_type=_TRANSACTION, max_version=_COORDINATORS)
            )
            if not answer.error_code:
                self._node = answer.node_id
            elif answer.error_code not in _MOVED or time.monotonic() > deadline:
                self._refuse(answer.error_code)
            else:
                time.sleep(_RETRY_SECONDS)
        return self._node

    def _refuse(self, error: int) -> None:
        if error == _BUSY:
            raise ProtocolUnavailable(f"{self._brokers.where}: {self._name}: {_HIDDEN} after {_HIDDEN_SECONDS:g} s")
        what = _REFUSALS.get(error, f"its transaction coordinator answers with error {error}")
        if error == _DENIED:
            what = f"allow WRITE on transactional id {self._name} to the principal of these credentials"
        raise FenceUnavailable(f"{self._brokers.where}: no fence by {self._name}: {what}")
