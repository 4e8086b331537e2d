"""A lost offset map, made again from both logs in memory, or not at all."""

from __future__ import annotations

import pytest

from srm_spark.core.filters import NameFilter
from srm_spark.core.model import OffsetRange
from srm_spark.core.tail import TailRecord
from srm_spark.errors import LeaseHeld, LeaseLost
from srm_spark.flow.rebuild import Rebuilt, rebuild_map
from srm_spark.flow.topics.internal_topics import ensure_topic, map_topic
from tests.memory_cluster import MemoryProducer
from tests.unit.memory_flow import HERE, MemoryFlow, flow_settings

COMMITTED = {"A.consumer.isolation.level": "read_committed"}


def flow_with_aborted_ones() -> MemoryFlow:
    """The two sides count differently."""
    flow = MemoryFlow(flow_settings(COMMITTED))
    flow.write(b"0", b"1")
    for end in ("abort", "commit"):
        producer = MemoryProducer(flow.source)
        for value in (b"2", b"3"):
            producer.write(HERE, TailRecord(0, 1_000, b"k", value))
        (producer.abort if end == "abort" else producer.commit)()
    flow.write(b"4")
    flow.run()
    return flow


def rebuilt(flow: MemoryFlow, *topics: str) -> tuple[Rebuilt, ...]:
    return rebuild_map(flow.settings, NameFilter(topics or (".*",)), flow.reach)


def parts(flow: MemoryFlow) -> list[object]:
    flow.recorded.maps.close()
    flow.recorded.maps.refresh()
    known = flow.recorded.maps.maps.get(HERE)
    return [] if known is None else [(part.source, part.target_end, part.intervals) for part in known.parts()]


def lose_map(flow: MemoryFlow) -> None:
    flow.target.delete(flow.settings.map_topic)
    ensure_topic(flow.target, map_topic(flow.settings))


def test_a_lost_map_is_made_again_from_the_records() -> None:
    flow = flow_with_aborted_ones()
    before = parts(flow)
    lose_map(flow)
    (one,) = rebuilt(flow)
    assert (one.partition, one.source, one.records, one.refusal) == (HERE, OffsetRange(0, 9), 5, None)
    assert parts(flow) == before
    (again,) = rebuilt(flow)
    assert again.source == OffsetRange(0, 0), "nothing is missing"
    flow.write(b"later")
    flow.run()
    known = flow.recorded.maps.maps[HERE]
    assert [known.copy_of(offset) for offset in (0, 1, 2, 5, 6, 8)] == [0, 1, None, 2, 3, 4]


def test_nothing_is_rebuilt_while_a_driver_runs_the_flow() -> None:
    flow = flow_with_aborted_ones()
    flow.lease.owner = "driver@host"
    with pytest.raises(LeaseHeld, match="a driver runs it: driver@host"):
        rebuilt(flow)


def test_logs_that_do_not_pair_up_are_left_alone() -> None:
    flow = MemoryFlow(flow_settings({"foreign.writer.policy": "resume"}))
    flow.write(b"0", b"1")
    flow.run()
    flow.remote.append(TailRecord(0, 1, b"not", b"ours"))
    flow.write(b"2")
    flow.run()
    lose_map(flow)
    (one,) = rebuilt(flow)
    assert "the records of both sides do not pair up to the end: target offset 2" in (one.refusal or "")
    assert parts(flow) == []


def test_what_is_gone_on_one_side_is_no_part_of_the_map() -> None:
    flow = MemoryFlow(flow_settings())
    flow.write(b"0", b"1", b"2", b"3")
    flow.run()
    lose_map(flow)
    flow.remote.delete_before(2)
    flow.log.delete_before(2)
    (one,) = rebuilt(flow)
    assert (one.records, one.refusal) == (2, None)
    flow.recorded.maps.close()
    flow.recorded.maps.refresh()
    assert [flow.recorded.maps.maps[HERE].copy_of(offset) for offset in (1, 2, 3)] == [None, 2, 3]


def test_what_is_parked_has_no_copy() -> None:
    flow = MemoryFlow(flow_settings({"refused.record.policy": "park"}))
    flow.write(b"0", b"large", b"2")
    flow.start()
    flow.record(*flow.copy(aside=[1]))
    flow.park(1)
    lose_map(flow)
    (one,) = rebuilt(flow)
    assert (one.source, one.records, one.refusal) == (OffsetRange(0, 3), 2, None)
    flow.recorded.maps.close()
    flow.recorded.maps.refresh()
    assert [flow.recorded.maps.maps[HERE].copy_of(offset) for offset in range(3)] == [0, None, 1]


def test_who_loses_the_lease_amid_it_writes_nothing() -> None:
    flow = flow_with_aborted_ones()
    lose_map(flow)

    def happens(what: str) -> None:
        if what.startswith("read t-0"):
            flow.lease.owner = "another"

    flow.source.happens = happens
    with pytest.raises(LeaseLost):
        rebuilt(flow)
    assert parts(flow) == []


def test_where_it_is_not_recorded_how_far_it_went_the_next_start_finds_out() -> None:
    flow = MemoryFlow(flow_settings())
    flow.write(b"0")
    flow.run()
    lose_map(flow)
    flow.target.delete(flow.settings.progress_topic)
    (one,) = rebuilt(flow)
    assert "the next start of the flow finds out by itself" in (one.refusal or "")


def test_topics_that_are_not_named_are_left_alone() -> None:
    flow = flow_with_aborted_ones()
    lose_map(flow)
    assert rebuilt(flow, "other") == ()
