"""Connections to the brokers of one cluster that move record batches, and who leads which partition.

kafka-python connects, encrypts, logs in and knows the cluster; then its socket is taken over, for it would copy every
byte that comes three times.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any
from uuid import UUID

from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.batches.wire import (
    FETCH,
    FETCH_BY_ID,
    FETCH_BY_NAME,
    PRODUCE,
    PRODUCE_TAKING_IN,
    PRODUCE_VERSION,
    Bytes,
    header,
)
from srm_spark.kafka.login import TRY_MS, login_options
from srm_spark.kafka.somebody import Somebody
from srm_spark.kafka.tries import pauses

_LARGEST = 200_000_000
_NOT_YET = frozenset({14, 15, 16})
"""A broker that has just started has no block of producer ids yet."""
_NO_LEADER = 5
_EARLIEST, _LATEST, _EARLIEST_LOCAL = -2, -1, -4
_LIST_OFFSETS, _BEFORE_TIERS, _WITH_TIERS = 2, 7, 8
"""The request, and its versions without and with the first offset on a broker's own disks (KIP-405)."""
_ANYBODY, _OF_A_REPLICA = -1, -2
"""Who asks for offsets: a consumer, whom only a leader answers, or somebody who looks at a replica."""
_UNSUPPORTED_VERSION = 35
_TRANSACTION_FEATURE, _TAKES_IN = "transaction.version", 2
_TRIES = 3
"""At least: some of them may hang."""
_SOCKET_SECONDS = 30.0
"""A broker whose quota is used up reads nothing for a while."""
_SENT_AT_ONCE = 512
"""Pieces of one call of sendmsg; IOV_MAX is 1,024."""


@dataclass(frozen=True)
class Leader:
    """Who leads a partition."""

    node: int
    epoch: int
    topic_id: bytes


class Connection:
    """One socket to one broker, logged in. Answers come in the order of the requests."""

    def __init__(self, sock: socket.socket, client_id: str, versions: Mapping[int, tuple[int, int]]) -> None:
        self._sock = sock
        self._client_id = client_id.encode()
        self._versions = versions
        self._expected: deque[int] = deque()
        self._next = 0
        self.is_open = True
        self.quiet_until = 0.0
        """Monotonic seconds: the broker's quota wants no request before."""
        sock.settimeout(_SOCKET_SECONDS)

    def fileno(self) -> int:
        """For `multiprocessing.connection.wait`."""
        return self._sock.fileno()

    @property
    def has_more(self) -> bool:
        """Whether TLS holds bytes back that the socket does not show any more."""
        return isinstance(self._sock, ssl.SSLSocket) and self._sock.pending() > 0

    @property
    def can_fetch(self) -> bool:
        """Whether the broker knows a version of fetch requests that is used here."""
        return self.fetches_by_id or _knows(self._versions, FETCH, FETCH_BY_NAME)

    @property
    def fetches_by_id(self) -> bool:
        """Whether topics can be fetched by their ids, and not only by their names, as from brokers before Kafka 3.1."""
        return _knows(self._versions, FETCH, FETCH_BY_ID)

    @property
    def knows_tiers(self) -> bool:
        """Whether the broker may have records in remote storage, as from Kafka 3.6 on."""
        return self._versions.get(_LIST_OFFSETS, (0, -1))[1] >= _WITH_TIERS

    def fetch(self, body: bytes, *, is_by_id: bool) -> None:
        """Send a fetch request that names topics by their ids, where it `fetches_by_id`, or by name. Raises OSError."""
        version = FETCH_BY_ID if is_by_id else FETCH_BY_NAME
        self._send(FETCH, version, [body], is_flexible=True)

    def produce(self, parts: Sequence[Bytes], *, takes_in: bool) -> None:
        """Send a produce request; of a transaction it may take its partitions in by itself, where the cluster does so
        (`Brokers.takes_in`). Raises OSError.
        """
        self._send(PRODUCE, PRODUCE_TAKING_IN if takes_in else PRODUCE_VERSION, parts, is_flexible=True)

    def receive(self) -> memoryview:
        """The body of the next answer. Raises OSError where it does not come, or is none of ours."""
        size, correlation = struct.unpack(">ii", self._read(8))
        if not 4 <= size <= _LARGEST or correlation != self._expected.popleft():
            raise OSError(f"an answer of {size} bytes is not the one that was asked for")
        return self._read(size - 4)

    def close(self) -> None:
        """Let go of the socket."""
        self.is_open = False
        self._expected.clear()
        self._sock.close()

    def _send(self, key: int, version: int, parts: Sequence[Bytes], *, is_flexible: bool) -> None:
        self._next += 1
        first = header(key, version, self._next, self._client_id, is_flexible=is_flexible)
        size = len(first) + sum(map(len, parts))
        self._expected.append(self._next)
        self._write([struct.pack(">i", size) + first, *parts])

    def _write(self, parts: list[Bytes]) -> None:
        if isinstance(self._sock, ssl.SSLSocket):
            self._sock.sendall(b"".join(parts))
            return
        views = [memoryview(part) for part in parts]
        at = 0
        while at < len(views):
            sent = self._sock.sendmsg(views[at : at + _SENT_AT_ONCE])
            while at < len(views) and sent >= len(views[at]):
                sent -= len(views[at])
                at += 1
            if sent:
                views[at] = views[at][sent:]

    def _read(self, size: int) -> memoryview:
        data = memoryview(bytearray(size))
        at = 0
        while at < size:
            count = self._sock.recv_into(data[at:])
            if not count:
                raise OSError("the broker closed the connection")
            at += count
        return data


class Brokers:
    """One cluster. Every call raises ProtocolUnavailable where it cannot be reached."""

    def __init__(self, options: Mapping[str, Any], alias: str) -> None:
        """`options` are librdkafka's; raises ProtocolUnavailable for a login that kafka-python cannot make."""
        self.where = f"cluster {alias} ({options.get('bootstrap.servers')})"
        self._client_id = str(options.get("client.id", ""))
        self._somebody = Somebody(login_options(options, self._client_id, self.where), self.where)
        self._connections: dict[int, Connection] = {}
        self._takes_in: bool | None = None

    @property
    def takes_in(self) -> bool:
        """Whether a batch takes its partition into its transaction by itself, and each transaction has an epoch of its
        own (KIP-890): where the cluster's feature `transaction.version` says so.
        """
        if self._takes_in is None:
            answer = self.ask(ApiVersionsRequest(client_software_name="srm-spark", client_software_version="1"))
            levels = {one.name: one.max_version_level for one in getattr(answer, "finalized_features", None) or ()}
            self._takes_in = levels.get(_TRANSACTION_FEATURE, 0) >= _TAKES_IN
        return self._takes_in

    def look(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, Leader], dict[TopicPartition, int]]:
        """Who leads these partitions, and the broker's error for those without a leader."""
        wanted = set(partitions)
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted({p.topic for p in wanted})]
        answer = self.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        leaders: dict[TopicPartition, Leader] = {}
        errors = dict[TopicPartition, int]()
        for topic in answer.topics:
            errors.update((p, topic.error_code) for p in wanted if p.topic == topic.name and topic.error_code)
            topic_id = (getattr(topic, "topic_id", None) or UUID(int=0)).bytes
            for one in topic.partitions:
                partition = TopicPartition(topic.name, one.partition_index)
                if partition in wanted and one.leader_id >= 0 and not topic.error_code:
                    leaders[partition] = Leader(one.leader_id, getattr(one, "leader_epoch", -1), topic_id)
        return leaders, {p: errors.get(p, _NO_LEADER) for p in wanted if p not in leaders}

    def log_range(self, partition: TopicPartition, node: int) -> tuple[int, int] | None:
        """The first offset that there is, and the high watermark; None where the broker does not say."""
        found = [self._listed(partition, node, timestamp) for timestamp in (_EARLIEST, _LATEST)]
        return None if any(one.error_code for one in found) else (int(found[0].offset), int(found[1].offset))

    def local_start(self, partition: TopicPartition, node: int, *, is_leader: bool) -> int | None:
        """The first offset on the disks of a broker that `knows_tiers`: what is before it lies in remote storage.

        None where the broker does not say.
        """
        one = self._listed(partition, node, _EARLIEST_LOCAL, _WITH_TIERS, _ANYBODY if is_leader else _OF_A_REPLICA)
        if one.error_code == _UNSUPPORTED_VERSION:
            return 0
        return None if one.error_code else int(one.offset)

    def _listed(
        self,
        partition: TopicPartition,
        node: int,
        timestamp: int,
        version: int = _BEFORE_TIERS,
        replica: int = _ANYBODY,
    ) -> Any:
        """What ListOffsets says of one partition."""
        topic, place = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
        asked = place(partition_index=partition.partition, current_leader_epoch=-1, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=replica,
            isolation_level=0,
            topics=[topic(name=partition.topic, partitions=[asked])],
            max_version=version,
        )
        return self.ask(request, node).topics[0].partitions[0]

    def partition_count(self, topic: str) -> int:
        """Of a topic; 0 where it is not there, or not for us."""
        topics = [MetadataRequest.MetadataRequestTopic(name=topic)]
        (found,) = self.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False)).topics
        return len(found.partitions)

    def new_author(self) -> Author:
        """An idempotent producer's own id, from any broker."""
        nobody = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        deadline, waits = time.monotonic() + TRY_MS / 1000, pauses()
        while (answer := self.ask(nobody)).error_code in _NOT_YET and time.monotonic() < deadline:
            time.sleep(next(waits))
        if answer.error_code:
            raise ProtocolUnavailable(f"{self.where}: no producer id: error {answer.error_code}")
        return Author(answer.producer_id, answer.producer_epoch)

    def connection(self, node: int) -> Connection:
        """The connection to one broker, made where there is none."""
        known = self._connections.get(node)
        if known is None or not known.is_open:
            known = self._connections[node] = self._somebody.run(lambda: self._take(node), f"connect to broker {node}")
        return known

    def close(self) -> None:
        """Let go of everything."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._somebody.close()

    def ask(self, request: Any, node: int | None = None) -> Any:
        """The answer of one broker, or of any one, to a request that is no fetch and no produce request."""
        return self._somebody.run(lambda: self._somebody.send(request, node), "ask the cluster", TRY_MS / 1000, _TRIES)

    async def _take(self, node: int) -> Connection:
        made = self._somebody.manager.get_connection(node)
        await made
        versions = dict(made.broker_version_data.api_versions)
        return Connection(_socket_of(self._somebody.net, made), self._client_id, versions)


def _socket_of(net: Any, made: Any) -> socket.socket:
    """The socket of a connection that is logged in, which kafka-python then knows nothing of any more.

    What is private here is what its own `KafkaTCPTransport._close` undoes, without closing the socket.
    """
    transport = made.transport
    taken: socket.socket = transport._sock  # noqa: SLF001 - there is no public way to it
    net.unregister_event(taken, EVENT_READ | EVENT_WRITE)
    transport._sock = None  # noqa: SLF001 - so that closing the transport leaves it open
    made.close()
    return taken


def _knows(versions: Mapping[int, tuple[int, int]], key: int, version: int) -> bool:
    low, high = versions.get(key, (0, -1))
    return low <= version <= high
