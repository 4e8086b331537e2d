"""Writes whole batches to the leaders of the target, idempotently, as Kafka's own producer does (KIP-98, KIP-360).

Each partition's batches carry consecutive sequence numbers of one producer id, at most five requests wait for an answer
per connection, and whatever is not answered is sent again under the same numbers: the broker knows it then.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from time import monotonic
from typing import Any

import crc32c

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import CHECKED_FROM, Author, Authorship, next_sequence, readdress, seal
from srm_spark.core.reports import Sent
from srm_spark.errors import CodecError, ProtocolUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.kafka.batches.bounds import USUAL_WRITE, WriteBounds
from srm_spark.kafka.batches.brokers import Brokers, Connection, Leader
from srm_spark.kafka.batches.coordinator import BUSY, HIDDEN
from srm_spark.kafka.batches.packer import Packed
from srm_spark.kafka.batches.transaction import Transaction
from srm_spark.kafka.batches.wire import Produced, produce_answer, produce_parts
from srm_spark.kafka.sinks import Answer

_IN_FLIGHT = 5
"""More, and a broker may not know a batch again that comes twice."""
_TIMEOUT_MS = 15_000
RETRY_SECONDS = 0.1
GONE_SECONDS = 10.0
"""So long no broker may know a remote topic before it counts as deleted: a new leader may hear of it late."""
_UNKNOWN_TOPIC = 3
_PASSING = frozenset({3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, BUSY, 56, 89, 97})
"""Errors after which the same batch is sent again."""
_REFUSED = frozenset({2, 10, 17, 18, 29, 31, 32, 43, 44, 76, 87})
"""Errors that say that the batch was not appended, and will not be as it is."""
_UNKNOWN = -1
"""A broker says so of a batch that came whole and that it cannot decompress, too."""
_OUT_OF_ORDER = 45
_KINDS = {
    45: FailureKind.TARGET_CHANGED,
    46: FailureKind.TARGET_CHANGED,
    47: FailureKind.OVERTAKEN,
    48: FailureKind.NOT_COMMITTED,
    53: FailureKind.NOT_COMMITTED,
    90: FailureKind.OVERTAKEN,
    120: FailureKind.NOT_COMMITTED,
}
_MEANINGS = {
    45: "those in front of it are not there: an election has cost them, or a task ran twice",
    46: "an older copy of the batch is on the target",
    47: "a newer writer of the flow has taken over",
    48: "its transaction is over, or was never begun",
    53: "allow WRITE on the transactional id to the principal of these credentials",
    90: "a newer writer of the flow has taken over",
    120: "its partition cannot be taken into the transaction",
}
_DOUBT = "the batch may or may not be on the target"


@dataclass
class Numbered:
    """A batch on its way."""

    piece: Packed
    sequence: int
    turn: int
    """How many of its lane were added before it."""
    tries: int = 0


@dataclass
class Lane:
    """What goes to one remote partition, in order."""

    source: TopicPartition
    remote: TopicPartition
    waiting: deque[Numbered] = field(default_factory=deque)
    flying: deque[Numbered] = field(default_factory=deque)
    is_known: bool = False
    """The broker has taken a batch of ours lately, so it checks the next one's number."""
    is_repeating: bool = False
    """Something failed that passes: nothing new until all that flies has come down."""
    refused: Numbered | None = None
    """What the target does not take as it is; everything behind it was not taken either."""
    refusal: Produced | None = None
    """What it said."""
    failure: Failure | None = None
    added: int = 0
    answered: int = 0
    """Batches that are acknowledged, and so are all before them."""
    early: dict[int, Acknowledged] = field(default_factory=dict)
    """Acknowledged before one in front of them, whose answer told of something that passes; by turn."""

    def in_turn(self, turn: int, done: Acknowledged) -> Iterator[Acknowledged]:
        """What may be told now that `done` is known: everything in the order in which it lies on the target."""
        self.early[turn] = done
        while self.answered in self.early:
            yield self.early.pop(self.answered)
            self.answered += 1

    @property
    def may_be_opened(self) -> bool:
        """Whether it stands at a batch that was refused and that nobody has looked into."""
        return self.refused is not None and self.failure is None and self.refused.piece.is_unseen

    @property
    def is_over(self) -> bool:
        """Whether nothing more of it goes: it has failed, or stands at a batch that was refused."""
        return self.failure is not None or self.refused is not None

    @property
    def is_waiting(self) -> bool:
        """Whether there is a batch that has yet to go."""
        return bool(self.waiting) and not self.is_over

    @property
    def is_ready(self) -> bool:
        """Whether the next batch may go."""
        if not self.is_waiting:
            return False
        if self.waiting[0].turn >= self.answered + _IN_FLIGHT:
            return False  # a broker knows the newest five again: one of before may have to be sent again
        return not self.flying or (self.is_known and not self.is_repeating)


@dataclass(frozen=True)
class Acknowledged:
    """A batch that is on the target."""

    source: TopicPartition
    piece: Packed
    base_offset: int
    at: float

    def answer(self) -> Answer:
        """It as a report takes it."""
        piece = self.piece
        count = piece.batch.records
        sent = Sent(
            piece.stretches,
            count,
            piece.batch.size,
            0,
            max(-1, piece.last_timestamp),
            whole=count if piece.is_whole else 0,
            merged=count if piece.is_merged else 0,
        )
        return Answer(self.source, sent, self.base_offset, self.base_offset + count - 1, self.at, None)


class BatchWriter:
    """Writes for one task after another, each time as the author that the owner of the flow has named."""

    def __init__(self, brokers: Brokers, bounds: WriteBounds = USUAL_WRITE) -> None:
        self.brokers = brokers
        self._bounds = bounds
        self._author: Author | None = None
        self._transaction: Transaction | None = None
        self._sequences: dict[TopicPartition, int] = {}
        self._lanes: dict[TopicPartition, Lane] = {}
        """By remote partition."""
        self._leaders: dict[TopicPartition, Leader] = {}
        self._flights: dict[Connection, deque[tuple[float, list[TopicPartition]]]] = {}
        """Requests on their way: since when, and the partitions that they are about."""
        self._gone_since: dict[TopicPartition, float] = {}
        """Remote partitions that the cluster does not know, and since when it says so."""
        self._stuck_since: dict[TopicPartition, float] = {}
        """Those whose leader is missing, or takes nothing for now, and since when: until it takes something."""
        self._look_at = self._add_at = self._moved_at = 0.0
        self._seconds = 0.0
        self._away = ""
        """Why nothing could be sent, since something was acknowledged last."""
        self._bytes = 0
        self.is_broken = False
        """Something is not known, or not in order: the author may not write any more."""

    def begin(self, author: Authorship | Transaction, seconds: float) -> None:
        """Take up a task; it fails after `seconds` without an acknowledgement."""
        self.turn()
        self._seconds, self._moved_at, self._away = seconds, monotonic(), ""
        self._author, self._sequences, self._transaction, self._add_at = None, {}, None, 0.0
        if isinstance(author, Transaction):
            self._transaction = author
        else:
            self._take_up(author)
        self.is_broken = False

    def _take_up(self, authorship: Authorship) -> None:
        self._author, self._sequences = authorship.author, dict(authorship.sequences)

    def turn(self) -> None:
        """Go on with the same task along other lanes, under the same numbers."""
        for connection in list(self._flights):
            self.lost(connection)
        self._lanes, self._gone_since, self._stuck_since, self._bytes = {}, {}, {}, 0

    def open(self, source: TopicPartition, remote: TopicPartition) -> Lane:
        """The lane of a partition, which begins here where there is none."""
        if remote not in self._lanes:
            self._lanes[remote] = Lane(source, remote)
        return self._lanes[remote]

    def forget(self, remote: TopicPartition) -> None:
        """Let a lane begin anew of which everything is answered, or refused: numbers go on."""
        del self._lanes[remote]
        self._stuck_since.pop(remote, None)

    def take_back(self, lane: Lane) -> list[Packed]:
        """What was refused and everything behind it, in order, once nothing flies; the lane begins anew."""
        assert lane.refused is not None
        assert not lane.flying
        self.forget(lane.remote)
        return [lane.refused.piece, *(one.piece for one in lane.waiting)]

    def next_sequence(self, remote: TopicPartition) -> int:
        """The number of the next record of a remote partition, once everything before it is answered."""
        return self._sequences.get(remote, 0)

    @property
    def sequences(self) -> Mapping[TopicPartition, int]:
        """All of these numbers that are not 0."""
        return self._sequences

    def add(self, remote: TopicPartition, piece: Packed) -> None:
        """Give a batch its number and let it wait for its turn; behind one that was not taken nothing is.

        What comes behind one that `may_be_opened` waits for what becomes of that one (`take_back`).

        Raises what `Transaction.begin` raises, for the first batch of all.
        """
        lane = self._lanes[remote]
        if lane.may_be_opened:
            lane.waiting.append(Numbered(piece, -1, lane.added))
            lane.added += 1
        if lane.is_over:
            return
        if self._author is None and self._transaction is not None:
            self._take_up(self._transaction.begin())
        sequence = self._sequences.get(remote, 0)
        self._sequences[remote] = next_sequence(sequence, piece.batch.records)
        if not self._bytes:
            self._moved_at = monotonic()  # before, there was nothing to wait for
        self._bytes += piece.batch.size
        lane.waiting.append(Numbered(piece, sequence, lane.added))
        lane.added += 1

    @property
    def waiting(self) -> Iterable[Connection]:
        """Connections that will answer."""
        return self._flights

    @property
    def is_idle(self) -> bool:
        """Whether everything is answered, or will never be."""
        return not self._flights and not any(lane.is_waiting for lane in self._lanes.values())

    @property
    def lanes(self) -> Iterable[Lane]:
        """Everything that goes anywhere."""
        return self._lanes.values()

    @property
    def bytes(self) -> int:
        """Of batches that are not answered yet."""
        return self._bytes

    @property
    def is_full(self) -> bool:
        """Whether more is to wait where it comes from."""
        return self._bytes >= self._bounds.waiting_bytes

    def step(self, seconds: float) -> list[Acknowledged]:
        """Send what may go, wait for answers for so long, and take those that are there."""
        # While the target is not there, what waits goes on waiting: `check_silence` ends it.
        try:
            self.send()
        except ProtocolUnavailable as error:
            self._away = str(error)
        waiting: list[Any] = list(self._flights)
        ready: list[Any] = [one for one in waiting if one.has_more] or wait(waiting, seconds)
        acknowledged = [done for connection in ready for done in self.answered(connection)]
        self.check_silence()
        return acknowledged

    def answered(self, connection: Connection) -> list[Acknowledged]:
        """Take in an answer that has begun to come; what a connection that breaks off owes is sent again."""
        try:
            return self._take(connection)
        except (OSError, CodecError):
            self.lost(connection)
            return []

    def close(self) -> None:
        """Let go of the connections."""
        self.brokers.close()

    def send(self) -> None:
        """Send what may go now. Raises ProtocolUnavailable where the cluster is not there."""
        due: dict[int, list[Lane]] = {}
        for lane in self._admitted():
            if lane.is_ready and (node := self._node(lane.remote)) is not None:
                due.setdefault(node, []).append(lane)
        for node, lanes in due.items():
            try:
                connection = self.brokers.connection(node)
            except ProtocolUnavailable:  # it may be dead, and its partitions another broker's soon
                for lane in lanes:
                    self._leaders.pop(lane.remote, None)
                    self._stick(lane.remote)
                self._look_at = monotonic() + RETRY_SECONDS
                continue
            try:
                while (ready := [lane for lane in lanes if lane.is_ready]) and self._may_send(connection):
                    self._send(connection, ready)
            except OSError:
                self.lost(connection)

    def _admitted(self) -> Iterable[Lane]:
        """What may be written to: in a transaction a partition has to be taken in first."""
        lanes, transaction = self._lanes.values(), self._transaction
        if transaction is None or transaction.is_implicit:
            return lanes
        new = [lane for lane in lanes if lane.is_ready and lane.remote not in transaction.partitions]
        if new and monotonic() >= self._add_at:
            for remote, failure in transaction.add(lane.remote for lane in new).items():
                self.end_lane(self._lanes[remote], failure)
            unknown = [
                lane.remote for lane in new if lane.failure is None and lane.remote not in transaction.partitions
            ]
            if unknown:
                self._add_at = monotonic() + RETRY_SECONDS
            for remote in unknown:  # new, or deleted
                self._leaders.pop(remote, None)
                self._node(remote)
        return [lane for lane in lanes if lane.remote in transaction.partitions]

    def _take(self, connection: Connection) -> list[Acknowledged]:
        throttled, answers = produce_answer(connection.receive())
        connection.quiet_until = monotonic() + throttled / 1000
        flights = self._flights[connection]
        if sorted(answer.partition for answer in answers) != sorted(flights[0][1]):
            raise CodecError("a produce answer is about other partitions than the request")
        flights.popleft()
        if not flights:
            del self._flights[connection]
        acknowledged: list[Acknowledged] = []
        for answer in answers:
            lane = self._lanes[answer.partition]
            sent = lane.flying.popleft()
            if (done := self._judge(lane, sent, answer)) is not None:
                acknowledged += lane.in_turn(sent.turn, done)
            if not lane.flying:
                lane.is_repeating = False
        return acknowledged

    def lost(self, connection: Connection) -> None:
        """What a connection that is gone did not answer is sent again."""
        connection.close()
        for _, partitions in self._flights.pop(connection, ()):
            for partition in partitions:
                self._leaders.pop(partition, None)
                lane = self._lanes[partition]
                if lane.refused is not None and lane.flying and lane.failure is None:
                    # The numbers behind the refused one are given anew, and a broker may still come to these (KIP-360).
                    self._break(lane, FailureKind.NOT_ACKNOWLEDGED, f"{lane.remote}: {_DOUBT}")
                self._repeat(lane, lane.flying)
                lane.flying.clear()
                lane.is_repeating = lane.is_known = False

    def check_silence(self) -> None:
        """Fail what waits where nothing was acknowledged for too long; ask anew where a broker seems to hang."""
        late = monotonic() - self._bounds.answer_seconds
        for connection in [one for one, flights in self._flights.items() if flights[0][0] < late]:
            self.lost(connection)
        if not self.is_idle and monotonic() - self._moved_at > self._seconds:
            self.fail(f"{self._silence}: {self._away}" if self._away else self._silence)
        for remote, since in self._stuck_since.items():
            # Others may be acknowledged all the time. One that only waits for its turn is not stuck.
            if monotonic() - since > self._seconds and (lane := self._lanes[remote]).is_waiting:
                self._break(lane, FailureKind.NOT_ACKNOWLEDGED, f"{remote}: {self._silence}")

    @property
    def _silence(self) -> str:
        return f"no acknowledgement came in {self._seconds:.0f} s"

    def fail(self, why: str) -> None:
        """Give up everything that is not acknowledged."""
        for connection in list(self._flights):
            self.lost(connection)
        for lane in self._lanes.values():
            if lane.is_waiting:
                self._break(lane, FailureKind.NOT_ACKNOWLEDGED, why)

    def end_lane(self, lane: Lane, failure: Failure) -> None:
        """Nothing more of a partition is written; the first reason counts."""
        if not lane.is_over:
            self._bytes -= sum(one.piece.batch.size for one in (*lane.waiting, *lane.flying))
        lane.failure = lane.failure or failure

    def _node(self, remote: TopicPartition) -> int | None:
        if remote not in self._leaders:
            if monotonic() < self._look_at:
                return None
            self._look_at = monotonic() + RETRY_SECONDS
            found, errors = self.brokers.look(p for p in self._lanes if p not in self._leaders)
            self._leaders |= found
            self._end_gone(errors)
            for partition in self._lanes.keys() - self._leaders.keys():
                self._stick(partition)
        leader = self._leaders.get(remote)
        return None if leader is None else leader.node

    def _stick(self, remote: TopicPartition) -> None:
        self._stuck_since.setdefault(remote, monotonic())

    def _end_gone(self, errors: Mapping[TopicPartition, int]) -> None:
        """Give up what cannot come back by waiting: the topic was deleted, and who starts anew makes it again."""
        now = monotonic()
        absent = [p for p, error in errors.items() if error == _UNKNOWN_TOPIC]
        self._gone_since = {p: self._gone_since.get(p, now) for p in absent}
        for remote, since in self._gone_since.items():
            lane = self._lanes[remote]
            if now - since > GONE_SECONDS and lane.is_waiting:
                text = f"no broker of the target has known {remote} for {GONE_SECONDS:g} s: it was deleted"
                self._break(lane, FailureKind.TARGET_CHANGED, text)

    def _may_send(self, connection: Connection) -> bool:
        in_flight = len(self._flights.get(connection, ()))
        return in_flight < self._bounds.requests and connection.quiet_until <= monotonic()

    def _send(self, connection: Connection, lanes: list[Lane]) -> None:
        """One request: the next batch of as many partitions as it takes."""
        batches: dict[TopicPartition, memoryview] = {}
        size = 0
        for lane in lanes:
            if size and size + lane.waiting[0].piece.batch.size > self._bounds.request_bytes:
                break
            sent = lane.waiting.popleft()
            if not sent.tries:
                self._address(sent)
            sent.tries += 1
            lane.flying.append(sent)
            batches[lane.remote] = sent.piece.data
            size += len(sent.piece.data)
        self._flights.setdefault(connection, deque()).append((monotonic(), list(batches)))
        if self._transaction is None:
            connection.produce(produce_parts(_TIMEOUT_MS, batches), takes_in=False)
        else:
            self._transaction.partitions.update(batches)
            parts = produce_parts(_TIMEOUT_MS, batches, self._transaction.name)
            connection.produce(parts, takes_in=self._transaction.is_implicit)

    def _address(self, sent: Numbered) -> None:
        assert self._author is not None
        readdress(sent.piece.data, sent.piece.batch, self._author, sent.sequence)
        seal(sent.piece.data, crc32c.crc32c(sent.piece.data[CHECKED_FROM:]))

    def _judge(self, lane: Lane, sent: Numbered, answer: Produced) -> Acknowledged | None:
        if answer.error == 0:
            if not lane.is_over:
                self._moved_at, self._away = monotonic(), ""
                self._bytes -= sent.piece.batch.size
                lane.is_known = True
                self._stuck_since.pop(lane.remote, None)
                return Acknowledged(lane.source, sent.piece, answer.base_offset, time.time())
            self._broken(lane, sent, answer, "a batch was taken behind one that was not")
        elif lane.refused is not None and answer.error in _REFUSED | {_OUT_OF_ORDER, _UNKNOWN}:
            self._repeat(lane, [sent])  # it goes behind what becomes of that one, if anything does
        elif answer.error in _PASSING or (lane.is_repeating and answer.error == _OUT_OF_ORDER):
            self._leaders.pop(lane.remote, None)
            lane.is_repeating, lane.is_known = True, False
            self._stick(lane.remote)
            self._repeat(lane, [sent])
            if answer.error == BUSY:
                self._away = f"{lane.remote}: {HIDDEN}"
        elif _is_refused(sent, answer) and sent.tries == 1 and not lane.is_repeating:
            self._bytes -= sum(one.piece.batch.size for one in (sent, *lane.waiting, *lane.flying))
            lane.refused, lane.refusal = sent, answer
            self._sequences[lane.remote] = sent.sequence
        else:
            what = _MEANINGS.get(answer.error, _DOUBT)
            if self._transaction is not None and _KINDS.get(answer.error) is FailureKind.OVERTAKEN:
                what = f"{what}, or the transaction was open for longer than {self._transaction.seconds:g} s"
            self._broken(lane, sent, answer, what)
        return None

    def doubt(self, lane: Lane) -> None:
        """Whoever has looked into a batch that was refused finds nothing wrong with it."""
        if lane.refusal is not None and lane.refusal.error == _UNKNOWN:
            assert lane.refused is not None
            self._broken(lane, lane.refused, lane.refusal, _DOUBT)

    def _repeat(self, lane: Lane, come_down: Sequence[Numbered]) -> None:
        """Back among those that wait, each in its turn."""
        for sent in come_down:
            at = sum(1 for one in lane.waiting if one.turn < sent.turn)
            lane.waiting.insert(at, sent)

    def _broken(self, lane: Lane, sent: Numbered, answer: Produced, what: str) -> None:
        text = f"{lane.remote}: produce error {answer.error}: {what}" + (
            f" ({answer.message})" if answer.message else ""
        )
        kind = _KINDS.get(answer.error, FailureKind.NOT_ACKNOWLEDGED)
        self._bytes -= 0 if lane.is_over else sent.piece.batch.size
        self._break(lane, kind, text)

    def _break(self, lane: Lane, kind: FailureKind, text: str) -> None:
        """End it, with something unknown or out of order."""
        self.end_lane(lane, Failure(kind, text))
        self.is_broken = True


def _is_refused(sent: Numbered, answer: Produced) -> bool:
    return answer.error in _REFUSED or (answer.error == _UNKNOWN and sent.piece.is_whole)
