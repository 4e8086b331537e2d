"""Client properties that do not count, or not always: what a file says of them is told.

Some srm-spark sets itself, since its promises rest on them. Others are librdkafka's, which does not move all records:
most travel in batches over other connections (`kafka/batches`), with limits of their own.
Client → property → what there is instead, and the values with which it makes no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_NO_GROUP = "records are read by offsets, and no group is joined"
_BY_US = "srm-spark chooses it"


@dataclass(frozen=True)
class Overruled:
    """One property."""

    why: str
    harmless: tuple[str, ...] = ()
    most: int | None = None
    """A number up to which it counts."""
    least: int = 0
    """A number from which on it counts, where it does up to `most`."""
    extent: str = "has no effect"
    """How far it counts at all."""

    def __str__(self) -> str:
        return f"{self.extent}: {self.why}"

    def counts(self, value: str) -> bool:
        """Whether a value makes no difference, or counts."""
        text = value.strip().lower()
        is_within = self.most is not None and text.isdecimal() and self.least <= int(text) <= self.most
        return text in self.harmless or is_within


_GROUP = (
    "group.id group.instance.id session.timeout.ms heartbeat.interval.ms max.poll.interval.ms auto.commit.interval.ms "
    "group.protocol group.remote.assignor"
)
CONSUMER: Mapping[str, Overruled] = {
    **{name: Overruled(_NO_GROUP) for name in _GROUP.split()},
    "enable.auto.commit": Overruled(_NO_GROUP, ("false",)),
    "allow.auto.create.topics": Overruled("no client ever creates a topic by asking", ("false",)),
    "fetch.max.wait.ms": Overruled("what is fetched is there already, so no fetch waits"),
    "max.poll.records": Overruled("see `batch.max.records`"),
    "partition.assignment.strategy": Overruled(_NO_GROUP),
    "exclude.internal.topics": Overruled(_NO_GROUP),
}
EXACTLY_ONCE: Mapping[str, Overruled] = {
    "isolation.level": Overruled("in the exactly-once mode committed records are copied only", ("read_committed",)),
}
PRODUCER: Mapping[str, Overruled] = {
    "acks": Overruled("each record is acknowledged by all in-sync replicas", ("all", "-1")),
    "enable.idempotence": Overruled("without it a retry doubles records", ("true",)),
    "delivery.timeout.ms": Overruled("a batch that waits longer looks like one that hangs", most=600_000),
    "client.rack": Overruled("writes go to the leaders, wherever they are"),
    "transactional.id": Overruled(_BY_US),
    "transaction.timeout.ms": Overruled(f"{_BY_US}, by delivery.timeout.ms"),
}
EVERY: Mapping[str, Overruled] = {
    "default.api.timeout.ms": Overruled("set `admin.timeout.ms` instead"),
    "interceptor.classes": Overruled("Java classes cannot run here"),
}

_BATCHES = "counts for records only where librdkafka moves them, as with a login by Kerberos"


def _else(why: str, *harmless: str) -> Overruled:
    """A property of librdkafka, and what there is instead of it where batches are moved without it."""
    return Overruled(why, harmless, extent=_BATCHES)


BATCH_LIMITS: Mapping[str, int] = {
    "fetch.max.bytes": 67_108_864,
    "max.partition.fetch.bytes": 16_777_216,
    "buffer.memory": 33_554_432,
    "max.request.size": 4_194_304,
    "max.in.flight.requests.per.connection": 5,
    "request.timeout.ms": 300_000,
}
"""Property → how large it may be where batches are moved without librdkafka (`kafka/batches/bounds.py`)."""
SHORTEST_REQUEST_MS = 1000
"""A broker that is busy for a moment is not asked again and again."""

_TRAVEL = "where records travel in batches"


def _up_to(name: str, why: str, least: int = 0) -> Overruled:
    """A property that counts there, but not whatever its value."""
    most = BATCH_LIMITS[name]
    return Overruled(why, most=most, least=least, extent=f"counts as {most} {_TRAVEL}")


_WAITS = _else("a connection has 5 s, and a fetch 30 s before it is asked for anew")
_AGAIN = _else("what fails in passing is tried again at once, and then ten times a second")
_LEADERS = _else("who leads a partition is asked for when a broker says that it does not")
_CONNECTIONS: Mapping[str, Overruled] = {
    "request.timeout.ms": _WAITS,
    "socket.connection.setup.timeout.ms": _WAITS,
    "retry.backoff.ms": _AGAIN,
    "retry.backoff.max.ms": _AGAIN,
    "reconnect.backoff.ms": _AGAIN,
    "reconnect.backoff.max.ms": _AGAIN,
    "metadata.max.age.ms": _LEADERS,
    "metadata.recovery.strategy": _LEADERS,
    "metadata.recovery.rebootstrap.trigger.ms": _LEADERS,
    "connections.max.idle.ms": _else("a connection that a broker has closed is made again"),
    "enable.metrics.push": _else("brokers are sent no metrics", "false"),
}
BATCH_CONSUMER: Mapping[str, Overruled] = {
    **_CONNECTIONS,
    "fetch.min.bytes": _else("a fetch takes what is there, and waits for no more", "1"),
    "fetch.max.bytes": _up_to("fetch.max.bytes", "what is fetched lies in memory until it is written"),
    "max.partition.fetch.bytes": _up_to("max.partition.fetch.bytes", "many partitions share a fetch"),
    "check.crcs": _else("the checksum of each batch is checked", "true"),
}
"""Of the consumer, where batches are fetched as they lie on the source."""
BATCH_PRODUCER: Mapping[str, Overruled] = {
    **_CONNECTIONS,
    "request.timeout.ms": Overruled(
        "a broker that is busy for a moment is not asked again and again",
        most=BATCH_LIMITS["request.timeout.ms"],
        least=SHORTEST_REQUEST_MS,
        extent=f"counts from {SHORTEST_REQUEST_MS} to {BATCH_LIMITS['request.timeout.ms']} {_TRAVEL}",
    ),
    "linger.ms": _else("a task sends what it has read, and waits for no more"),
    "buffer.memory": _up_to("buffer.memory", "each task has so much of its own"),
    "max.request.size": _up_to(
        "max.request.size", "one batch that is larger goes alone, and how large it may be the remote topic says"
    ),
    "retries": _else("what fails in passing is tried again until `delivery.timeout.ms` is over"),
}
"""Of the producer of records, where batches are sent under a producer id that srm-spark has asked for."""


_EACH_CONNECTION: Mapping[str, str] = {
    "client.id": "Begins the client id that brokers see; the flow and the client's part in it follow.",
    "client.dns.lookup": "How the names of brokers become addresses.",
    "send.buffer.bytes": "Of each connection's socket.",
    "receive.buffer.bytes": "Of each connection's socket.",
}
COUNTED: Mapping[str, Mapping[str, str]] = {
    "consumer": {
        **_EACH_CONNECTION,
        "client.rack": "Batches are fetched from a replica there, where the leader names one (KIP-392).",
        "isolation.level": "With `read_committed`, batches of open and aborted transactions are not copied.",
        "auto.offset.reset": "Where partitions begin of which nothing is recorded.",
        "fetch.max.bytes": "Bytes of one answer: 16777216 where nothing is said.",
        "max.partition.fetch.bytes": "Of them from one partition: 2097152 where nothing is said. "
        "A batch that is larger comes all the same.",
    },
    "producer": {
        **_EACH_CONNECTION,
        "compression.type": "Batches that came in another codec are packed anew in this one.",
        "compression.gzip.level": "Of what is packed anew.",
        "compression.lz4.level": "Of what is packed anew.",
        "compression.zstd.level": "Of what is packed anew.",
        "batch.size": "Of what is packed anew: 1000000 where nothing is said. Batches that go whole are as they came.",
        "max.request.size": "Bytes of one request: 4194304 where nothing is said.",
        "buffer.memory": "Bytes of one task that are not acknowledged yet: 33554432 where nothing is said.",
        "max.in.flight.requests.per.connection": "Requests on their way on one connection: 5 where nothing is said.",
        "request.timeout.ms": "A request without an answer for so long is sent again, on another connection, and is "
        "taken once: 30000 where nothing is said.",
        "delivery.timeout.ms": "So long without an acknowledgement, and the batch fails: 120000 where nothing is said.",
    },
}
"""Client → property → what it does where batches are moved without librdkafka."""
_IN_BATCHES = {"consumer": {**CONSUMER, **BATCH_CONSUMER}, "producer": {**PRODUCER, **BATCH_PRODUCER}}


def in_batches(client: str, name: str) -> str:
    """What a property of a consumer or producer does there; empty where nobody has said so."""
    counted, row = COUNTED[client].get(name, ""), {**EVERY, **_IN_BATCHES[client]}.get(name)
    if row is None:
        return counted
    if not counted:
        return _capital(f"{row.why}." if row.extent == _BATCHES else f"{row}.")
    within = f"No more than {row.most}" if not row.least else f"Within {row.least} and {row.most}"
    return f"{counted} {within}: {row.why}."


def told(name: str) -> str:
    """What a reference says of a property; empty where there is nothing to say."""
    tables = (EVERY, CONSUMER, PRODUCER, BATCH_CONSUMER, BATCH_PRODUCER)
    return next((_sentence(table[name]) for table in tables if name in table), "")


def _sentence(row: Overruled) -> str:
    limits = [f"Other than {' or '.join(f'`{value}`' for value in row.harmless)}"] if row.harmless else []
    limits += [f"Above {row.most}"] if row.most is not None else []
    text = f"{', '.join([*limits, f'it {row}' if limits else str(row)])}."
    return _capital(text)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
