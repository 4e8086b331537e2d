"""Remote topics under another name than before: the replication policy of a flow was changed between two runs.

Kafka cannot rename a topic, so the copies stay where they are and somebody has to say what becomes of the flow. The
recorded id of the remote topic tells where that is: a topic of the target that has it under another name.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace

from srm_spark.core.model import LogIdentity, TopicPartition
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.starts import Origin, Start, Starts, flowing
from srm_spark.flow.topics.progress import Position

log = logging.getLogger(__name__)

KEY = "target.renamed.policy"
RECOPY = "recopy"


class Renames:
    """The renamed topics of one run of a flow: a policy changes between two runs only."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._seen: set[str] = set()
        """Topics that were looked at: others may come to the flow at any time."""
        self._going_on: dict[str, str] = {}
        self.held: dict[str, str] = {}
        """Source topic → why it waits."""

    def look(self, topics: Collection[str], positions: Mapping[TopicPartition, Position]) -> None:
        """Find them, before anything is made on the target."""
        new = set(topics) - self._seen
        if not new:
            return
        self._seen |= new
        flow, policies = self._clusters.settings.flow, self._clusters.settings.policies
        for topic, before in find_renames(self._clusters, new, positions).items():
            if policies.stops(KEY, topic):
                now = self._clusters.policy.format_remote_topic(flow.source, topic)
                self.held[topic] = (
                    f"its copies lie in {before} on {flow.target} and would go to {now}: the replication policy is "
                    f"another one; srm-control plan says what each way costs, then set {KEY}=recopy or resume, or the "
                    "old policy"
                )
            else:
                self._going_on[topic] = before

    @property
    def going_on(self) -> Collection[str]:
        """Source topics that are copied to the new name from this generation on."""
        return self._going_on.keys()

    def begin(self, starts: Starts) -> Starts:
        """Set where these topics start, with nothing known of what lies under the new name."""
        renamed = {p: self._renamed(p, start) for p, start in flowing(starts).items() if p.topic in self._going_on}
        self._going_on.clear()
        return {**starts, **renamed}

    def _renamed(self, partition: TopicPartition, start: Start) -> Start:
        settings, before = self._clusters.settings, self._going_on[partition.topic]
        is_anew = settings.policies.defaults.get(KEY) == RECOPY
        offset = start.source_log.start if is_anew else start.position.next_offset
        text = "flow=%s partition=%s the policy has another name for its copies: from offset %s on they go there, %s"
        log.warning(text, settings.flow, partition, offset, f"those so far stay in {before}")
        position = replace(start.position, next_offset=offset, target_end=None, logs=LogIdentity())
        return replace(start, position=position, origin=Origin.RENAMED, is_recorded=False)


def find_renames(
    clusters: Clusters, topics: Collection[str], positions: Mapping[TopicPartition, Position]
) -> dict[str, str]:
    """Source topic → the topic of the target that has its copies, where the policy names another one now."""
    recorded = {p.topic: known.logs.remote_id for p, known in positions.items() if known.logs.remote_id is not None}
    names = {topic: clusters.policy.format_remote_topic(clusters.settings.flow.source, topic) for topic in topics}
    asked = {topic: names[topic] for topic in recorded if topic in names}
    now = clusters.target.topic_ids(set(asked.values()))
    lacking = {topic: recorded[topic] for topic, name in asked.items() if now.get(name) != recorded[topic]}
    if not lacking:
        return {}
    by_id = {topic_id: name for name, topic_id in clusters.target.topic_ids(clusters.target.topics()).items()}
    # One that the target did not know a moment ago may still be where it was.
    return {topic: name for topic, found in lacking.items() if (name := by_id.get(found, names[topic])) != names[topic]}
