"""Where a broker's own disks begin, as it is asked for (ListOffsets 8, KIP-405). No socket."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from srm_spark.core.model import TopicPartition
from srm_spark.kafka.batches.brokers import Brokers, Connection

HERE = TopicPartition("t", 3)


class Told(Brokers):
    """Its brokers answer with `offset` and `error`."""

    def __init__(self, offset: int, error: int = 0) -> None:
        super().__init__({"bootstrap.servers": "nowhere:1"}, "a")
        self.asked: list[tuple[Any, int | None]] = []
        self._answer = SimpleNamespace(offset=offset, error_code=error)

    def ask(self, request: Any, node: int | None = None) -> Any:
        self.asked.append((request, node))
        return SimpleNamespace(topics=[SimpleNamespace(partitions=[self._answer])])


@pytest.mark.parametrize(("is_leader", "replica"), [(True, -1), (False, -2)])
def test_a_replica_is_asked_as_one_and_a_leader_as_one(*, is_leader: bool, replica: int) -> None:
    """A consumer's question a replica answers with an error, and what it holds need not be what the leader holds."""
    brokers = Told(70)
    assert brokers.local_start(HERE, 5, is_leader=is_leader) == 70
    ((request, node),) = brokers.asked
    assert (node, request.replica_id, request.topics[0].partitions[0].timestamp) == (5, replica, -4)
    assert request.encode(version=8)


@pytest.mark.parametrize(("error", "found"), [(35, 0), (6, None), (0, 70)])
def test_who_knows_no_other_storage_has_everything_and_who_does_not_say_is_unknown(
    error: int, found: int | None
) -> None:
    assert Told(70, error).local_start(HERE, 5, is_leader=True) == found


@pytest.mark.parametrize(("versions", "expected"), [({2: (0, 7)}, False), ({2: (1, 10)}, True), ({}, False)])
def test_a_broker_knows_other_storage_from_list_offsets_8_on(
    versions: dict[int, tuple[int, int]], *, expected: bool
) -> None:
    with socket.socket() as sock:
        assert Connection(sock, "x", versions).knows_tiers is expected
