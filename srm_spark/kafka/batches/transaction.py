"""The transaction of one task: batches, and the progress that they make, committed together or not at all (KIP-618).

```
init     the slot's transactional id → an author, unless it is ours still; then the fencing token is looked at
add      each partition, before the first batch goes there, unless brokers take it in with that (KIP-890)
batches  under the author, with the bit that says that a marker decides
progress its records, in the same transaction
end      commit; or, where anything has failed, abort
```

Nothing is begun before the first batch. `kafka/fencing.py` says who may: what an author has begun that was overtaken by
a newer generation is aborted by that, and nothing of it is taken any more.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError

from srm_spark.core.cluster import ControlRecord
from srm_spark.core.codec import partition_for_key
from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author, Authorship
from srm_spark.core.reports import PartitionReport
from srm_spark.errors import FenceUnavailable, LeaseLost, ProtocolUnavailable, QueryFailed, TargetUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.coordinator import NOT_TRIED, Coordinator
from srm_spark.kafka.batches.packer import Packed
from srm_spark.kafka.batches.small import small_batches
from srm_spark.kafka.failures import kind_of, named, remedy
from srm_spark.kafka.fencing import FencingToken, require_newest, transaction_ms
from srm_spark.kafka.producers import options_key
from srm_spark.kafka.recording import Recording

log = logging.getLogger(__name__)

_UNKNOWN_TOPIC = 3
"""Its brokers have not heard of it yet, as behind the making of a topic."""
_ID_DENIED = 53
_PROGRESS_BYTES = 500_000
"""Of a batch: within what topics take unless they are told otherwise."""


class Transaction:
    """Of one task. Not safe to use from several threads."""

    def __init__(
        self,
        recording: Recording,
        slot: int,
        options: Mapping[str, Any],
        brokers: Brokers,
        look_at_token: Callable[[FencingToken, int], None] = require_newest,
    ) -> None:
        """Nothing is asked of the target yet; `options` are those of the producer, as librdkafka calls them."""
        self._look_at_token = look_at_token
        self.recording, self.slot = recording, slot
        self.name = recording.fencing.transactional_id(slot)
        self.partitions: set[TopicPartition] = set()
        """What may be written to."""
        self._options, self._brokers = options_key(options), brokers
        self.seconds = transaction_ms(options) / 1000
        """It may be open for so long."""
        self.is_implicit = False
        """Once it has begun: whether brokers take partitions in by themselves, and its epoch ends with it."""
        self._coordinator = Coordinator(
            brokers, self.name, recording.fencing.timeout, timeout_ms=transaction_ms(options)
        )
        self._author: Author | None = None
        self._progress_partitions = 0

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to commit."""
        return self._author is not None

    def begin(self) -> Authorship:
        """As whom to write, and under which numbers.

        Raises LeaseLost where there is a newer generation, TargetUnavailable where the target lets nobody write.
        """
        try:
            self.is_implicit = self._brokers.takes_in
            kept = _take(self.recording, self.slot, self._options)
            if kept is None:
                self._author = self._initialised()
                return Authorship(self._author)
        except ProtocolUnavailable as error:
            raise TargetUnavailable(f"{self.name}: cannot begin to write in transactions: {error}") from error
        self._author = kept.authorship.author
        self._coordinator.node, self._progress_partitions = kept.node, kept.progress_partitions
        return kept.authorship

    def add(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Failure]:
        """Take in remote partitions: why some of them cannot be. Those of a topic that is new come in time.

        Raises ProtocolUnavailable where nobody answers.
        """
        assert self._author is not None
        left, failures = set(partitions), dict[TopicPartition, Failure]()
        while left:
            try:
                errors = self._coordinator.add(self._author, left)
            except LeaseLost as error:
                return failures | dict.fromkeys(left, Failure(FailureKind.OVERTAKEN, str(error)))
            except FenceUnavailable as error:
                return failures | dict.fromkeys(left, Failure(FailureKind.NOT_COMMITTED, str(error)))
            refused = {partition: code for partition, code in errors.items() if code not in (0, NOT_TRIED)}
            failures |= {p: self._refusal(p, code) for p, code in refused.items() if code != _UNKNOWN_TOPIC}
            left -= refused.keys()
            if not refused:
                self.partitions |= left
                break
        return failures

    def progress(self, reports: Sequence[PartitionReport]) -> Iterator[tuple[TopicPartition, Packed]]:
        """What the reports say, in batches, each with the partition of the progress topic where Connect would put it.

        Raises ProtocolUnavailable.
        """
        topic = self.recording.progress_topic
        if not self._progress_partitions:
            self._progress_partitions = self._brokers.partition_count(topic)
        if not self._progress_partitions:
            raise ProtocolUnavailable(f"{self._brokers.where}: topic {topic} is not there, or we may not see it")
        records = defaultdict[TopicPartition, list[ControlRecord]](list)
        for report in reports:
            for key, value, headers in self.recording.progress(report):
                to = TopicPartition(topic, partition_for_key(key, self._progress_partitions))
                records[to].append(ControlRecord(topic, key, value, headers))
        for to, of_partition in records.items():
            for piece in small_batches(of_partition, _PROGRESS_BYTES):
                yield to, piece

    def commit(self, sequences: Mapping[TopicPartition, int], reports: Sequence[PartitionReport]) -> None:
        """Commit; `sequences` are the numbers that come next.

        Raises QueryFailed where it is not known what became of the transaction: the next generation finds out.
        """
        assert self._author is not None
        author, self._author = self._author, None
        try:
            if self.is_implicit:
                author, sequences = self._coordinator.end_by_epoch(author, committed=True), {}
            else:
                self._coordinator.end(author, committed=True)
        except (LeaseLost, ProtocolUnavailable) as error:
            text = f"{self.name}: whether the transaction was committed is found out by the next start: {error}"
            raise QueryFailed(text, FailureKind.NOT_COMMITTED) from error
        token, node = self.recording.fencing.note.token, self._coordinator.node
        _keep(self.name, _Kept(self._options, token, Authorship(author, sequences), node, self._progress_partitions))
        for report in reports:
            report.slot, report.writer = self.slot, process_id()

    def abandon(self) -> None:
        """Abort, as far as that can be done now; the next one to initialise the id does it in any case."""
        author, self._author = self._author, None
        if author is None or not self.partitions:
            return
        try:
            if self.is_implicit:
                self._coordinator.end_by_epoch(author, committed=False)
            else:
                self._coordinator.abandon(author, next(iter(self.partitions)))
        except (LeaseLost, ProtocolUnavailable) as error:
            log.debug("%s: not aborted here: %s", self.name, error)

    def _initialised(self) -> Author:
        author = self._coordinator.init()
        self._look_at_token(self.recording.fencing, self.slot)
        return Author(author.producer_id, author.epoch, is_transactional=True)

    def _refusal(self, partition: TopicPartition, code: int) -> Failure:
        error = KafkaError(code)
        right = f"WRITE on {f'transactional id {self.name}' if code == _ID_DENIED else f'topic {partition.topic}'}"
        hint = remedy(error, right, "the flow starts again")
        return Failure(kind_of(error), f"{partition}: not taken into the transaction: {named(error)}; {hint}")


@dataclass(frozen=True)
class _Kept:
    """What an author leaves for the next transaction of the same slot and process."""

    options: object
    token: str
    authorship: Authorship
    node: int | None
    """The coordinator."""
    progress_partitions: int


_lock = threading.Lock()
_kept: dict[str, _Kept] = {}
"""By transactional id; those that are in use are not here, nor those whose transaction came to nothing."""
_process: tuple[int, str] = (0, "")


def process_id() -> str:
    """Of this process; another one after a fork."""
    global _process  # noqa: PLW0603 - the identity of the process
    if _process[0] != os.getpid():
        _process = (os.getpid(), uuid.uuid4().hex)
    return _process[1]


def _take(recording: Recording, slot: int, options: object) -> _Kept | None:
    """The slot's author of this process, unless another process has initialised the id since."""
    with _lock:
        kept = _kept.pop(recording.fencing.transactional_id(slot), None)
    is_newest = recording.writers.get(slot) == process_id()
    is_same = kept is not None and (kept.options, kept.token) == (options, recording.fencing.note.token)
    return kept if is_newest and is_same else None


def _keep(name: str, kept: _Kept) -> None:
    with _lock:
        _kept[name] = kept
