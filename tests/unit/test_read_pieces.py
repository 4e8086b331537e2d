"""How a range is read to be compared: batches as they lie there, and what a client library reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import srm_spark.kafka.pieces
import srm_spark.kafka.ranges
from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import OffsetRange
from srm_spark.core.pieces import Piece, Sealed
from srm_spark.core.tail import TailRecord
from srm_spark.errors import TargetUnavailable
from srm_spark.kafka.pieces import read_pieces
from tests.batch_bytes import NOW, sealed
from tests.broker.planted import old_message
from tests.cluster_contract import taken
from tests.unit.memory_logs import DENIED, OTHER_ID, P, Q, good, log_of, three
from tests.unit.memory_source import MemoryLog, MemorySource

CLUSTER = ClusterSettings("b", "nowhere:1")


@pytest.fixture
def by_client(monkeypatch: pytest.MonkeyPatch) -> list[OffsetRange]:
    """Ranges that a client library was asked for."""
    asked: list[OffsetRange] = []

    def read(_: object, __: object, ___: object, offsets: OffsetRange, ____: object) -> Iterator[TailRecord]:
        asked.append(offsets)
        return (TailRecord(offset, 0, None, None) for offset in range(*offsets))

    monkeypatch.setattr(srm_spark.kafka.pieces, "read_range", read)
    monkeypatch.setattr(srm_spark.kafka.ranges, "is_used", lambda _: True)
    return asked


def pieces(monkeypatch: pytest.MonkeyPatch, log: MemoryLog, start: int, end: int, isolation: str = "") -> list[Piece]:
    source: Any = MemorySource({P: log})
    monkeypatch.setattr(srm_spark.kafka.ranges, "take_source", lambda *_: source)
    reads = {"isolation.level": isolation} if isolation else {}
    return list(read_pieces(CLUSTER, reads, P, OffsetRange(start, end), TargetUnavailable, role="r"))


def test_batches_come_as_they_lie_there(by_client: list[OffsetRange], monkeypatch: pytest.MonkeyPatch) -> None:
    found = pieces(monkeypatch, three(), 3, 27)
    assert [one.is_whole for one in found if isinstance(one, Sealed)] == [False, True, False]
    assert [one.offset for one in taken(found)] == list(range(3, 27))
    assert not by_client


@pytest.mark.parametrize(("isolation", "wanted"), [("read_uncommitted", range(30)), ("", range(10, 30))])
def test_aborted_transactions_and_markers_are_left_out(
    by_client: list[OffsetRange], monkeypatch: pytest.MonkeyPatch, isolation: str, wanted: range
) -> None:
    """What is committed is what counts, unless the flow reads everything."""
    aborted = good(0, 10)
    aborted[21:23] = (0x10).to_bytes(2, "big")
    aborted[43:51] = (5).to_bytes(8, "big")
    marker = good(30, 1)
    marker[21:23] = (0x30).to_bytes(2, "big")
    log = log_of(sealed(aborted), good(10, 20), sealed(marker), end=31, aborted=[(5, 0)])
    assert [one.offset for one in taken(pieces(monkeypatch, log, 0, 31, isolation))] == list(wanted)
    assert not by_client


def test_the_next_partition_uses_the_same_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of partitions would leave as many of them behind."""
    asked: list[object] = []

    def take(options: Mapping[str, object], _: str) -> Any:
        asked.append(dict(options))
        return MemorySource({P: three(), Q: three(topic_id=OTHER_ID)})

    monkeypatch.setattr(srm_spark.kafka.ranges, "take_source", take)
    monkeypatch.setattr(srm_spark.kafka.ranges, "is_used", lambda _: True)
    for partition in (P, Q):
        found = read_pieces(CLUSTER, {}, partition, OffsetRange(0, 30), TargetUnavailable, role="r")
        assert len(taken(found)) == 30
    assert asked[0] == asked[1]


def test_old_messages_are_left_to_a_client_library(
    by_client: list[OffsetRange], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(good(0, 10), old_message(10, NOW, b"k", b"v"), good(11, 5), end=16)
    assert [one.offset for one in taken(pieces(monkeypatch, log, 0, 16))] == list(range(16))
    assert by_client == [OffsetRange(10, 16)]


def test_where_no_connection_can_be_made_it_reads_all(
    by_client: list[OffsetRange], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(srm_spark.kafka.ranges, "take_source", lambda *_: None)
    found = list(read_pieces(CLUSTER, {}, P, OffsetRange(0, 3), TargetUnavailable, role="r"))
    assert [one.offset for one in taken(found)] == [0, 1, 2]
    assert by_client == [OffsetRange(0, 3)]


def test_a_damaged_batch_is_no_end(by_client: list[OffsetRange], monkeypatch: pytest.MonkeyPatch) -> None:
    broken = good(10, 10)
    broken[-1] ^= 1
    with pytest.raises(TargetUnavailable, match=r"t-0 cannot be read at offset 10: .*its checksum is wrong"):
        pieces(monkeypatch, log_of(good(0, 10), broken, good(20, 10)), 0, 30)
    assert not by_client


def test_a_refusal_is_an_error_of_its_side(by_client: list[OffsetRange], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetUnavailable, match="Not authorized to access topics"):
        pieces(monkeypatch, three(error=DENIED), 0, 30)
    assert not by_client
