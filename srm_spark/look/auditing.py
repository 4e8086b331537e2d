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
from srm_spark.core.cluster import Cluster, ControlRecord
from srm_spark.core.model import TopicPartition
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

_REST = 1.0
"""After an audit, as long as it took: at most half of the time is for them, whatever the interval."""


class _NotOursAnyMore(Exception):
    """The flow does not run here now: what is looked at is somebody else's."""


@dataclass
class _Before:
    """How far the partitions were looked at. Safe to use from several threads."""

    topics: dict[str, Reached] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    records: int = 0
    """That were looked at now, of partitions where everything was right."""
    uncovered: int = 0
    """Source offsets there of which the map knows nothing."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begins(self, ids: Mapping[str, str]) -> dict[TopicPartition, int]:
        """Where to begin in topics that are still the ones with these ids."""
        return {
            TopicPartition(topic, number): end
            for topic, reached in self.topics.items()
            if ids.get(topic) == reached.topic_id
            for number, end in reached.ends.items()
        }

    def took(self, found: Verified, topic_id: str | None) -> None:
        """Go on behind it, unless something was not right, or could not be looked at."""
        topic, number = found.partition
        if topic_id is None or found.verdict is Verdict.DIFFERENT or _unchecked(found):
            return
        with self._lock:
            self.records += found.checked.equal + found.checked.explained.total()
            self.uncovered += sum(hole.end - hole.start for hole in found.uncovered)
            known = self.topics.get(topic)
            ends = known.ends if known is not None and known.topic_id == topic_id else {}
            if ends.get(number) != found.source.end:
                self.topics[topic] = Reached(topic_id, {**ends, number: found.source.end})
                self.changed.add(topic)


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
        self._audit = Audit(settings.audit.seconds or 0.0, self._now())
        self._is_known = False
        self._clusters: Clusters | None = None
        self._news = News()
        self._task: Task | None = None

    def start(self, tasks: Periodic) -> None:
        """Begin as one of `tasks`; nothing where no interval is set."""
        seconds = self._settings.audit.seconds
        if seconds is not None:
            self._told(self._audit)
            name = f"audit {self._settings.flow}"
            self._task = tasks.every(seconds, name, self.look, rest=_REST, slow=math.inf)

    def stop(self) -> None:
        """Look no more; what it is at comes to nothing."""
        if self._task is not None:
            self._task.stop()

    def look(self) -> None:
        """Audit the flow once, if it runs here; what goes wrong is told and raised never."""
        if not self._is_ours:
            return
        try:
            self._look()
            self._news.is_new("failure", None)
        except _NotOursAnyMore:
            return
        except Exception as error:  # whatever it is, the flow has nothing to do with it
            self._told(replace(self._audit, failed=str(error) or repr(error)))
            if self._news.is_new("failure", str(error)):
                text = "flow=%s audit came to no end, the flow runs on: %s"
                log.warning(text, self._settings.flow, error, exc_info=not isinstance(error, SrmError))

    @property
    def _is_ours(self) -> bool:
        is_over = self._task is not None and self._task.is_over
        return not is_over and self._status().state is FlowState.RUNNING

    def _look(self) -> None:
        settings = self._settings
        # The same for all audits: one that is made anew each time would leave its clients to be collected.
        clusters = self._clusters = self._clusters or self._reach(settings)
        target = clusters.target
        before = self._known(target)
        rate = settings.audit.rate
        found = verify(settings, lambda _: True, rate=rate, before=before, say=self._go_on, reach=lambda _: clusters)
        self._go_on()
        audit = self._with(found, before)
        values = {audit_key(): encode_audit(audit)}
        values |= {audit_key(topic): encode_reached(before.topics[topic]) for topic in sorted(before.changed)}
        ensure_topic(target, status_topic(settings))
        writer = target.writer(f"{settings.flow}|audit", TargetUnavailable)
        name, at = settings.status_topic, self._now()
        writer.write(ControlRecord(name, key, value, partition=0, timestamp=at) for key, value in values.items())
        self._told(audit)

    def _known(self, target: Cluster) -> _Before:
        """How far it was looked at, by whichever driver; what was found by others before is taken once."""
        before, name = _Before(), self._settings.status_topic
        if name not in target.topics():
            return before
        role = f"{self._settings.flow}|audit-reader"
        with closing(FollowedTopic(target, name, role, TargetUnavailable, target.timeout)) as topic:
            for record in topic.new_records():
                match audited_topic(record.key):
                    case (str(about),):
                        reached = decode_reached(record.value)
                        before.topics.pop(about, None)
                        if reached is not None:
                            before.topics[about] = reached
                    case (None,) if (audit := decode_audit(record.value)) is not None and not self._is_known:
                        self._audit = replace(audit, seconds=self._audit.seconds, since=self._audit.since)
        self._is_known = True
        return before

    def _with(self, found: Verification, before: _Before) -> Audit:
        differing = [one for one in found.partitions if one.verdict is Verdict.DIFFERENT]
        left = [f"{one.partition}: {why}" for one in found.partitions if (why := _unchecked(one)) is not None]
        more = f", and {len(left) - 1} more" if len(left) > 1 else ""
        return replace(
            self._audit,
            ended=found.ended,
            records=self._audit.records + before.records,
            differences=sum(one.checked.differences.total() for one in differing),
            first=_first(differing[0]) if differing else None,
            uncovered=self._audit.uncovered + before.uncovered,
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
