"""Checkpoints: where the source's consumer groups would go on on the target, in MirrorMaker 2's topic and format.

They are monotonic for a group that does not rewind, and never tombstones (`MirrorCheckpointTask`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from srm_spark.core.checkpoints import GroupPartition, Translation, TranslationStatus, by_checkpoint, is_news
from srm_spark.core.cluster import Committed, ControlRecord
from srm_spark.core.codec import decode_checkpoint, encode_checkpoint
from srm_spark.core.filters import NameFilter
from srm_spark.core.model import Checkpoint, TopicPartition
from srm_spark.errors import CheckpointFailed, CodecError, TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.groups.positions import GroupPosition, Positions
from srm_spark.flow.topics.followed import FollowedTopic

_WRITE_SECONDS = 5.0


class Checkpoints:
    """The checkpoints topic of one flow: what it says, and what has to be added."""

    def __init__(self, clusters: Clusters) -> None:
        settings = clusters.settings
        self._clusters = clusters
        self._topic = clusters.policy.checkpoints_topic(settings.flow.source)
        role, timeout = f"{settings.flow}|checkpoints", settings.admin_timeout_seconds
        self.last: dict[GroupPartition, Checkpoint] = {}
        """The newest checkpoint of each group and partition, whoever wrote it."""
        self._followed = FollowedTopic(
            clusters.target, self._topic, role, TargetUnavailable, timeout, forget=self.last.clear
        )
        # While they are written nothing else of the flow's state is: they are there again with the next round.
        self._writer = clusters.own_writer("checkpoints", CheckpointFailed, seconds=_WRITE_SECONDS)

    def refresh(self) -> None:
        """Take in what the topic says; records that are no checkpoints are passed over."""
        for record in self._followed.new_records():
            try:
                checkpoint = decode_checkpoint(record.key, record.value)
            except CodecError:
                continue
            self.last[checkpoint.group, checkpoint.partition] = checkpoint

    def positions(self, groups: NameFilter) -> Positions:
        """Where groups stood when the source was asked last: all there is once it is gone."""
        checkpoints = [checkpoint for (group, _), checkpoint in sorted(self.last.items()) if groups.matches(group)]
        ends = self._clusters.target.end_offsets({checkpoint.partition for checkpoint in checkpoints}, waits=False)
        return Positions(tuple(self._position(one, ends.get(one.partition, -1)) for one in checkpoints), {})

    def completed(self, positions: Positions) -> Positions:
        """The same positions, with what the groups' own checkpoints know of those that the exact map does not.

        As of the last `refresh`.
        """
        completed = tuple(
            replace(
                position, translation=by_checkpoint(position.translation, self._last(position), position.target_end)
            )
            for position in positions.known
        )
        return replace(positions, known=completed)

    def looked_up(self, positions: Positions) -> Positions:
        """The same for who asks once: the topic is read first, and may be missing."""
        if self._topic not in self._clusters.target.topics():
            return positions
        self.refresh()
        return self.completed(positions)

    def write(self, positions: Positions) -> tuple[Checkpoint, ...]:
        """Write what is news; raises CheckpointFailed where the topic refuses it."""
        news = tuple(self._news(positions))
        now = int(time.time() * 1000)
        self._clusters.require_lease()
        self._writer.write(
            ControlRecord(self._topic, key, value, partition=0, timestamp=now)
            for key, value in map(encode_checkpoint, news)
        )
        self.last.update({(checkpoint.group, checkpoint.partition): checkpoint for checkpoint in news})
        return news

    def close(self) -> None:
        """Stop reading."""
        self._followed.close()

    def _last(self, position: GroupPosition) -> Checkpoint | None:
        return self.last.get((position.group, position.remote))

    def _position(self, said: Checkpoint, target_end: int) -> GroupPosition:
        is_there = said.downstream <= target_end
        status = TranslationStatus.CHECKPOINT if is_there else TranslationStatus.BEYOND
        translation = Translation(status, said.upstream, said.downstream if is_there else None)
        committed = Committed(said.upstream, said.metadata)
        return GroupPosition(
            said.group, self._upstream(said.partition), said.partition, committed, translation, target_end
        )

    def _upstream(self, remote: TopicPartition) -> TopicPartition:
        """The partition of the source: the topic that was copied, or the copy that was translated back."""
        flow, policy = self._clusters.settings.flow, self._clusters.policy
        topic = policy.upstream_topic(remote.topic) if policy.topic_source(remote.topic) == flow.source else None
        return TopicPartition(topic or policy.format_remote_topic(flow.target, remote.topic), remote.partition)

    def _news(self, positions: Positions) -> Iterable[Checkpoint]:
        for position in positions.known:
            checkpoint = position.checkpoint
            if checkpoint is None:
                continue
            last = self._last(position)
            if last is not None and _is_of_another_log(last, checkpoint, position):
                last = None  # the remote topic was created anew: what was said about the old one binds nobody
            if is_news(checkpoint, last):
                yield checkpoint


def _is_of_another_log(last: Checkpoint, checkpoint: Checkpoint, position: GroupPosition) -> bool:
    """Whether it cannot have been true of the remote topic of now: copies lie in the order of their records."""
    is_exact = position.translation.status is TranslationStatus.EXACT
    is_lower = last.upstream <= checkpoint.upstream and checkpoint.downstream < last.downstream
    return last.downstream > position.target_end or (is_exact and is_lower)
