"""A flow in memory that is paused, resumed and restarted, as by `srm-control`."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from srm_spark.core.acts import AnyAct, Command, CommandKind, Scope, Shift, encode
from srm_spark.core.cluster import ControlRecord
from srm_spark.core.lists import act_key
from srm_spark.core.model import TopicPartition
from srm_spark.core.tail import TailRecord
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.run import FlowRun
from srm_spark.flow.topics.internal_topics import control_topic, ensure_topic
from srm_spark.flow.topics.progress import ProgressTopic
from tests.memory_cluster import MemoryLog, MemoryTopic
from tests.unit.memory_run import World

P = TopicPartition("t", 0)
FILE = """clusters = A, B
A.bootstrap.servers = nowhere:1
B.bootstrap.servers = nowhere:2
A->B.enabled = true
A->B.topics = .*
dialect = mm2
replication.factor = 1
offset.storage.replication.factor = 1
"""


class Commanded(World):
    """Its clock is the test's; `t` has records `t0`, `t1` …"""

    def __init__(self, keys: Mapping[str, str] | None = None, *, count: int = 0) -> None:
        self.count = 0
        super().__init__(keys or {})
        self.write(*(f"t{number}".encode() for number in range(count)))

    def write(self, *values: bytes, partition: TopicPartition = P) -> None:
        """Applications write."""
        topic = self.flow.source.held.get(partition.topic)
        if topic is None:
            self.topic(partition.topic)
        log = self.flow.source.log(partition)
        for value in values:
            log.append(TailRecord(0, 1_000, b"k", value))

    def partitions(self, topic: str, count: int) -> None:
        """So many partitions of a source topic."""
        held = self.flow.source.held[topic]
        self.flow.source.held[topic] = MemoryTopic([*held.partitions, *(MemoryLog() for _ in range(count - 1))], {})

    def act(self, act: AnyAct) -> str:
        """Write it to the log; its id."""
        self.count += 1
        ensure_topic(self.flow.target, control_topic(self.flow.settings))
        record = ControlRecord("mm2-control.A.internal", act_key(f"a{self.count}"), encode(act), partition=0)
        self.flow.target.writer("test", TargetUnavailable).write([record])
        return f"a{self.count}"

    def command(self, kind: CommandKind, *scope: object, why: str = "") -> str:
        """`scope` is a topic, and a partition."""
        return self.act(Command(kind, Scope(*scope), 1_700, "ann@host", why))  # type: ignore[arg-type]

    def shift(self, start: int, end: int, partition: TopicPartition = P, topic_id: str | None = None) -> str:
        """An act on the offsets of a partition; of the topic that is there now, unless another one is named."""
        topic_id = topic_id or self.flow.source.topic_ids([partition.topic]).get(partition.topic, "")
        scope, shift = Scope(*partition), Shift(start, end, topic_id)
        return self.act(Command(CommandKind.OFFSETS, scope, 1_700, "ann@host", "", shift))

    def pause(self, *scope: object, why: str = "maintenance") -> str:
        return self.command(CommandKind.PAUSE, *scope, why=why)

    def resume(self, *scope: object) -> str:
        return self.command(CommandKind.RESUME, *scope)

    def command_restart(self) -> str:
        return self.command(CommandKind.RESTART)

    def look(self, run: FlowRun) -> None:
        """What the driver's clock does each second, and the flow behind it."""
        run.lists.look()
        run.tick()

    @contextmanager
    def looking(self, run: FlowRun) -> Iterator[None]:
        """It looks around all the time, as its driver lets it."""
        over = threading.Event()

        def drive() -> None:
            while not over.wait(0.01):
                self.look(run)

        thread = threading.Thread(target=drive)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def copy(self, run: FlowRun) -> None:
        """A batch, and a look at what came of it."""
        self.generation.copy()
        run.tick()

    @property
    def flowing(self) -> set[TopicPartition]:
        return set(self.generation.assignment.starts)

    def progress(self) -> ProgressTopic:
        """Read anew."""
        progress = ProgressTopic(self.flow.settings, self.flow.target)
        progress.refresh()
        return progress

    @property
    def taken(self) -> str | None:
        """The act that a driver has taken last."""
        answer = self.progress().answers.taken
        return None if answer is None else answer.act
