"""What a start waits for behind an unclean end, in memory: whose ends move, and who says how far logs go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from srm_spark.core.model import UNKNOWN, OffsetRange, TopicPartition
from srm_spark.core.provenance import Stamp
from srm_spark.core.rest import Patience
from srm_spark.core.tail import TailRecord
from srm_spark.errors import ProtocolUnavailable, TargetUnavailable
from srm_spark.failure import FailureKind
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.open_transactions import OpenPatience, pause_open_transactions
from srm_spark.flow.recovery.settling import LeaderLogs, settled
from srm_spark.flow.recovery.starts import Start
from srm_spark.flow.topics.progress import Position
from tests.memory_cluster import MemoryLog, MemoryProducer, MemoryTopic
from tests.unit.memory_flow import HERE, THERE, MemoryFlow, flow_settings

QUICK = Patience(still_seconds=0.02, unknown_seconds=0.06, settle_seconds=5.0, look_seconds=0.005)
SHORT = Patience(still_seconds=0.01, unknown_seconds=0.01, settle_seconds=0.03, look_seconds=0.005)
STAMP = Stamp("A", "B")


@dataclass
class Leaders:
    """What brokers tell: logs go on by so much behind the ends that clients see, for so many looks."""

    flow: MemoryFlow
    behind: int = 0
    looks: int = 0
    is_silent: bool = False
    quota: float | None = None
    closed: int = 0
    asked: Callable[[], object] = lambda: None
    """Happens as soon as they have answered."""

    def leader_log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        if self.is_silent:
            raise ProtocolUnavailable("no answer")
        self.looks -= 1
        more = self.behind if self.looks >= 0 else 0
        ends = {p: end + more for p, end in self.flow.target.end_offsets(partitions).items()}
        self.asked()
        return ends

    def smallest_produce_quota(self) -> float | None:
        if self.is_silent:
            raise ProtocolUnavailable("no answer")
        return self.quota

    def close(self) -> None:
        self.closed += 1


@dataclass
class Wait:
    """One wait, and what it told; something may happen each time that it tells."""

    flow: MemoryFlow = field(default_factory=lambda: MemoryFlow(flow_settings()))
    told: list[str] = field(default_factory=list)
    happens: Callable[[int], object] = lambda _: None

    def __post_init__(self) -> None:
        self.flow.target.held["A.t"] = MemoryTopic([MemoryLog()], {})
        self.leaders = Leaders(self.flow)

    def ask(self, _: Clusters) -> LeaderLogs:
        return self.leaders

    def run(
        self,
        *,
        is_fenced: bool = False,
        stamp: Stamp | None = None,
        patience: Patience = QUICK,
        ask: Callable[[Clusters], LeaderLogs] | None = None,
    ) -> Mapping[TopicPartition, int]:
        return settled(
            self.flow.clusters,
            {HERE: THERE},
            is_fenced=is_fenced,
            stamp=stamp,
            tell=self._tell,
            patience=patience,
            ask=ask or self.ask,
        )

    def _tell(self, reason: str) -> None:
        self.told.append(reason)
        self.happens(len(self.told))

    def write(self, *headers: tuple[str, bytes | None]) -> None:
        self.flow.remote.append(TailRecord(0, 1, b"k", b"v", headers))


def test_a_fenced_writer_has_nothing_under_way_that_a_broker_would_take() -> None:
    wait = Wait()
    wait.write()
    assert wait.run(is_fenced=True) == {THERE: 1}
    assert wait.told == []
    assert wait.leaders.closed == 1


def test_a_fenced_writer_s_records_may_still_be_hidden_by_a_follower_that_hangs() -> None:
    wait = Wait()
    wait.leaders.behind, wait.leaders.looks = 2, 3
    wait.run(is_fenced=True)
    assert len(wait.told) == 3
    assert wait.told[0].startswith("the log of A.t-0 on B ends at 2, and not all in-sync replicas have it yet")


def test_what_others_write_between_the_two_questions_is_not_taken_for_something_hidden() -> None:
    wait = Wait()
    wait.leaders.asked = wait.write
    assert wait.run(is_fenced=True) == {THERE: 1}
    assert wait.told == []


def test_any_other_one_is_waited_for_until_the_ends_stand_still() -> None:
    wait = Wait()
    wait.happens = lambda count: wait.write() if count <= 3 else None
    assert wait.run() == {THERE: 3}
    assert wait.told[0] == "remote topics on B must stand still for 0.02 s: the last writer did not end cleanly"


def test_behind_a_quota_requests_wait_for_long() -> None:
    wait = Wait()
    wait.leaders.quota = 1e7
    wait.run(patience=Patience(still_seconds=0.001, settle_seconds=5.0, look_seconds=0.005))
    assert "must stand still for 0.05 s" in wait.told[0]


@pytest.mark.parametrize("is_fenced", [False, True])
def test_where_nobody_says_how_far_logs_go_it_waits_longer(is_fenced: bool, caplog: pytest.LogCaptureFixture) -> None:
    def ask(_: Clusters) -> LeaderLogs:
        raise ProtocolUnavailable("no such login")

    wait = Wait()
    wait.run(is_fenced=is_fenced, ask=ask)
    assert "must stand still for 0.06 s" in wait.told[0]
    assert "so the start waits longer: no such login" in caplog.text


def test_brokers_that_do_not_answer_are_waited_for_and_named() -> None:
    wait = Wait()
    wait.leaders.is_silent = True
    with pytest.raises(TargetUnavailable, match=r"B does not say where the log of A\.t-0 ends, of 1 partition"):
        wait.run(patience=SHORT)
    assert wait.leaders.closed == 1


def test_a_writer_that_does_not_end_fails_the_start() -> None:
    wait = Wait()
    wait.happens = lambda _: wait.write()
    with pytest.raises(TargetUnavailable, match=r"not settled after 0\.03 s") as raised:
        wait.run(patience=SHORT)
    assert "an old writer of this flow is alive" in str(raised.value)


def test_with_provenance_headers_others_may_write_meanwhile() -> None:
    wait = Wait()
    wait.happens = lambda _: wait.write()
    wait.run(stamp=STAMP)
    ours = STAMP.headers(HERE, 7, ())
    assert ours is not None
    wait = Wait()
    wait.happens = lambda _: wait.write(*ours)
    with pytest.raises(TargetUnavailable, match="not settled"):
        wait.run(stamp=STAMP, patience=SHORT)


# Transactions that nobody ends


def start() -> Start:
    return Start(Position(4), OffsetRange(0, 9), UNKNOWN)


def paused(flow: MemoryFlow, end_seconds: float = 0.0) -> Start:
    return pause_open_transactions(flow.clusters, {HERE: start()}, {HERE: THERE}, OpenPatience(end_seconds, 0.001))[
        HERE
    ]


def test_an_open_transaction_pauses_its_partition_and_says_what_ends_it() -> None:
    wait = Wait()
    wait.write()
    MemoryProducer(wait.flow.target).write(THERE, TailRecord(0, 1, b"k", b"v"))
    found = paused(wait.flow)
    assert found.paused is not None
    assert (found.paused.offset, found.paused.why.kind) == (4, FailureKind.OPEN_TRANSACTION)
    assert "A.t-0 on B has a transaction open since offset 1" in found.paused.why.sentence
    assert "kafka-transactions.sh --bootstrap-server nowhere:2" in found.paused.why.sentence


def test_one_that_ends_meanwhile_does_not() -> None:
    wait = Wait()
    producer = MemoryProducer(wait.flow.target)
    producer.write(THERE, TailRecord(0, 1, b"k", b"v"))
    looks: list[str] = []

    def happens(what: str) -> None:
        looks.append(what)
        if len(looks) == 3:
            producer.commit()

    wait.flow.target.happens = happens
    assert paused(wait.flow, end_seconds=10.0) == start()


def test_a_remote_topic_that_is_not_there_has_none() -> None:
    flow = MemoryFlow(flow_settings())
    assert paused(flow) == start()
