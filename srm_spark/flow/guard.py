"""Whether the source is still what a batch takes it for: the same topic, and nothing deleted in front of us.

Spark reads on without a word when records vanish (`failOnDataLoss=false`, so that one topic cannot stop the others), so
topic ids and log starts are compared before a batch, and log starts once more after it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from srm_spark.config.settings import FlowSettings
from srm_spark.errors import SourceChanged, SourceUnavailable
from srm_spark.kafka.cluster import Cluster
from srm_spark.model import Flow, Hold, OffsetRange, TopicPartition

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checked:
    """What can be replicated of the ranges that were to be."""

    ranges: dict[TopicPartition, OffsetRange]
    lost: dict[TopicPartition, OffsetRange]
    """Deleted on the source before they were replicated; the partition goes on behind them."""
    holds: dict[TopicPartition, Hold]
    """The same where the policy is to stop."""


class SourceGuard:
    """Checks the source topics of one generation."""

    def __init__(self, settings: FlowSettings, topic_ids: Mapping[str, str]) -> None:
        self._settings = settings
        self._topic_ids = topic_ids
        self._source: Cluster | None = None

    def before(self, ranges: Mapping[TopicPartition, OffsetRange]) -> Checked:
        """Check before a batch. Raises SourceChanged when a topic was created anew."""
        self._compare_ids({partition.topic for partition in ranges})
        checked = Checked(dict(ranges), {}, {})
        for partition, first in self._cluster.first_offsets(ranges).items():
            start, end = ranges[partition]
            if first <= start:
                continue
            del checked.ranges[partition]
            if self._settings.policies.stops("source.truncated.policy", partition.topic):
                checked.holds[partition] = truncated(start, first)
                continue
            report_loss(self._settings.flow, partition, OffsetRange(start, first))
            checked.lost[partition] = OffsetRange(start, first)
            if first < end:
                checked.ranges[partition] = OffsetRange(first, end)
        return checked

    def after(self, starts: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, OffsetRange]:
        """What was deleted while it was read, of gaps at the start of ranges; markers and compaction make gaps, too."""
        lost = {}
        for partition, first in self._cluster.first_offsets(starts).items() if starts else ():
            gap = starts[partition]
            if first > gap.start:
                lost[partition] = OffsetRange(gap.start, min(first, gap.end))
                report_loss(self._settings.flow, partition, lost[partition])
        return lost

    @property
    def _cluster(self) -> Cluster:
        if self._source is None:
            settings = self._settings
            role = f"{settings.flow}|guard"
            timeout = settings.admin_timeout_seconds
            self._source = Cluster(
                settings.source, SourceUnavailable, properties=settings.source_admin, timeout=timeout, role=role
            )
        return self._source

    def _compare_ids(self, topics: Iterable[str]) -> None:
        expected = {topic: self._topic_ids[topic] for topic in topics if topic in self._topic_ids}
        found = self._cluster.topic_ids(expected)
        changed = [topic for topic, topic_id in expected.items() if found.get(topic) != topic_id]
        if changed:
            what = "is gone" if changed[0] not in found else "was created anew"
            raise SourceChanged(f"flow {self._settings.flow}: topic {changed[0]} {what} on the source")


def truncated(start: int, first: int) -> Hold:
    """The hold of a partition whose next records were deleted."""
    return Hold(
        start,
        f"the source deleted offsets {start} to {first - 1} before they were replicated; "
        "set source.truncated.policy=resume to go on behind them",
    )


def report_loss(flow: Flow, partition: TopicPartition, lost: OffsetRange) -> None:
    """Say what is lost."""
    log.error(
        "flow=%s partition=%s offsets %s to %s are lost: the source deleted them before they were replicated",
        *(flow, partition, lost.start, lost.end - 1),
    )
