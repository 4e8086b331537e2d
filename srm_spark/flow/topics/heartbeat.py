"""Heartbeats: one small record per interval on the target, so that its readers know which clusters flow into it.

Written whether data flows or not, and for every possible pair of clusters: a flow `A->B` needs `heartbeats` on A, which
the pair `B->A` writes, to be seen on B (`MirrorHeartbeatConnector`).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from srm_spark.config.settings import ClusterSettings, HeartbeatSettings
from srm_spark.core.cluster import ControlRecord, TopicSpec
from srm_spark.core.codec import encode_heartbeat
from srm_spark.core.model import Flow, Heartbeat
from srm_spark.core.news import News
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.topics.internal_topics import InternalTopic, ensure_topic
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.control import ControlWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BeatGroup:
    """The pairs of clusters that beat into one target: they share its clients."""

    target: ClusterSettings
    pairs: tuple[HeartbeatSettings, ...]

    @property
    def interval_seconds(self) -> float:
        """How often it is to be asked to beat, so that every pair beats at its own pace."""
        return math.gcd(*(round(1000 * pair.interval_seconds) for pair in self.pairs)) / 1000


def beat_groups(
    heartbeats: Iterable[HeartbeatSettings], clusters: Mapping[str, ClusterSettings]
) -> dict[str, BeatGroup]:
    """Alias of the target → its group. Of 20 clusters there are 380 pairs, and 20 groups."""
    pairs: dict[str, list[HeartbeatSettings]] = {}
    for one in heartbeats:
        pairs.setdefault(one.flow.target, []).append(one)
    return {alias: BeatGroup(clusters[alias], tuple(targets)) for alias, targets in pairs.items()}


def due(pairs: Iterable[HeartbeatSettings], beaten: Mapping[Flow, float], now: float, tick: float) -> list[Flow]:
    """The pairs that are to beat: `beaten` says when each did last, on the clock of `now`, which is asked every `tick`.

    Seconds, all of them. A timer may be early by a little, and a beat that waited for the next tick would be late by
    a whole one.
    """
    return [
        pair.flow for pair in pairs if now - beaten.get(pair.flow, float("-inf")) > pair.interval_seconds - tick / 2
    ]


def heartbeats_topics(pairs: Collection[HeartbeatSettings]) -> list[InternalTopic]:
    """The topics into which pairs with one target beat; the largest replication factor counts."""
    factors = {
        topic: max(pair.replication_factor for pair in pairs if pair.topic == topic)
        for topic in sorted({pair.topic for pair in pairs})
    }
    return [
        InternalTopic(TopicSpec(topic, 1, factor, {"cleanup.policy": "compact"})) for topic, factor in factors.items()
    ]


class Heartbeats:
    """The heartbeats of one group, and the log's words about them."""

    def __init__(self, group: BeatGroup) -> None:
        self._group = group
        # A beat that is late is worth nothing: the next one comes soon.
        self._timeout, self._role = max(5.0, group.interval_seconds), f"{group.target.alias}|heartbeats"
        self._cluster: ClusterClient | None = None
        self._writer = ControlWriter(group.target, {}, self._role, TargetUnavailable, self._timeout)
        self._is_ready = False
        self._beaten: dict[Flow, float] = {}

    def beat(self) -> None:
        """Write one heartbeat of each pair that is due; makes the topic the first time. Raises FlowError."""
        now = time.monotonic()
        flows = due(self._group.pairs, self._beaten, now, self._group.interval_seconds)
        if not self._is_ready:
            if self._cluster is None:
                role = f"{self._role}-admin"
                self._cluster = ClusterClient(self._group.target, TargetUnavailable, timeout=self._timeout, role=role)
            for topic in heartbeats_topics(self._group.pairs):
                ensure_topic(self._cluster, topic)
            self._is_ready = True
        try:
            self._writer.write(_record(pair) for pair in self._group.pairs if pair.flow in flows)
        except TargetUnavailable:
            self._is_ready = False  # the topic may be gone
            raise
        self._beaten.update(dict.fromkeys(flows, now))


def _record(pair: HeartbeatSettings) -> ControlRecord:
    flow, now = pair.flow, int(time.time() * 1000)
    key, value = encode_heartbeat(Heartbeat(flow.source, flow.target, now))
    return ControlRecord(pair.topic, key, value, partition=0, timestamp=now)


def telling(group: BeatGroup, beat: Callable[[], None]) -> Callable[[], None]:
    """`beat`, which logs why it failed instead of raising it: once per change, not once per second."""
    news = News()
    # Of pairs that nobody enabled nobody expects a word.
    flows = ", ".join(str(pair.flow) for pair in group.pairs if pair.enabled)
    level = logging.WARNING if flows else logging.DEBUG

    def beat_and_tell() -> None:
        with news.failing(lambda error: log.log(level, "flow=%s no heartbeat: %s", flows, error)):
            beat()

    return beat_and_tell
