"""The transaction coordinator of one transactional id: who may write under it, and how its transactions end (KIP-98).

Each call is asked again until it has an answer that stays: a coordinator that moves, loads, or is busy with the end of
the transaction before says so, and an answer that is lost was an answer all the same. All four requests may come twice.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author
from srm_spark.errors import FenceUnavailable, LeaseLost, ProtocolUnavailable
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.tries import pauses

_TRANSACTION = 1
"""The type of a coordinator's key."""
_COORDINATORS, _INITS, _ADDS, _ENDS, _ENDS_BY_EPOCH = 3, 4, 3, 4, 5
"""Newest versions of requests that are used; the last one ends a transaction by another epoch (KIP-890)."""
_LOADING = 14
_MOVED = frozenset({_LOADING, 15, 16})
"""Its coordinator loads, is not there yet, or is another broker by now."""
BUSY = 51
"""The transaction before is not over on all partitions."""
_OVERTAKEN = frozenset({47, 90})
_DENIED = 53
_NOBODYS = 49
"""The producer id is not the one that this transactional id has."""
_NOBODY = Author(-1, -1)
NOT_TRIED = 55
"""Another partition of the same request was refused."""
HIDDEN = "not all in-sync replicas have the markers that end the transaction before"
_AWAY = "the transaction coordinator is not there yet"
_TELL_SECONDS = 2.0
_REFUSALS = {
    31: "IDEMPOTENT_WRITE is not allowed on the cluster",
    35: "the broker is too old",
    48: "the transaction is over, or was never begun",
    _NOBODYS: "the producer id is not known any more",
    50: "its brokers do not allow transactions to take so long: raise transaction.max.timeout.ms there",
}
Tell = Callable[[str], None]
"""Takes what is waited for, in words for people."""


def _nobody(_: str) -> None:
    """Whom nothing is told."""


class Coordinator:
    """Of one id on one cluster.

    Every call raises LeaseLost where somebody else has taken the id over, FenceUnavailable where the coordinator
    refuses it, and ProtocolUnavailable where it does not answer in time.
    """

    def __init__(
        self, brokers: Brokers, name: str, seconds: float, *, timeout_ms: int = 60_000, patience: float | None = None
    ) -> None:
        """`name` is the id; `seconds` bound each call, and `patience` is for one that loads or waits for followers.

        A transaction that is open for longer than `timeout_ms` is aborted by the coordinator itself.
        """
        self.name = name
        self.node: int | None = None
        """The broker that it is, as far as that is known."""
        self._brokers, self._seconds, self._timeout_ms = brokers, seconds, timeout_ms
        self._patience = seconds if patience is None else patience

    def look(self) -> None:
        """Whether there is one that lets us write under the id; changes nothing.

        It is asked to end a transaction of nobody's: who may not WRITE is refused before it finds that there is none.
        """
        self._persist(lambda: self._end_request(_NOBODY, committed=False), _error_unless(_NOBODYS))

    def init(self, tell: Tell = _nobody) -> Author:
        """The id's next epoch: whatever is open under an older one is aborted, and no older one may do anything."""
        answer = self._persist(lambda: self._init_request(_NOBODY), _error_of, tell)
        return Author(answer.producer_id, answer.producer_epoch)

    def add(self, author: Author, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Take partitions into the author's transaction, which begins with the first: error codes, 0 where it is."""
        topics = defaultdict[str, list[int]](list)
        for partition in sorted(partitions):
            topics[partition.topic].append(partition.partition)
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        of_request = {*_MOVED, BUSY, *_OVERTAKEN}
        answer = self._persist(
            lambda: AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=author.producer_id,
                v3_and_below_producer_epoch=author.epoch,
                v3_and_below_topics=[topic(name=name, partitions=numbers) for name, numbers in topics.items()],
                max_version=_ADDS,
            ),
            lambda answer: next((code for code in _codes(answer).values() if code in of_request), 0),
        )
        return _codes(answer)

    def end(self, author: Author, *, committed: bool) -> None:
        """Commit or abort the author's transaction.

        Where this raises anything, what became of it is not known.
        """
        self._persist(lambda: self._end_request(author, committed=committed), _error_of)

    def end_by_epoch(self, author: Author, *, committed: bool) -> Author:
        """The same where the cluster `takes_in`: who may write the next one.

        The author may write no more, and nothing of his is taken that comes late.
        """
        request = partial(self._end_request, author, committed=committed, version=_ENDS_BY_EPOCH)
        answer = self._persist(request, _error_of)
        return Author(answer.producer_id, answer.producer_epoch, is_transactional=True)

    def abandon(self, author: Author, taken_in: TopicPartition) -> None:
        """Abort what the author has open, and let nothing more of his be taken, however late it comes (KIP-360).

        `taken_in` is any partition of it. Adding it once more changes nothing, but is refused to whoever was overtaken:
        while a transaction is open, his own epoch would not be looked at, and the newer one's would be aborted
        (TransactionCoordinator.prepareInitProducerIdTransit). Returns before the markers are written.
        """
        if not any(self.add(author, [taken_in]).values()):
            self._persist(lambda: self._init_request(author), _error_unless(BUSY))

    def _init_request(self, author: Author) -> Any:
        return InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=author.producer_id,
            producer_epoch=author.epoch,
            max_version=_INITS,
        )

    def _end_request(self, author: Author, *, committed: bool, version: int = _ENDS) -> Any:
        return EndTxnRequest(
            transactional_id=self.name,
            producer_id=author.producer_id,
            producer_epoch=author.epoch,
            committed=committed,
            max_version=version,
        )

    def _persist(self, request: Callable[[], Any], error_of: Callable[[Any], int], tell: Tell = _nobody) -> Any:
        """Ask until there is an answer that stays."""
        began, waits = time.monotonic(), pauses()
        while True:
            answer = self._ask(request, began + self._seconds)
            if answer is None:
                continue
            error = error_of(answer)
            if not error:
                return answer
            if error in _OVERTAKEN:
                raise LeaseLost(f"{self._brokers.where}: {self.name}: {self._over}")
            if error in _MOVED:
                self.node = None
            elif error != BUSY:
                raise self._refusal(error)
            since = time.monotonic() - began
            if since > _TELL_SECONDS:
                tell(HIDDEN if error == BUSY else _AWAY)
            if since > (self._patience if error in (_LOADING, BUSY) else self._seconds):
                raise self._refusal(error)
            time.sleep(next(waits))

    def _ask(self, request: Callable[[], Any], deadline: float) -> Any | None:
        """The answer of whoever is the coordinator; None where he is dead, and another one is sought."""
        try:
            node = self._find(deadline)
            return self._brokers.ask(request(), node)
        except FenceUnavailable:
            raise
        except ProtocolUnavailable:
            self.node = None
            if time.monotonic() > deadline:
                raise
            return None

    def _find(self, deadline: float) -> int:
        waits: Iterator[float] = pauses()
        while self.node is None:
            answer = self._brokers.ask(
                FindCoordinatorRequest(key=self.name, key_type=_TRANSACTION, max_version=_COORDINATORS)
            )
            if not answer.error_code:
                self.node = answer.node_id
            elif answer.error_code not in _MOVED or time.monotonic() > deadline:
                raise self._refusal(answer.error_code)
            else:
                time.sleep(next(waits))
        return self.node

    @property
    def _over(self) -> str:
        seconds = self._timeout_ms / 1000
        return f"another driver has fenced this one, or the transaction was open for longer than {seconds:g} s"

    def _refusal(self, error: int) -> ProtocolUnavailable:
        where = f"{self._brokers.where}: transactional id {self.name}"
        if error == BUSY:
            return ProtocolUnavailable(f"{where}: {HIDDEN} after {self._patience:g} s")
        what = _REFUSALS.get(error, f"its transaction coordinator answers with error {error}")
        if error == _DENIED:
            what = f"allow WRITE on transactional id {self.name} to the principal of these credentials"
        return FenceUnavailable(f"{where}: {what}", may_pass=error in _MOVED)


def _error_of(answer: Any) -> int:
    return int(answer.error_code)


def _error_unless(fine: int) -> Callable[[Any], int]:
    return lambda answer: 0 if _error_of(answer) == fine else _error_of(answer)


def _codes(answer: Any) -> dict[TopicPartition, int]:
    return {
        TopicPartition(of_topic.name, one.partition_index): one.partition_error_code
        for of_topic in answer.results_by_topic_v3_and_below
        for one in of_topic.results_by_partition
    }
