"""The offset map after a batch that committed records with progress, and died before it came to the map."""

from __future__ import annotations

from srm_spark.core.model import Interval, OffsetRange, ProgressDetail
from srm_spark.flow.recovery.fencing import complete_map
from tests.unit.memory_flow import HERE, MemoryFlow, flow_settings


def detail(flow: MemoryFlow, start: int, end: int, topic_id: str | None = None) -> ProgressDetail:
    """Progress as the newest commit has it."""
    assert flow.assigned is not None
    logs = flow.assigned.assignment.logs[HERE]
    logs = logs if topic_id is None else logs._replace(topic_id=topic_id)
    return ProgressDetail(OffsetRange(start, end), end, (Interval(start, start, end - start),), logs=logs)


def completed(flow: MemoryFlow, *newest: ProgressDetail) -> bool:
    done = complete_map(flow.clusters, flow.recorded.maps.maps, {HERE: list(newest)}, None)
    flow.recorded.maps.refresh()
    return done


def flow_of(count: int) -> MemoryFlow:
    flow = MemoryFlow(flow_settings())
    flow.write(*(b"%d" % number for number in range(count)))
    flow.run()
    flow.recorded.maps.refresh()
    return flow


def test_it_gets_what_was_committed_last_and_only_that() -> None:
    flow = flow_of(5)
    assert not completed(flow, detail(flow, 2, 5)), "it knows"
    assert completed(flow, detail(flow, 0, 5), detail(flow, 5, 8))
    known = flow.recorded.maps.maps[HERE]
    assert known.source == OffsetRange(0, 8)
    assert [known.copy_of(offset) for offset in (4, 7)] == [4, 7]
    assert not completed(flow, detail(flow, 5, 8))


def test_a_map_of_another_topic_of_that_name_begins_anew() -> None:
    flow = flow_of(5)
    assert completed(flow, detail(flow, 0, 3, "another"))
    known = flow.recorded.maps.maps[HERE]
    assert (known.topic_id, known.source) == ("another", OffsetRange(0, 3))


def test_where_there_is_none_all_of_it_is_written() -> None:
    flow = MemoryFlow(flow_settings())
    flow.write(b"0", b"1")
    flow.start()
    assert completed(flow, detail(flow, 0, 1), detail(flow, 1, 2))
    assert flow.recorded.maps.maps[HERE].source == OffsetRange(0, 2)
