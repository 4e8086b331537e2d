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
    extent: str = "has no effect"
    """How far it counts at all."""

    def __str__(self) -> str:
        return f"{self.extent}: {self.why}"

    def counts(self, value: str) -> bool:
        """Whether a value makes no difference, or counts."""
        text = value.strip().lower()
        return text in self.harmless or (self.most is not None and text.isdecimal() and int(text) <= self.most)


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


_FETCHED = _else("a fetch takes what is there, up to 16 MB, and 2 MB of them from a partition")
_WAITS = _else("a connection has 5 s and a request 30 s, and what fails in passing is tried again")
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
    "fetch.max.bytes": _FETCHED,
    "max.partition.fetch.bytes": _FETCHED,
    "check.crcs": _else("the checksum of each batch is checked", "true"),
}
"""Of the consumer, where batches are fetched as they lie on the source."""
BATCH_PRODUCER: Mapping[str, Overruled] = {
    **_CONNECTIONS,
    "linger.ms": _else("a task sends what it has read, and waits for no more"),
    "buffer.memory": _else("32 MB of a task wait for their acknowledgement at most"),
    "max.request.size": _else("what the remote topic takes is written, 4 MB in a request or one batch that is larger"),
    "max.in.flight.requests.per.connection": _else("there are five", "5"),
    "retries": _else("what fails in passing is tried again until `delivery.timeout.ms` is over"),
}
"""Of the producer of records, where batches are sent under a producer id that srm-spark has asked for."""


def told(name: str) -> str:
    """What a reference says of a property; empty where there is nothing to say."""
    tables = (EVERY, CONSUMER, PRODUCER, BATCH_CONSUMER, BATCH_PRODUCER)
    return next((_sentence(table[name]) for table in tables if name in table), "")


def _sentence(row: Overruled) -> str:
    limits = [f"Other than {' or '.join(f'`{value}`' for value in row.harmless)}"] if row.harmless else []
    limits += [f"Above {row.most}"] if row.most is not None else []
    text = f"{', '.join([*limits, f'it {row}' if limits else str(row)])}."
    return text[0].upper() + text[1:]
