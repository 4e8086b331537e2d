"""What is asked of a transaction coordinator, and the fence that is made of it, on brokers in memory."""

from __future__ import annotations

import pytest

from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author
from srm_spark.errors import FenceUnavailable, LeaseLost, ProtocolUnavailable
from srm_spark.kafka.batches.coordinator import Coordinator
from srm_spark.kafka.batches.fence import BrokerFence
from tests.unit.memory_brokers import BUSY, DENIED, NOT_COORDINATOR, TransactionBrokers

GOOD, BAD = TopicPartition("A.t", 0), TopicPartition("A.u", 0)


def coordinator_of(brokers: TransactionBrokers, seconds: float = 0.2, **more: float) -> Coordinator:
    return Coordinator(brokers, "srm-A->B-records", seconds, **more)  # type: ignore[arg-type] # all of it that is used


def test_every_start_gets_a_newer_epoch_and_what_was_open_is_aborted() -> None:
    brokers = TransactionBrokers()
    coordinator = coordinator_of(brokers)
    first = coordinator.init()
    assert coordinator.add(first, [GOOD]) == {GOOD: 0}
    second = coordinator.init()
    assert second.producer_id == first.producer_id
    assert second.epoch > first.epoch
    assert not brokers.is_open
    with pytest.raises(LeaseLost):
        coordinator.add(first, [GOOD])
    with pytest.raises(LeaseLost):
        coordinator.end(first, committed=True)


def test_a_fence_tells_every_partition_but_those_that_are_refused() -> None:
    brokers = TransactionBrokers()
    brokers.codes = {BAD: DENIED}
    fence = BrokerFence(brokers, "srm-A->B-records", 0.2)  # type: ignore[arg-type] # all of it that is used
    fenced = fence.fence([GOOD, BAD])
    assert fenced.author == Author(4, 1)
    assert (fenced.refused, fenced.is_first) == ({BAD: DENIED}, True)
    assert brokers.requests == [
        *("FindCoordinator", "InitProducerId", "AddPartitionsToTxn", "AddPartitionsToTxn", "EndTxn", "InitProducerId")
    ]
    assert not brokers.is_open


def test_followers_are_waited_for_longer_than_an_answer() -> None:
    told: list[str] = []
    brokers = TransactionBrokers(asked=[("InitProducerId", BUSY)] * 10)
    assert coordinator_of(brokers, 0.0, patience=60.0).init(told.append).epoch == 0
    brokers = TransactionBrokers(asked=[("InitProducerId", BUSY)] * 1000)
    with pytest.raises(ProtocolUnavailable, match="not all in-sync replicas"):
        coordinator_of(brokers, 0.0).init()


def test_a_coordinator_that_has_moved_is_found_again() -> None:
    brokers = TransactionBrokers(asked=[("InitProducerId", NOT_COORDINATOR)] * 2)
    coordinator_of(brokers, 60.0).init()
    assert brokers.requests == ["FindCoordinator", "InitProducerId"] * 3


def test_a_coordinator_is_looked_for_again_where_nobody_says_who_it_is() -> None:
    brokers = TransactionBrokers(asked=[("FindCoordinator", "lost")] * 2)
    assert coordinator_of(brokers, 60.0).init().epoch == 0
    with pytest.raises(FenceUnavailable, match="allow WRITE"):
        coordinator_of(TransactionBrokers(asked=[("FindCoordinator", 53)]), 60.0).init()


@pytest.mark.parametrize(("code", "words"), [(53, "allow WRITE"), (50, "transaction.max.timeout.ms"), (99, "error 99")])
def test_what_is_refused_says_what_to_do(code: int, words: str) -> None:
    with pytest.raises(FenceUnavailable, match=words):
        coordinator_of(TransactionBrokers(asked=[("InitProducerId", code)])).init()


def test_whether_it_may_be_written_is_asked_and_nothing_changes() -> None:
    brokers = TransactionBrokers()
    coordinator = coordinator_of(brokers)
    author = coordinator.init()
    coordinator.add(author, [GOOD])
    coordinator_of(brokers).look()
    assert brokers.requests[-2:] == ["FindCoordinator", "EndTxn"]
    assert (brokers.author, brokers.is_open, brokers.committed, brokers.aborted) == (author, True, [], [])
    coordinator.end(author, committed=True)


@pytest.mark.parametrize("kind", ["FindCoordinator", "EndTxn"])
def test_who_may_not_write_is_told_when_he_asks(kind: str) -> None:
    with pytest.raises(FenceUnavailable, match=r"allow WRITE on transactional id srm-A->B-records"):
        coordinator_of(TransactionBrokers(asked=[(kind, 53)])).look()


def test_who_was_overtaken_abandons_nothing_of_the_newer_one() -> None:
    brokers = TransactionBrokers()
    coordinator = coordinator_of(brokers)
    older = coordinator.init()
    newer = coordinator.init()
    coordinator.add(newer, [GOOD])
    with pytest.raises(LeaseLost):
        coordinator.abandon(older, GOOD)
    assert (brokers.is_open, brokers.author) == (True, newer)
    coordinator.abandon(newer, GOOD)
    assert (brokers.is_open, brokers.author.epoch) == (False, newer.epoch + 1)
