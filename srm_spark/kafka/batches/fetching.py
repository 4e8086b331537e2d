"""Asks the leaders of some partitions for what is next in their logs, one request per broker at a time.

What becomes of it is told by who is made of this: `BatchReader` for batches as they lie there, `RunReader` for records.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from base64 import urlsafe_b64decode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, Generic, TypeVar

from confluent_kafka import KafkaError

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Batch
from srm_spark.errors import CodecError, ProtocolUnavailable
from srm_spark.kafka.batches.bounds import FetchBounds
from srm_spark.kafka.batches.brokers import Brokers, Connection, Leader
from srm_spark.kafka.batches.session import ENDED, Session
from srm_spark.kafka.batches.skimming import Skimmed
from srm_spark.kafka.batches.wire import SESSIONLESS, FetchedPartition, TopicKey, Wanted, fetch_answer, fetch_body
from srm_spark.kafka.failures import named

log = logging.getLogger(__name__)

MOVED = frozenset({3, 5, 6, 9, 56, 74, 75, 78, 100, 103})
"""Errors of a broker that does not lead the partition, or does not know yet that it does."""
AHEAD_BYTES = 33_554_432
"""So much is fetched before it is written."""
_NO_ID = bytes(16)
_MOVED_SECONDS = 0.1
_NAMED_SECONDS = 300.0
"""As consumers do: only the leader knows whether a replica that it named has fallen behind."""
_AWAY_SECONDS = 2.0
"""So long at least a broker that could not be reached is left alone."""
_AS_MANY = 2**31 - 1
_REMOTE_WAIT_MS = 1000
"""Kafka 3.6 reads from remote storage as long as it may wait for records, and gives that up then."""
_ANSWER_SECONDS = 30.0
"""Behind its wait a broker that has not answered for so long hangs."""


@dataclass
class Place:
    """How far one partition is fetched."""

    partition: TopicPartition
    end: int
    next: int
    """The next offset to ask for."""
    is_asked: bool = False
    bytes: int = 0
    """That were fetched of it; who got least is asked for first."""
    local_start: int = 0
    """Records before this offset lie in remote storage, as far as somebody has looked."""

    @property
    def is_open(self) -> bool:
        """Whether there is more to fetch."""
        return self.next < self.end


P = TypeVar("P", bound=Place)
_B = TypeVar("_B", Batch, Batch | Skimmed)


@dataclass(frozen=True)
class Request(Generic[P]):
    """What was asked of a broker."""

    node: int
    is_by_id: bool
    """Whether it names topics by their ids."""
    places: Mapping[tuple[TopicKey, int], P]
    seconds: float
    """How long its answer may take."""
    due: float
    """When that is over, in monotonic seconds."""


class Fetching(ABC, Generic[P]):
    """The fetch requests of one reader."""

    def __init__(
        self,
        brokers: Brokers,
        places: Mapping[TopicPartition, P],
        topic_ids: Mapping[str, str],
        *,
        committed: bool,
        rack: str,
        wait_ms: int,
        bounds: FetchBounds,
        in_sessions: bool = False,
    ) -> None:
        """A broker that has nothing lets the answer wait for `wait_ms` at most.

        `topic_ids` are those of the topics that are meant, as far as that is known. In a session a broker says nothing
        of partitions without news, so nobody learns that a range has ended: it is for those who read for ever.
        """
        self._brokers, self._places = brokers, places
        self._topic_ids = {topic: urlsafe_b64decode(topic_id + "==") for topic, topic_id in topic_ids.items()}
        self._committed, self._rack, self._wait_ms, self._bounds = committed, rack, wait_ms, bounds
        self._leaders: dict[TopicPartition, Leader] = {}
        self._nodes: dict[TopicPartition, int] = {}
        """Whom to ask: the leader, or the replica in our rack that it named (KIP-392)."""
        self._named_until: dict[TopicPartition, float] = {}
        """How long that one is asked, in monotonic seconds."""
        self._asked: dict[Connection, Request[P]] = {}
        self._not_before: dict[int, float] = {}
        """When a broker that could not be reached is tried again, in monotonic seconds."""
        self._sessions: dict[int, Session] | None = {} if in_sessions else None
        """By broker."""
        self._look_at = 0.0
        self.moved_at = time.monotonic()
        """When something came, if only of aborted transactions, in monotonic seconds."""
        self.last_error = "no error"
        """What was in the way last."""

    @property
    def waiting(self) -> Iterable[Connection]:
        """Connections that will answer."""
        return self._asked

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return not self._asked and not any(place.is_open for place in self._places.values())

    def ask(self, most_bytes: int = _AS_MANY) -> None:
        """Ask every leader for what is next, about so many bytes, unless one is still answering.

        Raises ProtocolUnavailable where the cluster is not there.
        """
        self._lose_late()
        due = defaultdict[int, list[P]](list)
        for place in self._places.values():
            if place.is_open and not place.is_asked and (node := self._node(place)) is not None:
                due[node].append(place)
        for node, places in due.items():
            connection = self._connection(node)
            if connection is None:  # it may be dead, and its partitions another broker's soon
                for place in places:
                    self._leaders.pop(place.partition, None)
                continue
            if not connection.can_fetch:
                for place in places:
                    self._cannot(place)
            elif connection not in self._asked and connection.quiet_until <= time.monotonic():
                self._send(node, connection, places, min(self._bounds.answer_bytes, most_bytes))

    def take(self, connection: Connection) -> None:
        """Take in an answer that has begun to come. Raises OSError and CodecError; `lost` is to be called then."""
        request = self._asked[connection]
        answer = fetch_answer(connection.receive(), is_by_id=request.is_by_id)
        connection.quiet_until = time.monotonic() + answer.throttled_ms / 1000
        if (session := self._session(request.node)) is not None and answer.error in ENDED:
            session.restart()
            self._forget(connection)
            return
        if answer.error:
            raise OSError(f"the fetch was refused: error {answer.error}")
        if session is not None:
            session.answered(answer.session)
        self._take(connection, answer.partitions)

    def _take(self, connection: Connection, answers: Sequence[FetchedPartition]) -> None:
        others = self._of_others(connection, answers)
        asked = self._forget(connection)
        # A broker fills its answer from the front, with at least one batch: if nothing came, nothing is on its disks.
        is_dry = not any(answer.records for answer in answers)
        for answer in answers:
            asking = asked.get((answer.topic, answer.partition))
            if asking is None or not asking.is_open:
                continue
            if asking.partition.topic in others and asking.partition.topic in self._topic_ids:
                self._is_another(asking)
            elif asking.partition.topic in others or answer.error in MOVED:
                if answer.error:
                    self.last_error = f"{asking.partition}: {named(KafkaError(answer.error))}"
                self._leaders.pop(asking.partition, None)
            elif answer.error:
                self._refused(asking, answer.error)
            else:
                self._take_in(asking, answer)
                if is_dry and answer.preferred_replica < 0 and answer.readable_end(self._committed) >= asking.end:
                    self._end(asking, connection)

    def finish(self) -> None:
        """Take what was asked for and is not wanted any more, so that the connections can be used again."""
        for place in self._places.values():
            place.end = min(place.end, place.next)
        for connection in list(self._asked):
            try:
                self.take(connection)
            except (OSError, CodecError):
                self.lost(connection)

    def lost(self, connection: Connection) -> None:
        """Forget what was asked of a connection, and close it."""
        connection.close()
        if (request := self._asked.get(connection)) is None:
            return
        for place in self._forget(connection).values():
            self._leaders.pop(place.partition, None)
        if (session := self._session(request.node)) is not None:
            session.restart()

    def _forget(self, connection: Connection) -> Mapping[tuple[TopicKey, int], P]:
        """What was asked of a connection, which may be asked for again."""
        asked = self._asked.pop(connection).places
        for place in asked.values():
            place.is_asked = False
        return asked

    def _session(self, node: int) -> Session | None:
        return None if self._sessions is None else self._sessions.setdefault(node, Session())

    @abstractmethod
    def _take_in(self, place: P, answer: FetchedPartition) -> None:
        """What has come of a partition, or that nothing has."""

    @abstractmethod
    def _refused(self, place: P, error: int) -> None:
        """A broker that leads the partition does not give it."""

    @abstractmethod
    def _away(self, error: ProtocolUnavailable) -> None:
        """A broker that leads partitions cannot be reached; others are asked."""

    @abstractmethod
    def _cannot(self, place: P) -> None:
        """Its broker knows none of the requests that are used here."""

    @abstractmethod
    def _is_another(self, place: P) -> None:
        """The topic of that name is not the one that is meant."""

    def _end(self, place: P, connection: Connection) -> None:
        """End a range, unless what is next of it lies in remote storage.

        From there a broker that is late, or has used up its quota, gives an answer without records, and no error.
        """
        if place.is_open and place.next >= place.local_start and connection.knows_tiers:
            found, node = None, self._nodes[place.partition]
            leader = self._leaders.get(place.partition)
            with suppress(ProtocolUnavailable):
                found = self._brokers.local_start(
                    place.partition, node, is_leader=leader is None or leader.node == node
                )
            if found is None:
                return
            place.local_start = found
        if place.next >= place.local_start:
            place.next = place.end

    def _leaderless(self, errors: Mapping[TopicPartition, int]) -> None:
        """A look found these without a leader."""

    def _connection(self, node: int) -> Connection | None:
        """None where it cannot be made: then others go on before it is tried again, for a try takes seconds."""
        begun = time.monotonic()
        if begun < self._not_before.get(node, begun):
            return None
        try:
            return self._brokers.connection(node)
        except ProtocolUnavailable as error:
            now = time.monotonic()
            self._not_before[node] = now + max(_AWAY_SECONDS, now - begun)
            self._away(error)
            return None

    def _lose_late(self) -> None:
        """Ask others instead of a broker that hangs; an answer that waits for us is not late."""
        for connection, request in list(self._asked.items()):
            if time.monotonic() > request.due and not _is_readable(connection):
                self.last_error = f"broker {request.node} has not answered a fetch for {request.seconds:g} s"
                log.info("%s: %s: the leaders are looked up anew", self._brokers.where, self.last_error)
                self.lost(connection)

    def _node(self, place: P) -> int | None:
        partition = place.partition
        if partition not in self._leaders:
            if time.monotonic() < self._look_at:
                return None
            self._look_at = time.monotonic() + _MOVED_SECONDS
            missing = [p for p, one in self._places.items() if one.is_open and p not in self._leaders]
            found, errors = self._brokers.look(missing)
            self._leaders |= found
            self._nodes |= {p: leader.node for p, leader in found.items()}
            self._leaderless(errors)
        leader = self._leaders.get(partition)
        if leader is None:
            return None
        if self._topic_ids.get(partition.topic, leader.topic_id) != leader.topic_id:
            self._is_another(place)
            return None
        if time.monotonic() > self._named_until.get(partition, 0.0):
            self._nodes[partition] = leader.node
        return self._nodes[partition]

    def _send(self, node: int, connection: Connection, places: list[P], most_bytes: int) -> None:
        wanted: dict[tuple[TopicKey, int], Wanted] = {}
        asked: dict[tuple[TopicKey, int], P] = {}
        # A cluster whose inter.broker.protocol.version is before 2.8 has brokers that know ids, and topics without any.
        has_ids = all(self._leaders[place.partition].topic_id != _NO_ID for place in places)
        is_by_id = connection.fetches_by_id and has_ids
        for place in sorted(places, key=lambda one: one.bytes):
            leader = self._leaders[place.partition]
            name, number = place.partition
            topic = leader.topic_id if is_by_id else name
            wanted[topic, number] = Wanted(number, leader.epoch, place.next, self._bounds.partition_bytes)
            asked[topic, number] = place
            place.is_asked = True
        is_remote = any(place.next < place.local_start for place in places)
        wait_ms = max(self._wait_ms, _REMOTE_WAIT_MS) if is_remote else self._wait_ms
        seconds = wait_ms / 1000 + _ANSWER_SECONDS
        self._asked[connection] = Request(node, is_by_id, asked, seconds, time.monotonic() + seconds)
        note = SESSIONLESS
        if (session := self._session(node)) is not None:
            note, wanted = session.next(wanted)
        named = defaultdict[TopicKey, list[Wanted]](list)
        for (topic, _), one in wanted.items():
            named[topic].append(one)
        body = fetch_body(named, wait_ms, most_bytes, self._rack, committed=self._committed, session=note)
        try:
            connection.fetch(body, is_by_id=is_by_id)
        except OSError:
            self.lost(connection)

    def _of_others(self, connection: Connection, answers: Iterable[FetchedPartition]) -> frozenset[str]:
        """Topics that are others by now: asked by name, a broker gives the records of whichever there is."""
        request = self._asked[connection]
        asked = request.places
        came = [asked[key] for one in answers if one.records and (key := (one.topic, one.partition)) in asked]
        if request.is_by_id or not came:
            return frozenset()
        try:
            found, _ = self._brokers.look([place.partition for place in came])
        except ProtocolUnavailable as error:
            raise OSError(str(error)) from error
        return frozenset(
            place.partition.topic
            for place in came
            if (now := found.get(place.partition)) is None
            or now.topic_id != self._leaders.get(place.partition, now).topic_id
        )

    def _come(self, place: P, answer: FetchedPartition) -> bool:
        """Note that something has come; whether there are records."""
        if answer.preferred_replica >= 0:
            self._nodes[place.partition] = answer.preferred_replica
            self._named_until[place.partition] = time.monotonic() + _NAMED_SECONDS
        if not answer.records:
            return False
        self.moved_at = time.monotonic()
        place.bytes += len(answer.records)
        return True

    def _present(self, batches: Iterable[_B], answer: FetchedPartition) -> Iterator[_B]:
        """The batches, those of aborted transactions as if they held nothing (KIP-98)."""
        if not self._committed:
            yield from batches
            return
        starting = sorted(answer.aborted, key=lambda one: one[1])
        aborting: set[int] = set()
        for batch in batches:
            while starting and starting[0][1] < batch.end:
                aborting.add(starting.pop(0)[0])
            if not isinstance(batch, Batch):
                pass  # of no transaction, where one was aborted
            elif batch.is_control:
                aborting.discard(batch.producer_id)
            elif batch.is_transactional and batch.producer_id in aborting:
                yield batch._replace(records=0)
                continue
            yield batch


def _is_readable(connection: Connection) -> bool:
    several: list[Any] = [connection]
    return connection.has_more or bool(wait(several, 0))
