"""Heartbeats: one small record per interval on the target, so that its readers know which clusters flow into it.

Written whether data flows or not, and for every possible pair of clusters: a flow `A->B` needs `heartbeats` on A, which
the pair `B->A` writes, to be seen on B (mirrormaker2.md section 6).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from srm_spark.codec import encode_heartbeat
from srm_spark.config.settings import ClusterSettings, HeartbeatSettings
from srm_spark.errors import FlowError, TargetUnavailable
from srm_spark.flow.internal_topics import InternalTopic, ensure_topic
from srm_spark.kafka.cluster import Cluster, TopicSpec
from srm_spark.kafka.control import ControlRecord, ControlWriter
from srm_spark.model import Heartbeat
from srm_spark.policy import HEARTBEATS_TOPIC

log = logging.getLogger(__name__)


class Heartbeats:
    """The heartbeats of one ordered pair of clusters."""

    def __init__(self, settings: HeartbeatSettings, target: ClusterSettings) -> None:
        self._settings = settings
        self._is_ready = False
        flow = settings.flow
        # A beat that is late is worth nothing: the next one comes soon.
        timeout = max(5.0, settings.interval_seconds)
        self._cluster = Cluster(target, TargetUnavailable, timeout=timeout, role=f"{flow}|heartbeats-admin")
        self._writer = ControlWriter(target, {}, f"{flow}|heartbeats", TargetUnavailable, timeout)

    def beat(self) -> None:
        """Write one heartbeat; makes the topic the first time. Raises TargetUnavailable."""
        if not self._is_ready:
            replication = self._settings.replication_factor
            spec = TopicSpec(HEARTBEATS_TOPIC, 1, replication, {"cleanup.policy": "compact"})
            ensure_topic(self._cluster, InternalTopic(spec))
            self._is_ready = True
        flow, now = self._settings.flow, int(time.time() * 1000)
        key, value = encode_heartbeat(Heartbeat(flow.source, flow.target, now))
        try:
            self._writer.write([ControlRecord(HEARTBEATS_TOPIC, key, value, partition=0, timestamp=now)])
        except TargetUnavailable:
            self._is_ready = False  # the topic may be gone
            raise


def telling(settings: HeartbeatSettings, beat: Callable[[], None]) -> Callable[[], None]:
    """`beat`, which logs why it failed instead of raising it: once per change, not once per second."""
    last: list[str] = []
    # Of a pair that nobody enabled nobody expects a word.
    level = logging.WARNING if settings.enabled else logging.DEBUG

    def beat_and_tell() -> None:
        try:
            beat()
            last.clear()
        except FlowError as error:
            if last != [str(error)]:
                log.log(level, "flow=%s no heartbeat: %s", settings.flow, error)
            last[:] = [str(error)]

    return beat_and_tell
