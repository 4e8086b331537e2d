"""What samples say of one flow: how it is now, and its figures of the last hours. No I/O; the clocks are handed in.

Of a flow whose driver is silent, or whose target does not answer, nothing is known: its numbers are None, with the
moment since when. Which status follows from what:

| status | when |
|---|---|
| ACTIVE | the driver runs the flow, its sample is fresh, and none of the next line is true |
| WARNING | it starts, stalls or tries again; something stands still; the lag is unknown; a group is not synced |
| INACTIVE | no driver, or none that speaks; it failed, stopped or waits; the target does not answer |
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from srm_spark.core.driver_status import HEALTH_CODES, DriverId, DriverStatus, FlowDrivers, FlowState, Heard, drivers_of
from srm_spark.core.metrics import PAUSED, FlowSample, GroupSample, PartitionSample, Sample, TopicMeta
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.series import WINDOW_MS, Latencies, Line, Metric, Seen, Span, Traffic
from srm_spark.core.wording import count, some

SKEW_MS = 5 * 60_000
"""So far two clocks may be apart before the later witness is believed: the cluster's of a sample, ours of a record."""
_MISSED = 3
"""What was left out of so many samples in a row does not flow any more."""


class Health(Enum):
    """SRM's word for how a flow is; when it is which, the module says."""

    ACTIVE = "ACTIVE"
    WARNING = "WARNING"
    INACTIVE = "INACTIVE"


@dataclass(frozen=True)
class FlowNow:
    """How a flow is. Times are milliseconds since the epoch."""

    flow: Flow
    health: Health
    why: tuple[str, ...] = ()
    """For people; empty while it is ACTIVE."""
    unknown_since: int | None = None
    """Since when nothing is known; None where something is, or nothing ever was."""
    state: FlowState | None = None
    """None where it is not known; then neither is anything below."""
    since: int | None = None
    """When it came into this state."""
    driver: str | None = None
    heard_at: int | None = None
    topics: int | None = None
    partitions: int | None = None
    groups: int | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None
    rpo_goal: int | None = None
    """Most that `lag_seconds` should be; None where the driver has no goal."""
    lost: int | None = None
    """Records that were found to be lost since the driver began."""
    quarantined: int | None = None
    """Topics with records in quarantine."""
    paused: int | None = None
    """Partitions that stand still."""
    is_audited: bool = False
    """Its driver compares copies with their records."""
    audited_at: int | None = None
    """When the newest comparison of copies with their records ended; None where none has."""
    differing: int | None = None
    """Records that it found to be other than their copies."""
    differs: str | None = None
    """One of them."""
    audit_late: str | None = None
    """Why none has ended for too long."""
    skew_ms: int | None = None
    """How far the driver's clock is ahead of the cluster's, where that is more than `SKEW_MS`."""

    @property
    def is_known(self) -> bool:
        """Whether a driver speaks for it."""
        return self.state is not None


@dataclass(frozen=True)
class TopicNow:
    """A source topic that flows."""

    name: str
    remote: str
    original: str
    """Its name on the cluster where it was first written."""
    partitions: int
    groups: tuple[str, ...]
    """Consumer groups that are translated on it."""
    paused: int
    """Partitions that stand still."""
    lag_records: int | None
    """None where that of one partition is not known."""
    lag_seconds: float | None


@dataclass(frozen=True)
class Hearing:
    """How a sample was heard."""

    now: int
    """By this host's clock, in milliseconds since the epoch."""
    clock: float
    """By its monotonic one, in seconds."""
    is_live: bool = True
    """Whether it came just now, since everything before it was read already."""
    stamped: int | None = None
    """The record's own time."""


@dataclass(frozen=True)
class _Word:
    sample: FlowSample
    at: int
    seen: float
    """When it was read, by the monotonic clock."""
    is_live: bool
    """Whether it came just then; else it may have been there for any time."""


class FlowSeries:
    """One flow. Not safe to use from several threads."""

    def __init__(self, flow: Flow, left_states: Collection[str] = ()) -> None:
        """`left_states`: those of a group that is not synced."""
        self.flow = flow
        self._left_states = frozenset(left_states)
        self.clear()

    def clear(self) -> None:
        """Forget everything: the topic is another one."""
        self._words: dict[str, _Word] = {}
        self._partitions: dict[TopicPartition, PartitionSample] = {}
        self._by_topic: dict[str, set[TopicPartition]] = {}
        self._paused: set[TopicPartition] = set()
        self._groups: dict[str, GroupSample] = {}
        self._meta: dict[str, TopicMeta] = {}
        self._seen: Seen[TopicPartition | str] = Seen()
        self._traffic: Traffic[str | None] = Traffic()
        """Of each source topic, and of the whole flow, which is None; so are the next ones."""
        self._latencies: Latencies[str | None] = Latencies()
        self._checkpoints: Latencies[str | None] = Latencies()
        self._lags: dict[str | None, _LagSum] = {}
        self._skew: int | None = None
        self._lost: tuple[int | None, str] | None = (None, "its metrics were not read yet")
        self._topics: tuple[TopicNow, ...] | None = None
        """Those of `topics`, until something changes: of 10,000 partitions they take a while, and every list asks."""
        self.counted = self.repeated = 0
        """Samples that were taken, and those that came twice or too late."""
        self.newest: int | None = None
        """Moment of the newest sample that history counts, where history puts it; None: none was read."""

    def take(self, sample: Sample, heard: Hearing) -> None:
        """Take a sample in."""
        self._topics = None
        at = moment_of(sample.at, heard)
        if isinstance(sample, FlowSample):
            is_new = self._take_word(sample, at, heard)
        elif isinstance(sample, PartitionSample):
            is_new = self._seen.add(sample.partition, at)
            if is_new:
                self._take_partition(sample, at)
        else:
            is_new = self._seen.add(sample.group, at)
            if is_new:
                self._take_group(sample, at)
        self.counted, self.repeated = self.counted + is_new, self.repeated + (not is_new)
        if is_new and has_figures(sample):
            self.newest = max(self.newest or 0, moment_of(sample.at, replace(heard, is_live=False)))

    def _take_word(self, sample: FlowSample, at: int, heard: Hearing) -> bool:
        name = str(_driver(sample.driver))
        before = self._words.get(name)
        if before is not None and before.sample.at >= sample.at:
            return False
        self._words[name] = _Word(sample, at, heard.clock, heard.is_live)
        self._skew = sample.at - at if sample.at != at else None
        if sample.lag_seconds is not None:
            self._traffic.add_wait(None, at, sample.lag_seconds)
        return True

    def _take_partition(self, sample: PartitionSample, at: int) -> None:
        topic = sample.partition.topic
        for key in (topic, None):
            self._traffic.add(key, at, sample.seconds, sample.records, sample.bytes)
            self._latencies.add(key, at, sample.latency)
        if sample.lag_seconds is not None:
            self._traffic.add_wait(topic, at, sample.lag_seconds)
        before = self._partitions.get(sample.partition)
        if before is not None and before.at > at:
            return
        self._by_topic.setdefault(topic, set()).add(sample.partition)
        self._partitions[sample.partition] = replace(sample, at=at)
        (self._paused.add if sample.state == PAUSED else self._paused.discard)(sample.partition)
        for key in (topic, None):
            lag = self._lags.setdefault(key, _LagSum())
            if before is not None:
                lag.add(before.lag_records, -1)
            lag.add(sample.lag_records, 1)
            self._traffic.set_lag(key, at, lag.value)

    def _take_group(self, sample: GroupSample, at: int) -> None:
        for key in (None, *sample.topics):
            self._checkpoints.add(key, at, sample.latency)
        before = self._groups.get(sample.group)
        if before is None or before.at <= at:
            self._groups[sample.group] = replace(sample, at=at)

    def take_meta(self, topic: str, meta: TopicMeta | None) -> None:
        """What the target's list of remote topics says of a source topic; None: it is copied no longer."""
        self._topics = None
        if meta is not None:
            self._meta[topic] = meta
            return
        self._meta.pop(topic, None)
        for partition in list(self._by_topic.get(topic, ())):
            self._forget(partition)

    def _forget(self, partition: TopicPartition) -> None:
        gone = self._partitions.pop(partition)
        self._paused.discard(partition)
        for key in (partition.topic, None):
            self._lags[key].add(gone.lag_records, -1)
        left = self._by_topic[partition.topic]
        left.discard(partition)
        if not left:
            del self._by_topic[partition.topic], self._lags[partition.topic]

    def lost(self, since: int | None, why: str) -> None:
        """The target could not be asked: nothing is known since then, or ever."""
        self._lost = (since, why)

    def found(self) -> None:
        """Everything that it holds was read."""
        self._lost = None

    @property
    def is_read(self) -> bool:
        """Whether all that its target holds was read."""
        return self._lost is None

    def drivers(self, now: int, clock: float) -> FlowDrivers:
        """What the drivers' last words come to."""
        heard = []
        for word in self._words.values():
            ago = clock - word.seen
            heard.append(Heard(_status(word), ago if word.is_live else None, ago))
        return drivers_of(heard, now)

    def now(self, now: int, clock: float) -> FlowNow:
        """How it is: `now` by this host's clock, `clock` by its monotonic one."""
        if self._lost is not None:
            since, why = self._lost
            return FlowNow(self.flow, Health.INACTIVE, (why,), since)
        drivers = self.drivers(now, clock)
        spokesman = drivers.spokesman
        if spokesman is None:
            why = "its driver is silent" if drivers.silent else "no driver has said anything of it"
            return FlowNow(self.flow, Health.INACTIVE, (why,), drivers.unknown_since)
        word = self._words[str(spokesman.driver)]
        sample = word.sample
        said = FlowNow(
            self.flow, Health.ACTIVE, (), None, sample.state, sample.since, sample.driver, word.at, skew_ms=self._skew
        )
        said = replace(said, is_audited=sample.is_audited)
        if sample.state in _ENDED:
            return replace(said, health=Health.INACTIVE, why=(_said(sample),))
        paused = self._standing_still()
        known = replace(
            said,
            topics=sample.topics,
            partitions=sample.partitions,
            groups=sample.groups,
            lag_records=sample.lag_records,
            lag_seconds=sample.lag_seconds,
            rpo_goal=sample.rpo_goal,
            lost=sample.lost,
            quarantined=sample.quarantined,
            paused=len(paused),
            audited_at=sample.audited_at,
            differing=sample.differing,
            differs=sample.differs,
            audit_late=sample.audit_late,
        )
        why_not = tuple(self._remarks(sample, paused))
        return replace(known, health=Health.WARNING if why_not else Health.ACTIVE, why=why_not)

    def _remarks(self, sample: FlowSample, paused: Sequence[str]) -> Iterable[str]:
        if sample.state is not FlowState.RUNNING:
            yield _said(sample)
        if paused:
            yield f"{count(len(paused), 'partition')} paused: {some(paused, 3)}"
        if sample.lag_records is None:
            yield "the lag is not known"
        if sample.rpo_goal is not None and sample.lag_seconds is not None and sample.lag_seconds > sample.rpo_goal:
            yield f"a failover would lose {sample.lag_seconds:.0f} s of data; the goal is {sample.rpo_goal} s"
        if sample.differing:
            yield f"copies differ: {count(sample.differing, 'record')}, the first {sample.differs}"
        if sample.audit_late is not None:
            yield sample.audit_late
        if left := [one.group for one in self.left_groups()]:
            yield f"{count(len(left), 'group')} not synced: {some(left, 3)}"

    def _standing_still(self) -> list[str]:
        oldest = self._oldest()
        return [str(one) for one in self._paused if self._partitions[one].at >= oldest]

    def left_groups(self) -> list[GroupSample]:
        """Consumer groups that are not synced, by the newest sample of each."""
        return [one for one in self.groups() if one.state in self._left_states]

    def partitions(self, topic: str | None = None) -> list[PartitionSample]:
        """The newest sample of each partition that is still spoken of, in order; times by the flow's own axis."""
        keys = self._partitions.keys() if topic is None else self._by_topic.get(topic, set())
        return self._fresh(sorted(keys))

    def groups(self) -> list[GroupSample]:
        """The same of its consumer groups."""
        oldest = self._oldest()
        return [one for _, one in sorted(self._groups.items()) if one.at >= oldest]

    def _oldest(self) -> float:
        newest = max(self._words.values(), key=lambda word: word.at, default=None)
        return float("-inf") if newest is None else newest.at - _MISSED * 1000 * newest.sample.every

    def topics(self) -> list[TopicNow]:
        """The topics that flow now, in order of their names."""
        if self._topics is None:
            self._topics = tuple(self._topics_now())
        return list(self._topics)

    def _topics_now(self) -> Iterable[TopicNow]:
        groups: dict[str, list[str]] = {}
        for group in self.groups():
            for topic in group.topics:
                groups.setdefault(topic, []).append(group.group)
        rows = ((name, self._fresh(self._by_topic[name])) for name in sorted(self._by_topic))
        return (self._topic(name, of, tuple(groups.get(name, ()))) for name, of in rows if of)

    def sources_of(self, remote: str) -> list[str]:
        """The topics that flow now into the remote one of this name."""
        rows = ((name, self._fresh(of)) for name, of in self._by_topic.items())
        return sorted(name for name, of in rows if of and of[0].remote == remote)

    def _fresh(self, partitions: Iterable[TopicPartition]) -> list[PartitionSample]:
        oldest = self._oldest()
        return [one for one in map(self._partitions.__getitem__, partitions) if one.at >= oldest]

    def _topic(self, name: str, rows: Sequence[PartitionSample], groups: tuple[str, ...]) -> TopicNow:
        meta = self._meta.get(name)
        lags = [one.lag_records for one in rows]
        seconds = [one.lag_seconds for one in rows]
        return TopicNow(
            name,
            rows[0].remote,
            name if meta is None else meta.original,
            len(rows),
            groups,
            sum(one.state == PAUSED for one in rows),
            None if None in lags else sum(filter(None, lags)),
            None if None in seconds else max((one for one in seconds if one is not None), default=None),
        )

    def line(self, metric: Metric, span: Span, topics: Sequence[str] | None = None) -> Line:
        """A metric in the span: of each of these source topics, or of the whole flow as the only key.

        Checkpoint latency of a topic is that of the groups which read it, on all of their topics.
        """
        keys: Sequence[str | None] = [None] if topics is None else topics
        if metric is Metric.REPLICATION_LATENCY:
            return self._latencies.line(span, keys)
        if metric is Metric.CHECKPOINT_LATENCY:
            return self._checkpoints.line(span, keys)
        return self._traffic.line(metric, span, keys)

    @property
    def size(self) -> int:
        """Bytes that its figures take."""
        return self._seen.size + self._traffic.size + self._latencies.size + self._checkpoints.size

    def prune(self, now: int) -> bool:
        """Forget drivers, partitions and groups of which nothing was heard within the window; whether any was."""
        oldest = now - WINDOW_MS
        before = len(self._words) + len(self._groups) + len(self._partitions)
        self._words = {name: word for name, word in self._words.items() if word.at >= oldest}
        self._groups = {name: one for name, one in self._groups.items() if one.at >= oldest}
        for partition in [key for key, one in self._partitions.items() if one.at < oldest]:
            self._forget(partition)
        is_less = len(self._words) + len(self._groups) + len(self._partitions) < before
        if is_less:
            self._topics = None
        return is_less


@dataclass
class _LagSum:
    """The lag of several partitions; where that of one is not known, neither is their sum."""

    known: int = 0
    unknown: int = 0

    def add(self, lag: int | None, sign: int) -> None:
        if lag is None:
            self.unknown += sign
        else:
            self.known += sign * lag

    @property
    def value(self) -> float:
        return math.nan if self.unknown else float(self.known)


_ENDED = (FlowState.WAITING, FlowState.FAILED, FlowState.STOPPED)


def has_figures(sample: Sample) -> bool:
    """Whether it tells figures of the flow: a driver that waits speaks beside the one that runs it, and has none."""
    return not isinstance(sample, FlowSample) or sample.state not in _ENDED


def moment_of(at: int, heard: Hearing) -> int:
    """Where a sample lies in time: by the driver's clock, unless that is wrong.

    Where it is more than `SKEW_MS` away from the record's own time, which may be the cluster's, that one counts. What
    then still lies further than that in our future, or came just now and is said to be older, counts as of now.
    """
    if heard.stamped is not None and abs(at - heard.stamped) > SKEW_MS:
        at = heard.stamped
    ahead = at - heard.now
    return heard.now if ahead > SKEW_MS or (heard.is_live and -ahead > SKEW_MS) else at


def health_code(now: FlowNow) -> int:
    """As Cloudera Manager counts the herder of a flow: 0 healthy, 1 unknown, 2 starting, 3 interrupted, 4 failed."""
    return 1 if now.state is None else HEALTH_CODES[now.state]


def _said(sample: FlowSample) -> str:
    text = sample.sentence or sample.reason
    return sample.state.value if text is None else f"{sample.state.value}: {text}"


def _status(word: _Word) -> DriverStatus:
    sample = word.sample
    return DriverStatus(
        _driver(sample.driver), word.at, sample.every, sample.state, since=sample.since, is_last=sample.is_last
    )


def _driver(name: str) -> DriverId:
    try:
        return DriverId.parse(name)
    except ValueError:
        return DriverId(name, 0, 0)
