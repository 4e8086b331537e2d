"""A flow `A->B` between two clusters in memory: its starts are the product's own, its batches are copied by hand."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from srm_spark.config.load import load_settings
from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import ControlRecord
from srm_spark.core.last_run import UNKNOWN_RUN
from srm_spark.core.model import Interval, Loss, OffsetRange, PausedPartition, ProgressDetail, TopicPartition
from srm_spark.core.quarantine import QuarantinedRecord, SourcePlace, encode_content
from srm_spark.core.spreading import StandBy
from srm_spark.core.tail import TailRecord
from srm_spark.errors import LeaseLost, ProgressFailed, SourceUnavailable, TargetUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.assigning import Assigned, Assigner
from srm_spark.flow.clusters import Clusters, filters_of
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.recovery.before import Before
from srm_spark.flow.recovery.settling import Remotes, TargetEnds
from srm_spark.flow.refused.paused import PausedPartitions
from srm_spark.flow.refused.quarantine import QuarantineWriter
from srm_spark.flow.topics.commands import FlowCommands
from srm_spark.flow.topics.committer import committer_of
from srm_spark.flow.topics.internal_topics import ensure_topic, map_topic, quarantine_topic, syncs_topic
from srm_spark.flow.topics.progress import Position
from srm_spark.kafka.fencing import FencingToken
from srm_spark.kafka.lease import Permit
from tests.memory_cluster import MemoryCluster, MemoryLog, MemoryTopic

HERE, THERE = TopicPartition("t", 0), TopicPartition("A.t", 0)
FILE = """
clusters = A, B
A.bootstrap.servers = nowhere:1
B.bootstrap.servers = nowhere:2
replication.factor = 1
offset.storage.replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
A->B.enabled = true
A->B.topics = t
emit.checkpoints.enabled = false
sync.group.offsets.enabled = false
"""


def flow_settings(keys: Mapping[str, str] | None = None) -> FlowSettings:
    """Settings of the flow, with further keys."""
    written = dict(line.split(" = ", 1) for line in FILE.strip().splitlines())
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "srm.properties"
        file.write_text("\n".join(f"{key} = {value}" for key, value in {**written, **(keys or {})}.items()))
        return load_settings([file]).flows[0]


@dataclass
class MemoryLease:
    """The right to write a flow; `owner` is who has it instead."""

    owner: str | None = None
    group: str = "srm-A->B"
    permit: Permit | None = None
    note: str = ""
    held: bool = False
    others: list[StandBy] = field(default_factory=list)
    """Who stands by."""
    said: list[StandBy] = field(default_factory=list)
    copied_from: str = ""
    """The source cluster of who has it, or had it."""
    source: str = ""

    def other_owner(self) -> str | None:
        """Who has it."""
        return self.owner

    def await_free(self, over: threading.Event, seconds: float) -> None:
        """The test says when."""
        assert self.owner is not None
        over.wait(seconds)

    def stand_by(self, says: Callable[[], StandBy | None]) -> None:
        """What is said is asked for."""
        if (word := says()) is not None:
            self.said.append(word)

    def standbys(self) -> list[StandBy]:
        """Those of the test."""
        return self.others

    def copy_from(self, source: str) -> None:
        """What the next owner copies from."""
        self.source = source

    def acquire(self) -> bool:
        """Ours, unless somebody has it."""
        self.held = self.owner is None
        if self.held:
            self.copied_from = self.source or self.copied_from
        return self.held

    def is_held(self) -> bool:
        """Whether it is ours."""
        return self.held

    def is_certain(self) -> bool:
        """Whether it is."""
        return self.held

    def require(self) -> None:
        """Raises LeaseLost where somebody has taken it."""
        if self.owner is not None:
            raise LeaseLost(f"{self.group}: {self.owner} has it")

    def mark(self, note: str) -> None:
        """Leave a note."""
        self.note = note

    @property
    def why_lost(self) -> str:
        """Whose it is."""
        return f"{self.owner} has it"

    def release(self) -> None:
        """Give it back."""
        self.held = False


@dataclass
class MemoryShiftWriter:
    """All or nothing, while the lease is held."""

    target: MemoryCluster
    require_lease: Callable[[], None]

    def write(self, records: Iterable[ControlRecord]) -> None:
        """Raises LeaseLost."""
        together = list(records)
        self.require_lease()
        self.target.writer("offsets", ProgressFailed).write(together)


class MemoryFlow:
    """One topic of one partition; every record has a value of its own."""

    def __init__(self, settings: FlowSettings) -> None:
        self.settings = settings
        self.paused: PausedPartitions | None = None
        self.source = MemoryCluster("A", SourceUnavailable, reads_committed=settings.reads_committed)
        self.target = MemoryCluster("B", TargetUnavailable)
        self.source.held["t"] = MemoryTopic([MemoryLog()], {})
        self.lease: Any = MemoryLease()
        self.assigned: Assigned | None = None
        self.change(settings)

    def change(self, settings: FlowSettings) -> None:
        """Other settings from the next start on."""
        self.settings = settings
        self.clusters = Clusters(
            settings,
            self.source,
            self.target,
            settings.policy(),
            filters_of(settings),
            lambda: self.lease,
            require_lease=self.lease.require,
            make_shift_writer=self._shift_writer,
        )

    def _shift_writer(self, _: FencingToken | None, __: bool, require_lease: Callable[[], None]) -> MemoryShiftWriter:
        return MemoryShiftWriter(self.target, require_lease)

    def reach(self, _: FlowSettings) -> Clusters:
        """As `connect` does it: with no lease yet, and without lists."""
        return replace(self.clusters, filters=filters_of(self.settings), require_lease=lambda: None)

    @property
    def log(self) -> MemoryLog:
        """The source's."""
        return self.source.log(HERE)

    @property
    def remote(self) -> MemoryLog:
        """The copies'."""
        return self.target.log(THERE)

    def write(self, *values: bytes) -> None:
        """Let applications write records, all in one millisecond."""
        for value in values:
            self.log.append(TailRecord(0, 1_000, b"k", value))

    def start(self) -> Assigned:
        """What a driver does before its first batch."""
        self.recorded = Recorded(self.clusters)
        self.recorded.progress.ensure()
        ensure_topic(self.target, map_topic(self.settings))
        ensure_topic(self.clusters.syncs_cluster, syncs_topic(self.clusters))
        if self.settings.refused.parks:
            ensure_topic(self.target, quarantine_topic(self.settings))
        before = Before(self.clusters, lambda _: None, self._ends)
        self.recorded.progress.refresh()
        before.follow(UNKNOWN_RUN, after_failure=False)
        assigner = Assigner(self.clusters, self.recorded, self.lease, before, FlowCommands(self.clusters))
        self.assigned = assigner.assign(1)
        self.paused = assigner.paused
        return self.assigned

    def _ends(self, _: Clusters, remotes: Remotes, **__: object) -> TargetEnds:
        return self.target.end_offsets(remotes.values())

    def position(self) -> Position:
        """Where the next start goes on."""
        return self.start().assignment.starts[HERE]

    def pause(self) -> PausedPartition:
        """Why the next start leaves the partition out."""
        assert HERE not in self.start().assignment.starts
        assert self.paused is not None
        return self.paused.partitions[HERE]

    def losses(self) -> list[Loss]:
        """What is recorded as lost."""
        recorded = Recorded(self.clusters)
        recorded.refresh()
        return [loss for found in recorded.progress.take_totals().losses.values() for loss in found]

    def copy(
        self, count: int | None = None, start: int | None = None, aside: Collection[int] = ()
    ) -> tuple[OffsetRange, Sequence[Interval]]:
        """Copy what comes next, but for `aside`: the source offsets, and where copies lie. Nothing is recorded."""
        assert self.assigned is not None
        assert not self.assigned.blocked
        start = self.assigned.assignment.starts[HERE].next_offset if start is None else start
        end = self.log.end if count is None else min(self.log.end, start + count)
        intervals = []
        for record in self.log.read(OffsetRange(start, end), committed=self.settings.reads_committed):
            if record.offset not in aside:
                intervals.append(Interval(record.offset, self.remote.append(record), 1))
        return OffsetRange(start, end), intervals

    def park(self, offset: int) -> QuarantinedRecord:
        """Put a record aside, as a batch does."""
        record = self.log.records[offset]
        content = encode_content(record)
        place = SourcePlace(self.settings.flow, HERE, self.source.held["t"].topic_id, offset)
        why = Failure(FailureKind.TOO_LARGE, f"it takes {len(content)} bytes")
        parked = QuarantinedRecord(place, why, record.timestamp, False, len(content), 0)
        writer = self.target.writer("park", ProgressFailed)
        QuarantineWriter(self.settings, writer).put([(parked, content)])
        return parked

    def record(self, source: OffsetRange, intervals: Sequence[Interval], pause: PausedPartition | None = None) -> None:
        """Record what was copied, and go on behind it, or wait there."""
        assert self.assigned is not None
        logs = self.assigned.assignment.logs[HERE]
        detail = ProgressDetail(source, self.remote.end, tuple(intervals), pause, logs=logs)
        maps = {partition: found.copy() for partition, found in self.recorded.maps.maps.items()}
        committer_of(self.clusters, maps, None).commit({HERE: detail})

    def run(self) -> None:
        """A run of the driver that copies everything and ends."""
        self.start()
        self.record(*self.copy())

    def assert_once(self) -> None:
        """Every record that there ever was is copied once, in order, and nothing that the map says is wrong."""
        recorded = Recorded(self.clusters)
        recorded.refresh()
        written, copies = self.log.ever, self.remote.ever
        assert [one.value for one in copies.values()] == [one.value for one in written.values()]
        known = recorded.maps.maps[HERE]
        for offset, place in zip(written, copies, strict=True):
            is_there = offset >= self.log.start and place >= self.remote.start
            if is_there and any(part.source.start <= offset < part.source.end for part in known.parts()):
                assert known.copy_of(offset) == place
