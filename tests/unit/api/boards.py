"""Boards filled by hand: three flows, of which one is well, one is not, and of one nothing is known any more."""

from __future__ import annotations

from dataclasses import dataclass, field

from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import FlowSample, GroupSample, Histogram, PartitionSample, Sample, TopicMeta
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.flow.groups.sync import SyncState
from srm_spark.look.board import Board, Past

AB, BA, CB = Flow("A", "B"), Flow("B", "A"), Flow("C", "B")
NOW = 1_764_000_015_000
EVERY = 30
MINUTES = 40


@dataclass
class Clock:
    """Both clocks of a board, which stand still until somebody moves them."""

    now: float = NOW / 1000
    monotonic: float = 1000.0

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now, self.monotonic = self.now + seconds, self.monotonic + seconds


@dataclass
class Filled:
    """A board and its clock."""

    clock: Clock = field(default_factory=Clock)
    flows: tuple[Flow, ...] = (AB, BA, CB)
    past: Past | None = None

    def __post_init__(self) -> None:
        self.board = Board(self.flows, lambda: self.clock.now, lambda: self.clock.monotonic, past=self.past)

    def live(self) -> None:
        """Everything that is there was read."""
        for alias in self.board.targets:
            self.board.read(alias)

    def take(self, *samples: Sample) -> None:
        """Hear these."""
        for one in samples:
            self.board.take(one, one.at)

    def report(self, flow: Flow, at: int, state: FlowState = FlowState.RUNNING, **other: object) -> None:
        """What a driver says of a flow with two topics, `orders` of two partitions and `payments` of one."""
        values: dict[str, object] = {"topics": 2, "partitions": 3, "groups": 1, "lag_records": 7, "lag_seconds": 1.5}
        values |= {"since": at - 60_000, **other}
        self.take(FlowSample(flow, f"host/1/{flow.source}", at, float(EVERY), float(EVERY), state, **values))  # type: ignore[arg-type]
        partitions = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("payments", 0)]
        for number, partition in enumerate(partitions):
            self.take(
                PartitionSample(
                    flow,
                    at,
                    float(EVERY),
                    partition,
                    f"{flow.source}.{partition.topic}",
                    records=30 * (number + 1),
                    bytes=3000 * (number + 1),
                    latency=Histogram.of([5.0, 10.0 * (number + 1)]),
                    lag_records=number,
                    lag_seconds=float(number),
                    state="running",
                )
            )
        latency = Histogram.of([100.0])
        self.take(GroupSample(flow, at, float(EVERY), "billing", ("orders",), latency, SyncState.SYNCED.value))

    def reports(self, flow: Flow, minutes: int = MINUTES, **other: object) -> None:
        """One each half a minute until now."""
        for at in range(NOW - minutes * 60_000, NOW + 1, EVERY * 1000):
            self.report(flow, at, **other)  # type: ignore[arg-type]
        for topic, partitions in (("orders", 2), ("payments", 1)):
            meta = TopicMeta(flow, topic, f"{flow.source}.{topic}", partitions, topic)
            self.board.take_meta(flow, topic, meta)


def three_flows() -> Filled:
    """A->B is ACTIVE, B->A has a paused partition, and the driver of C->B is silent since ten minutes."""
    filled = Filled()
    filled.reports(AB)
    filled.reports(BA)
    paused = PartitionSample(
        BA, NOW + 1000, 1.0, TopicPartition("orders", 1), "B.orders", state="paused", reason="write-refused"
    )
    for at in range(NOW - MINUTES * 60_000, NOW - 600_000, EVERY * 1000):
        filled.report(CB, at)
    filled.live()
    filled.clock.pass_by(2)
    filled.take(paused)
    return filled


def ring(clusters: int) -> list[Flow]:
    """Each cluster is copied to the next one, and the last to the first."""
    names = [f"cluster-{number}" for number in range(clusters)]
    return [Flow(one, names[(number + 1) % clusters]) for number, one in enumerate(names)]
