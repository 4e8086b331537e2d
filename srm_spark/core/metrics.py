"""What a driver tells in figures of a flow, its partitions and its groups, as it lies in the metrics topic. No I/O.

A record of `srm-metrics-<source>.internal` is one sample, of the period that ended at `at`:

```
key    ["flow","A->B","host-1/4711/1700000000000"]
value  {"v":1,"at":1700000030000,"seconds":30.0,"every":30.0,"state":"running","topics":2,"partitions":5, …}
key    ["partition","A->B","orders",3]
value  {"v":1,"at":1700000030000,"seconds":30.0,"remote":"A.orders","records":17,"bytes":1700,"state":"running", …}
key    ["group","A->B","billing"]
value  {"v":1,"at":1700000030000,"seconds":30.0,"topics":["orders"],"state":"synced", …}
```

and one of `srm-meta.internal` says which topic is copied to where, for as long as it is:

```
key    ["topic","A->B","orders"]
value  {"v":1,"remote":"A.orders","partitions":3,"original":"orders"}      a tombstone: it is not copied any more
```

What is not known is left out, and read as None: it is never 0. Times are milliseconds since the epoch.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from srm_spark.core.compact_json import compact_json
from srm_spark.core.driver_status import FlowState
from srm_spark.core.model import Flow, TopicPartition

VERSION = 1
BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000)
"""Upper bounds of the buckets of a histogram, each included; one bucket more lies above the last."""
META_TOPIC = "srm-meta.internal"
"""On the target, of all flows into it."""
RUNNING, PAUSED, UNKNOWN = "running", "paused", "unknown"
"""States of a partition. `UNKNOWN` is one of a group, too."""

_FLOW, _PARTITION, _GROUP, _TOPIC = "flow", "partition", "group", "topic"
_NONE_OF_THEM = (0,) * (len(BOUNDS_MS) + 1)


@dataclass(frozen=True)
class Histogram:
    """How many values lie in which bucket, in milliseconds; two of them add up to that of all their values."""

    counts: tuple[int, ...] = _NONE_OF_THEM
    """Of each bucket; the last one is above all of `BOUNDS_MS`."""
    total: float = 0.0
    """Sum of the values."""
    least: float | None = None
    """None where there is no value."""
    most: float | None = None

    @classmethod
    def of(cls, values: Iterable[float]) -> Histogram:
        """That of these values."""
        made = cls()
        for value in values:
            made += cls.same(value, 1)
        return made

    @classmethod
    def same(cls, value: float, count: int) -> Histogram:
        """That of `count` times the same value."""
        if count <= 0:
            return cls()
        counts = list(_NONE_OF_THEM)
        counts[bisect_left(BOUNDS_MS, value)] = count
        return cls(tuple(counts), value * count, value, value)

    def __add__(self, other: Histogram) -> Histogram:
        if not self.count or not other.count:
            return self if self.count else other
        assert self.least is not None
        assert self.most is not None
        assert other.least is not None
        assert other.most is not None
        counts = tuple(mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True))
        return Histogram(counts, self.total + other.total, min(self.least, other.least), max(self.most, other.most))

    @property
    def count(self) -> int:
        """How many values."""
        return sum(self.counts)

    @property
    def mean(self) -> float | None:
        """Of the values; None where there is none."""
        return self.total / self.count if self.count else None

    def percentile(self, q: float) -> float | None:
        """Below which a share `q` (0 to 1) of the values lies, as if they lay evenly within their bucket.

        Never outside of `least` and `most`; None where there is no value.
        """
        if self.least is None or self.most is None:
            return None
        rank, below = min(max(q, 0.0), 1.0) * self.count, 0
        for number, count in enumerate(self.counts):
            if count and below + count >= rank:
                low = max(self.least, BOUNDS_MS[number - 1]) if number else self.least
                high = min(self.most, BOUNDS_MS[number]) if number < len(BOUNDS_MS) else self.most
                found = low + (high - low) * (rank - below) / count
                return min(max(found, self.least), self.most)
            below += count
        return self.most


@dataclass(frozen=True)
class FlowSample:
    """Of a flow, by one driver; one that waits for another driver says so, too."""

    flow: Flow
    driver: str
    """`DriverId` in words."""
    at: int
    """By the driver's clock, as all times here."""
    seconds: float
    """Length of the period that it tells of."""
    every: float
    """Seconds until its next sample."""
    state: FlowState
    since: int | None = None
    """When it came into this state."""
    reason: str | None = None
    """Code of the failure kind, where the state has one."""
    sentence: str | None = None
    """Why it is not running, for people."""
    topics: int | None = None
    partitions: int | None = None
    groups: int | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None
    """Of the partition that is furthest behind in time; None also where one of them is not known."""
    rpo_goal: int | None = None
    """How many seconds of data a failover may lose, by the driver's configuration; None where it has no goal."""
    unknown_since: int | None = None
    """Since when the lag is not known; None where it is, or never was."""
    source_checked_at: int | None = None
    """When the source said last where its partitions end."""
    lost: int | None = None
    """Records that were found to be lost since the driver began."""
    quarantined: int | None = None
    """Source topics with records in quarantine."""
    is_audited: bool = False
    """Its driver compares copies with their records."""
    audited_at: int | None = None
    """When the newest comparison of copies with their records ended; None where none has."""
    differing: int | None = None
    """Records that it found to be other than their copies."""
    differs: str | None = None
    """One of them, for people."""
    audit_late: str | None = None
    """Why none has ended for too long, for people; None where one has, or none is wanted."""
    is_last: bool = False
    """There will be no other one of this driver."""


@dataclass(frozen=True)
class PartitionSample:
    """Of one partition of the source."""

    flow: Flow
    at: int
    seconds: float
    partition: TopicPartition
    remote: str
    """Name of the remote topic."""
    records: int = 0
    """Copied in the period."""
    bytes: int = 0
    latency: Histogram = Histogram()
    """Replication latency of these records, in milliseconds."""
    lag_records: int | None = None
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    checked_at: int | None = None
    """When the source said last where it ends; the lag is as old as that."""
    state: str = UNKNOWN
    """`RUNNING`, `PAUSED` or `UNKNOWN`."""
    reason: str | None = None
    """Code of the failure kind for which it is paused."""


@dataclass(frozen=True)
class GroupSample:
    """Of one consumer group of the source that the flow translates."""

    flow: Flow
    at: int
    seconds: float
    group: str
    topics: tuple[str, ...] = ()
    """Source topics on which it has committed offsets."""
    latency: Histogram = Histogram()
    """Checkpoint latency, in milliseconds; empty where it is not known."""
    state: str = UNKNOWN
    """What group offset sync makes of its worst partition (`SyncState`), or `UNKNOWN`."""
    reason: str | None = None
    """Code of the failure kind, where a cluster refused something."""


Sample = FlowSample | PartitionSample | GroupSample


@dataclass(frozen=True)
class TopicMeta:
    """A topic that is copied; `original` is its name on the cluster where it was first written."""

    flow: Flow
    topic: str
    remote: str
    partitions: int
    original: str


def metrics_topic(flow: Flow) -> str:
    """The topic of a flow's samples, on its target."""
    return f"srm-metrics-{flow.source}.internal"


def encode(sample: Sample) -> tuple[bytes, bytes]:
    """Key and value of a sample."""
    document: dict[str, Any] = {"v": VERSION, "at": sample.at, "seconds": sample.seconds}
    key: list[Any]
    if isinstance(sample, FlowSample):
        key = [_FLOW, str(sample.flow), sample.driver]
        document |= {"every": sample.every, "state": sample.state.value, "since": sample.since}
        document |= {"reason": sample.reason, "sentence": sample.sentence, "topics": sample.topics}
        document |= {"partitions": sample.partitions, "groups": sample.groups}
        document |= {"lag_records": sample.lag_records, "lag_seconds": sample.lag_seconds}
        document |= {"rpo_goal": sample.rpo_goal}
        document |= {"unknown_since": sample.unknown_since, "source_checked_at": sample.source_checked_at}
        document |= {"audited_at": sample.audited_at, "differing": sample.differing, "differs": sample.differs}
        document |= {"audit_late": sample.audit_late, "is_audited": sample.is_audited or None}
        document |= {"lost": sample.lost, "quarantined": sample.quarantined, "is_last": sample.is_last or None}
    elif isinstance(sample, PartitionSample):
        key = [_PARTITION, str(sample.flow), *sample.partition]
        document |= {"remote": sample.remote, "records": sample.records, "bytes": sample.bytes}
        document |= {"latency": _document_of(sample.latency), "lag_records": sample.lag_records}
        document |= {"lag_bytes": sample.lag_bytes, "lag_seconds": sample.lag_seconds}
        document |= {"checked_at": sample.checked_at, "state": sample.state, "reason": sample.reason}
    else:
        key = [_GROUP, str(sample.flow), sample.group]
        document |= {"topics": list(sample.topics), "latency": _document_of(sample.latency)}
        document |= {"state": sample.state, "reason": sample.reason}
    known = {name: value for name, value in document.items() if value is not None}
    return compact_json(key), compact_json(known)


def decode(key: bytes | None, value: bytes | None) -> Sample | None:
    """Read a sample; None for anything else, and for a newer version (`newer`)."""
    try:
        (kind, *rest), fields = _read(key, value)
        if fields.value("v", int) != VERSION:
            return None
        at, seconds = fields.value("at", int), fields.number("seconds")
        if kind == _FLOW:
            written, driver = rest
            return _flow_sample(_flow_of(written), _checked(driver, str), at, seconds, fields)
        if kind == _PARTITION:
            written, topic, number = rest
            partition = TopicPartition(_checked(topic, str), _checked(number, int))
            return _partition_sample(_flow_of(written), partition, at, seconds, fields)
        if kind == _GROUP:
            written, group = rest
            topics = tuple(_checked(topic, str) for topic in fields.value("topics", list))
            return GroupSample(
                _flow_of(written),
                at,
                seconds,
                _checked(group, str),
                topics,
                fields.histogram("latency"),
                fields.value("state", str),
                fields.maybe("reason", str),
            )
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return None


def newer(key: bytes | None, value: bytes | None) -> bool:
    """Whether it is a sample, or the meta of a topic, of a version that this reader does not know."""
    try:
        (kind, *_), fields = _read(key, value)
        return kind in (_FLOW, _PARTITION, _GROUP, _TOPIC) and fields.value("v", int) > VERSION
    except (KeyError, TypeError, ValueError, RecursionError):
        return False


def meta_key(flow: Flow, topic: str) -> bytes:
    """Key of what is said of a source topic; a tombstone under it says that the flow copies it no longer."""
    return compact_json([_TOPIC, str(flow), topic])


def encode_meta(meta: TopicMeta) -> tuple[bytes, bytes]:
    """Key and value of it."""
    document = {"v": VERSION, "remote": meta.remote, "partitions": meta.partitions, "original": meta.original}
    return meta_key(meta.flow, meta.topic), compact_json(document)


def decode_meta_key(key: bytes | None) -> tuple[Flow, str] | None:
    """The flow and the source topic of which a record speaks, be it a tombstone; None for anything else."""
    try:
        kind, written, topic = _list_of(key)
        return (_flow_of(written), _checked(topic, str)) if kind == _TOPIC else None
    except (TypeError, ValueError, RecursionError):
        return None


def decode_meta(key: bytes | None, value: bytes | None) -> TopicMeta | None:
    """Read it; None for a tombstone, for anything else, and for a newer version (`newer`)."""
    about = decode_meta_key(key)
    try:
        _, fields = _read(key, value)
        if about is None or fields.value("v", int) != VERSION:
            return None
        remote, original = fields.value("remote", str), fields.value("original", str)
        return TopicMeta(*about, remote, fields.value("partitions", int), original)
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


class _Fields:
    """The fields of a value, each of the type that is asked for. Raises KeyError, TypeError and ValueError."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def value(self, name: str, kind: type) -> Any:
        return _checked(self._document[name], kind)

    def maybe(self, name: str, kind: type) -> Any:
        return self.value(name, kind) if name in self._document else None

    def number(self, name: str) -> float:
        return _number(self._document[name])

    def maybe_number(self, name: str) -> float | None:
        return self.number(name) if name in self._document else None

    def histogram(self, name: str) -> Histogram:
        if name not in self._document:
            return Histogram()
        fields, counts = _Fields(self.value(name, dict)), list(_NONE_OF_THEM)
        for bucket, count in fields.value("counts", list):
            if not 0 <= _checked(bucket, int) < len(counts) or _checked(count, int) < 1 or counts[bucket]:
                raise ValueError(bucket)
            counts[bucket] = count
        least, most = fields.number("least"), fields.number("most")
        if not any(counts) or least > most:
            raise ValueError(counts)
        return Histogram(tuple(counts), fields.number("total"), least, most)


def _flow_sample(flow: Flow, driver: str, at: int, seconds: float, fields: _Fields) -> FlowSample:
    return FlowSample(
        flow=flow,
        driver=driver,
        at=at,
        seconds=seconds,
        every=fields.number("every"),
        state=FlowState(fields.value("state", str)),
        since=fields.maybe("since", int),
        reason=fields.maybe("reason", str),
        sentence=fields.maybe("sentence", str),
        topics=fields.maybe("topics", int),
        partitions=fields.maybe("partitions", int),
        groups=fields.maybe("groups", int),
        lag_records=fields.maybe("lag_records", int),
        lag_seconds=fields.maybe_number("lag_seconds"),
        rpo_goal=fields.maybe("rpo_goal", int),
        unknown_since=fields.maybe("unknown_since", int),
        source_checked_at=fields.maybe("source_checked_at", int),
        lost=fields.maybe("lost", int),
        quarantined=fields.maybe("quarantined", int),
        is_audited=fields.maybe("is_audited", bool) or False,
        audited_at=fields.maybe("audited_at", int),
        differing=fields.maybe("differing", int),
        differs=fields.maybe("differs", str),
        audit_late=fields.maybe("audit_late", str),
        is_last=fields.maybe("is_last", bool) or False,
    )


def _partition_sample(
    flow: Flow, partition: TopicPartition, at: int, seconds: float, fields: _Fields
) -> PartitionSample:
    return PartitionSample(
        flow=flow,
        at=at,
        seconds=seconds,
        partition=partition,
        remote=fields.value("remote", str),
        records=fields.value("records", int),
        bytes=fields.value("bytes", int),
        latency=fields.histogram("latency"),
        lag_records=fields.maybe("lag_records", int),
        lag_bytes=fields.maybe("lag_bytes", int),
        lag_seconds=fields.maybe_number("lag_seconds"),
        checked_at=fields.maybe("checked_at", int),
        state=fields.value("state", str),
        reason=fields.maybe("reason", str),
    )


def _document_of(histogram: Histogram) -> dict[str, Any] | None:
    """Buckets that are empty are left out: most are."""
    if not histogram.count:
        return None
    counts = [[bucket, count] for bucket, count in enumerate(histogram.counts) if count]
    return {"counts": counts, "total": histogram.total, "least": histogram.least, "most": histogram.most}


def _read(key: bytes | None, value: bytes | None) -> tuple[list[Any], _Fields]:
    """Raises TypeError and ValueError where this is no record of ours."""
    document = json.loads(value or b"", parse_constant=_refuse)
    return _list_of(key), _Fields(_checked(document, dict))


def _list_of(key: bytes | None) -> list[Any]:
    found: list[Any] = _checked(json.loads(key or b"", parse_constant=_refuse), list)
    return found


def _refuse(constant: str) -> NoReturn:
    """NaN and Infinity are no JSON, and no figures of ours."""
    raise ValueError(constant)


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:  # and no bool where a number belongs
        raise TypeError(value)
    return value


def _number(value: Any) -> float:
    number = float(_checked(value, type(value) if type(value) in (int, float) else float))
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _flow_of(written: Any) -> Flow:
    source, arrow, target = _checked(written, str).partition("->")
    if not (source and arrow and target):
        raise ValueError(written)
    return Flow(source, target)
