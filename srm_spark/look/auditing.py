"""The driver's own verification, again and again: what a flow has copied since the last one, and what was not right.

Beside the flow and never in its way: by clients of its own, within a limit, and what fails is told once.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace

from srm_spark.config.settings import FlowSettings
from srm_spark.core.audit import (
    Audit,
    Reached,
    audit_key,
    audited_topic,
    decode_audit,
    decode_reached,
    encode_audit,
    encode_reached,
)
from srm_spark.core.cluster import Cluster, ControlRecord, Writer
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.news import News
from srm_spark.core.verification import Verdict
from srm_spark.core.wording import count
from srm_spark.errors import SrmError, TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.periodic import Periodic, Task
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.flow.topics.followed import FollowedTopic
from srm_spark.flow.topics.internal_topics import ensure_topic, status_topic
from srm_spark.look.verify import Verification, Verified, verify

log = logging.getLogger(__name__)

_TICK_SECONDS = 5.0
"""How soon it is seen that the flow runs here, or does no more."""
_REST = 1.0
"""After an audit, as long as it took: at most half of the time is for them, whatever the interval."""
_KEEP_SECONDS = 30.0
"""How often it is kept how far an audit has come: the next one goes on there, however this one ends."""


class _NotOursAnyMore(Exception):
    """The flow does not run here now: what is looked at is somebody else's."""


@dataclass
class _Before:
    """How far the partitions were looked at. Safe to use from several threads."""

    keep: Callable[[_Before], None]
    """Called every now and then, by one thread at a time."""
    clock: Callable[[], float]
    kept_at: float
    topics: dict[str, Reached] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    """Since it was kept."""
    records: int = 0
    """That were looked at since then, and right."""
    uncovered: int = 0
    """Source offsets there of which the map knows nothing."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begins(self, ids: Mapping[str, str]) -> dict[TopicPartition, int]:
        """Where to begin in topics that are still the ones with these ids."""
        return {
            TopicPartition(topic, number): end
            for topic, reached in self._same(ids).items()
            for number, end in reached.ends.items()
        }

    def again(self, ids: Mapping[str, str]) -> dict[TopicPartition, tuple[OffsetRange, ...]]:
        """What to look at again in these."""
        return {
            TopicPartition(topic, number): stretches
            for topic, reached in self._same(ids).items()
            for number, stretches in reached.again.items()
        }

    def _same(self, ids: Mapping[str, str]) -> dict[str, Reached]:
        return {topic: reached for topic, reached in self.topics.items() if ids.get(topic) == reached.topic_id}

    def took(self, found: Verified, topic_id: str | None) -> None:
        """Go on behind it, unless something could not be looked at; what was not right is looked at again."""
        topic, number = found.partition
        if topic_id is None or found.doubts is None or _unchecked(found):
            return
        with self.lock:
            self.records += found.checked.equal + found.checked.explained.total()
            self.uncovered += sum(hole.end - hole.start for hole in found.uncovered)
            known = self.topics.get(topic)
            if known is None or known.topic_id != topic_id:
                known = Reached(topic_id, {})
            again = {one: stretches for one, stretches in known.again.items() if one != number}
            if found.doubts:
                again[number] = found.doubts
            reached = Reached(topic_id, {**known.ends, number: found.source.end}, again)
            if reached != known:
                self.topics[topic] = reached
                self.changed.add(topic)
            if self.clock() - self.kept_at >= _KEEP_SECONDS:
                self.kept_at = self.clock()
                self.keep(self)


class Auditor:
    """Of one flow of one driver."""

    def __init__(
        self,
        settings: FlowSettings,
        status: Callable[[], FlowStatus],
        tell: Callable[[Audit], None],
        reach: Connect = connect,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`tell` is called with what is known, whenever that is something else. Nothing is asked of any cluster yet."""
        self._settings, self._status, self._tell, self._reach, self._clock = settings, status, tell, reach, clock
        self._seconds = settings.audit.seconds or 0.0
        self._audit = Audit(self._seconds, self._now())
        self._is_known = False
        """Whether that is what drivers of before have found, and it too."""
        self._not_before = 0.0
        self._over = threading.Event()
        self._clusters: Clusters | None = None
        self._writer: Writer | None = None
        self._news = News()
        self._task: Task | None = None

    def start(self, tasks: Periodic) -> None:
        """Begin as one of `tasks`; nothing where no interval is set."""
        if self._settings.audit.seconds is not None:
            self._told(self._audit)
            every = min(self._seconds, _TICK_SECONDS)
            self._task = tasks.every(every, f"audit {self._settings.flow}", self.look, slow=math.inf)

    def stop(self) -> None:
        """Look no more; what it is at ends soon, and is kept as far as it has come."""
        self._over.set()
        if self._task is not None:
            self._task.stop()

    def look(self) -> None:
        """Audit the flow, if it runs here and an audit is due; what goes wrong is told and raised never."""
        if not self._is_ours:
            self._is_known = False  # whoever has the flow meanwhile finds something else
            return
        began = self._clock()
        try:
            before = self._known()
            if before is None:
                return
            self._look(before)
            self._news.is_new("failure", None)
            self._not_before = self._clock() + _REST * (self._clock() - began)
        except _NotOursAnyMore:
            self._is_known = False
        except Exception as error:  # whatever it is, the flow has nothing to do with it
            self._not_before = self._clock() + self._seconds
            self._told(replace(self._audit, failed=str(error) or repr(error)))
            if self._news.is_new("failure", str(error)):
                text = "flow=%s audit came to no end, the flow runs on: %s"
                log.warning(text, self._settings.flow, error, exc_info=not isinstance(error, SrmError))

    @property
    def _is_ours(self) -> bool:
        return not self._over.is_set() and self._status().state is FlowState.RUNNING

    def _known(self) -> _Before | None:
        """How far it was looked at, by whichever driver, if an audit is due."""
        # The same for all audits: one that is made anew each time would leave its clients to be collected.
        self._clusters = self._clusters or self._reach(self._settings)
        if self._is_known and not self._is_due:
            return None
        before = _Before(self._keep, self._clock, self._clock())
        kept = self._read(before, self._clusters.target)
        if not self._is_known:
            self._is_known = True
            kept = kept or Audit(self._seconds, 0)
            self._told(replace(kept, seconds=self._seconds, since=self._now(), failed=None))
        return before if self._is_due else None

    @property
    def _is_due(self) -> bool:
        newest = self._audit.ended
        is_time = newest is None or self._clock() >= newest / 1000 + self._seconds
        return is_time and self._clock() >= self._not_before

    def _look(self, before: _Before) -> None:
        assert self._clusters is not None
        clusters, there = self._clusters, self._clusters.source.topics()
        try:
            found = verify(
                self._settings,
                lambda topic: topic in there,
                rate=self._settings.audit.rate,
                before=before,
                over=self._over,
                say=self._go_on,
                reach=lambda _: clusters,
            )
            self._go_on()
            self._told(self._with(found))
        finally:
            if self._status().state is FlowState.RUNNING:  # else somebody else may have come further
                with before.lock:
                    self._keep(before)

    def _read(self, before: _Before, target: Cluster) -> Audit | None:
        """What lies in the status topic: what was found, and how far it was looked at."""
        name, role = self._settings.status_topic, f"{self._settings.flow}|audit-reader"
        if name not in target.topics():
            return None
        found: Audit | None = None
        with closing(FollowedTopic(target, name, role, TargetUnavailable, target.timeout)) as topic:
            for record in topic.new_records():
                match audited_topic(record.key):
                    case (str(about),):
                        before.topics.pop(about, None)
                        if (reached := decode_reached(record.value)) is not None:
                            before.topics[about] = reached
                    case (None,):
                        found = decode_audit(record.value)
        return found

    def _keep(self, before: _Before) -> None:
        """Write how far it has come, and what was found; nothing of it is counted twice."""
        if not before.changed and self._audit.ended is None:
            return
        assert self._clusters is not None
        target, name, at = self._clusters.target, self._settings.status_topic, self._now()
        uncovered = self._audit.uncovered + before.uncovered
        audit = replace(self._audit, records=self._audit.records + before.records, uncovered=uncovered)
        values = {audit_key(): encode_audit(replace(audit, failed=None))}
        values |= {audit_key(topic): encode_reached(before.topics[topic]) for topic in sorted(before.changed)}
        if self._writer is None:
            ensure_topic(target, status_topic(self._settings))
            self._writer = target.writer(f"{self._settings.flow}|audit", TargetUnavailable)
        self._writer.write(ControlRecord(name, key, value, partition=0, timestamp=at) for key, value in values.items())
        before.records = before.uncovered = 0
        before.changed.clear()
        self._told(audit)

    def _with(self, found: Verification) -> Audit:
        differing = [one for one in found.partitions if one.verdict is Verdict.DIFFERENT]
        left = [f"{one.partition}: {why}" for one in found.partitions if (why := _unchecked(one)) is not None]
        more = f", and {len(left) - 1} more" if len(left) > 1 else ""
        return replace(
            self._audit,
            ended=self._now(),
            differences=sum(one.checked.differences.total() for one in differing),
            first=_first(differing[0]) if differing else None,
            unchecked=f"{left[0]}{more}" if left else None,
            failed=None,
        )

    def _go_on(self, *_: object) -> None:
        if not self._is_ours:
            raise _NotOursAnyMore

    def _told(self, audit: Audit) -> None:
        self._audit = audit
        if self._news.is_new("differences", audit.first):
            what = f"copies differ: {audit.differences}, the first {audit.first}; srm-control verify shows all"
            log.error("flow=%s %s", self._settings.flow, what)
        self._tell(audit)

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _unchecked(one: Verified) -> str | None:
    """Why something of a partition could not be looked at; None also where others have copied it."""
    if one.unchecked is not None or not one.checked.unknown or one.uncovered:
        return one.unchecked
    return f"the map knows nothing of {count(one.checked.unknown, 'record')}"


def _first(one: Verified) -> str:
    kinds = ", ".join(f"{number} {kind.value}" for kind, number in one.checked.differences.most_common())
    finding = one.checked.findings[0]
    sides = (("source", finding.source), ("target", finding.target))
    places = ", ".join(f"{side} offset {offset}" for side, offset in sides if offset is not None)
    return f"{one.partition}: {kinds}; {places}: {finding.what}"
