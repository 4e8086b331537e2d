"""Client properties that srm-spark sets itself, since its promises rest on them: what a file says of them is told.

Client → property → why it does not count, and the values with which it makes no difference.
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
