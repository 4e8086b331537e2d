"""An owner of a flow that is frozen between asking for its lease and writing: `python -m tests.broker.frozen_owner FILE
TOPIC`.

It stops itself there, as a machine that swaps or a debugger would. Once it is let go on, it writes what it was about to
write, and prints a line of what became of each: the error's name, or `taken`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from srm_spark.config import load_settings
from srm_spark.core.checkpoints import Translation, TranslationStatus
from srm_spark.core.cluster import Committed
from srm_spark.core.model import Interval, LogIdentity, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.core.quarantine import QuarantinedRecord, SourcePlace
from srm_spark.errors import FlowError
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.clusters import Clusters, connect
from srm_spark.flow.groups.checkpoints import Checkpoints
from srm_spark.flow.groups.positions import GroupPosition, Positions
from srm_spark.flow.recovery.before import Before
from srm_spark.flow.refused.quarantine import QuarantineWriter
from srm_spark.flow.topics.committer import committer_of
from srm_spark.flow.topics.internal_topics import (
    checkpoints_topic,
    ensure_topic,
    map_topic,
    progress_topic,
    quarantine_topic,
    syncs_topic,
)
from srm_spark.flow.topics.progress import ProgressTopic, note_run, state_writer_of

GROUP = "the group of one that was frozen"
WHY = "put aside by one that was frozen"


def main(path: Path, topic: str) -> None:
    """Own the flow, freeze, write."""
    clusters = connect(load_settings([path]).flows[0])
    settings = clusters.settings
    for topic_of in (progress_topic, map_topic, quarantine_topic):
        ensure_topic(clusters.target, topic_of(settings))
    ensure_topic(clusters.target, checkpoints_topic(clusters))
    ensure_topic(clusters.syncs_cluster, syncs_topic(clusters))
    progress = ProgressTopic(settings, clusters.target)
    progress.refresh()
    before = Before(clusters, lambda _: None)
    before.follow(progress.last_run, after_failure=False)
    before.begin(before.take_over({}), in_transactions=False)
    writers = (_commit, _checkpoint, _put_aside, _end)
    # Each of them has asked for the lease, and got it.
    late = [writer(replace(clusters, require_lease=lambda: None), TopicPartition(topic, 0)) for writer in writers]
    os.kill(os.getpid(), signal.SIGSTOP)
    for write in late:
        print(_outcome(write), flush=True)


def _outcome(write: Callable[[], object]) -> str:
    try:
        write()
    except FlowError as error:
        return type(error).__name__
    return "taken"


def _commit(clusters: Clusters, partition: TopicPartition) -> Callable[[], object]:
    detail = ProgressDetail(OffsetRange(0, 1), 1, (Interval(0, 0, 1),), logs=LogIdentity("of before", 0))
    return lambda: committer_of(clusters, {}, None).commit({partition: detail})


def _checkpoint(clusters: Clusters, partition: TopicPartition) -> Callable[[], object]:
    checkpoints = Checkpoints(clusters)
    remote = TopicPartition(clusters.policy.format_remote_topic(clusters.settings.flow.source, partition.topic), 0)
    to = Translation(TranslationStatus.EXACT, 1, 1)
    position = GroupPosition(GROUP, partition, remote, Committed(1), to, 1)
    return lambda: checkpoints.write(Positions((position,), {}))


def _put_aside(clusters: Clusters, partition: TopicPartition) -> Callable[[], object]:
    store = QuarantineWriter(clusters.settings, state_writer_of(clusters, None))
    place = SourcePlace(clusters.settings.flow, partition, None, 7)
    entry = QuarantinedRecord(place, Failure(FailureKind.TOO_LARGE, WHY), 0, False, 1, 0)
    return lambda: store.put([(entry, b"x")])


def _end(clusters: Clusters, _: TopicPartition) -> Callable[[], object]:
    return lambda: note_run(clusters, is_clean=True, is_fenced=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
