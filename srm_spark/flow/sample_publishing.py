"""Writes what a flow's meter counted to its metrics topic, and to `srm-meta.internal` which topics are copied to where.

Beside the flow and never in its way: by a client of its own, outside of any transaction, and what fails is told once.
Where nothing could be written, the next samples tell of that time, too, so that their sums are right.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TypeVar

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster, ControlRecord, Writer
from srm_spark.core.driver_status import DriverId
from srm_spark.core.metrics import META_TOPIC, TopicMeta, decode_meta, decode_meta_key, encode, encode_meta, meta_key
from srm_spark.core.model import Flow
from srm_spark.core.news import News
from srm_spark.errors import SrmError, TargetUnavailable
from srm_spark.flow.clusters import Connect
from srm_spark.flow.meter import Meter
from srm_spark.flow.periodic import Periodic, Task
from srm_spark.flow.sampling import Sampler, Samples
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.flow.topics.followed import FollowedTopic
from srm_spark.flow.topics.internal_topics import ensure_topic, meta_topic, metrics_topic

log = logging.getLogger(__name__)

_CALL_SECONDS = 5.0
"""Samples that come later are worth little: the next ones come soon."""
_SLOW_SECONDS = 60.0
"""One time that takes longer is told."""
_Thing = TypeVar("_Thing")
_TOGETHER = 10_000
"""So many records are written at a time: each time has `_CALL_SECONDS` of its own."""


class SamplePublisher:
    """Of one flow of one driver. `samples` are the newest, written or not; None before the first."""

    def __init__(
        self, settings: FlowSettings, driver: DriverId, status: Callable[[], FlowStatus], meter: Meter, reach: Connect
    ) -> None:
        """Nothing is asked of any cluster yet."""
        self._settings, self._status, self._meter, self._reach = settings, status, meter, reach
        self._every = settings.metrics.seconds
        self._driver = driver
        self.samples: Samples | None = None
        self._sampler: Sampler | None = None
        self._target: Cluster | None = None
        self._writer: Writer | None = None
        self._meta: MetaTopic | None = None
        self._is_made = self._has_written = False
        self._news = News()
        self._lock = threading.Lock()
        self._is_over = False
        self._task: Task | None = None

    def start(self, tasks: Periodic) -> None:
        """Begin as one of `tasks`; nothing where samples are switched off."""
        if self._every is not None:
            name = f"metrics {self._settings.flow}"
            self._task = tasks.every(self._every, name, self.write, slow=_SLOW_SECONDS)

    def write(self) -> None:
        """Write the samples of the period that ends now; what goes wrong is told once and raised never."""
        with self._lock:
            if not self._is_over:
                self._try(self._write)

    def end(self) -> None:
        """Write the last ones, but not where those before could not be written, or there were none."""
        if self._task is not None:
            self._task.stop()
        with self._lock:
            if not self._is_over and self._has_written:
                self._try(lambda: self._write(is_last=True))
            self._is_over = True
            with suppress(Exception):  # a client that cannot be closed has no way left to be told of
                if self._meta is not None:
                    self._meta.close()

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
            self._news.is_new("write", None)
            self._has_written = True
        except Exception as error:  # whatever it is, the flow has nothing to do with it
            self._is_made = self._has_written = False  # somebody may have deleted the topics
            if self._news.is_new("write", "failed"):  # once, however the words change
                text = "flow=%s metrics are not written, the flow runs on: %s"
                log.warning(text, self._settings.flow, error, exc_info=not isinstance(error, SrmError))

    def _write(self, *, is_last: bool = False) -> None:
        status, view, sampler = self._status(), self._meter.view(), self._make_sampler()
        self.samples = sampler.samples(status, view, self._meter.take(), is_last=is_last)
        has_begun = False
        try:
            target, writer = self._reached()
            name, at = metrics_topic(self._settings).spec.name, self.samples.flow.at
            for part in _in_parts(self.samples):
                writer.write(ControlRecord(name, *encode(sample), partition=0, timestamp=at) for sample in part)
                has_begun = True
        finally:
            if not has_begun:
                self._meter.put_back(self.samples.period)
        if status.state is FlowState.RUNNING and view.seen:
            meta = self._meta or MetaTopic(self._settings.flow, target, f"{self._settings.flow}|meta")
            self._meta = meta
            for records in _in_parts(meta.news(sampler.meta(view), at)):
                writer.write(records)

    def _make_sampler(self) -> Sampler:
        if self._sampler is None:  # a policy of the user's own may not load: then that is told, and not raised
            settings = self._settings
            self._sampler = Sampler(
                settings.flow, self._driver, self._every or 0.0, settings.policy(), settings.rpo_goal_seconds
            )
        return self._sampler

    def _reached(self) -> tuple[Cluster, Writer]:
        role = f"{self._settings.flow}|metrics"
        if self._target is None:
            self._target = self._reach(self._settings).target.beside(role, _CALL_SECONDS)
        if not self._is_made:
            for topic in (metrics_topic(self._settings), meta_topic(self._settings)):
                ensure_topic(self._target, topic)
            self._is_made = True
        if self._writer is None:
            self._writer = self._target.writer(role, TargetUnavailable, seconds=_CALL_SECONDS)
        return self._target, self._writer


class MetaTopic:
    """What `srm-meta.internal` says of one flow, whoever wrote it."""

    def __init__(self, flow: Flow, target: Cluster, role: str) -> None:
        """Nothing is read yet."""
        self._flow = flow
        self._known: dict[str, TopicMeta] = {}
        self._topic = FollowedTopic(
            target, META_TOPIC, role, TargetUnavailable, target.timeout, forget=self._known.clear
        )

    def news(self, meta: dict[str, TopicMeta], at: int) -> list[ControlRecord]:
        """What has to be written so that it says `meta` of the flow, and nothing else. Raises TargetUnavailable."""
        for record in self._topic.new_records():
            about = decode_meta_key(record.key)
            if about is None or about[0] != self._flow:
                continue
            said = decode_meta(record.key, record.value)
            if said is not None:
                self._known[said.topic] = said
            elif record.value is None:
                self._known.pop(about[1], None)
        new = [encode_meta(one) for topic, one in sorted(meta.items()) if self._known.get(topic) != one]
        gone = [(meta_key(self._flow, topic), None) for topic in sorted(self._known.keys() - meta.keys())]
        written: Sequence[tuple[bytes, bytes | None]] = [*new, *gone]
        return [ControlRecord(META_TOPIC, key, value, partition=0, timestamp=at) for key, value in written]

    def close(self) -> None:
        """Stop reading."""
        self._topic.close()


def _in_parts(things: Iterable[_Thing]) -> Iterator[list[_Thing]]:
    """As many together as may be on their way at a time."""
    left = iter(things)
    while part := list(islice(left, _TOGETHER)):
        yield part
