"""What samples come to over time: it does not matter in which order they come, in how many pieces, or how late."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.driver_status import FlowState
from srm_spark.core.history import Cell, Gathered, Grain, Key, Kind, MetricsRecord, Series, grain_for, together
from srm_spark.core.history_rows import SCHEMA, Position, cells_in, moment, positions_in, table_of
from srm_spark.core.metrics import FlowSample, GroupSample, Histogram, PartitionSample, Sample, encode
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.series import Span
from srm_spark.past.batch import gather

AB = Flow("A", "B")
NOON = 1_764_072_000_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000

whole = st.integers(0, 1000)
histograms = st.lists(st.integers(0, 400_000).map(float), max_size=4).map(Histogram.of)


def maybe(of: st.SearchStrategy[int]) -> st.SearchStrategy[int | None]:
    return st.none() | of


@st.composite
def cells(draw: st.DrawFn) -> Cell:
    lag_at = draw(maybe(st.integers(0, 3)))
    seconds = draw(maybe(whole))
    lag_seconds = draw(maybe(whole))
    return Cell(
        draw(whole),
        None if seconds is None else float(seconds),  # whole, for floats do not add up the same in every order
        draw(maybe(whole)),
        draw(maybe(whole)),
        draw(histograms),
        draw(histograms),
        lag_at,
        None if lag_at is None else draw(maybe(whole)),
        None if lag_seconds is None else float(lag_seconds),
    )


@given(st.lists(cells(), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_cells_add_up_in_any_order_and_in_any_pieces(of: list[Cell], chance: random.Random) -> None:
    straight = reduce(Cell.__add__, of)
    shuffled = chance.sample(of, len(of))
    cut = chance.randrange(len(of))
    pieces = [reduce(Cell.__add__, part) for part in (shuffled[:cut], shuffled[cut:]) if part]
    assert reduce(Cell.__add__, pieces) == straight


def sample_of(kind: int, at: int, number: int, lag: int | None) -> Sample:
    latency = Histogram.of([float(number)])
    if kind == 0:
        return FlowSample(AB, "host/1/1", at, 30.0, 30.0, FlowState.RUNNING, lag_records=lag)
    if kind == 1:
        partition = TopicPartition(f"t{number % 2}", number)
        return PartitionSample(AB, at, 30.0, partition, "A.t", number, 10 * number, latency, lag)
    return GroupSample(AB, at, 30.0, f"g{number}", ("t0", "t1"), latency)


def records_of(samples: Iterable[Sample]) -> list[MetricsRecord]:
    return [
        MetricsRecord("srm-metrics-A.internal", 0, number, sample.at, *encode(sample))
        for number, sample in enumerate(samples)
    ]


def gathered(records: Sequence[MetricsRecord], now: int = NOON + DAY) -> Gathered:
    made = Gathered()
    made.add(records, now)
    return made


samples = st.lists(
    st.builds(
        sample_of,
        st.integers(0, 2),
        st.integers(0, 5).map(lambda minutes: NOON + minutes * 10 * MINUTE),
        st.integers(0, 3),
        st.none() | st.integers(0, 9),
    ),
    max_size=12,
    unique_by=lambda sample: (encode(sample)[0], sample.at),
)


@given(samples, st.integers(0, 12), st.randoms(use_true_random=False))
def test_late_samples_and_cuts_between_batches_change_nothing(
    of: list[Sample], cut: int, chance: random.Random
) -> None:
    records = records_of(chance.sample(of, len(of)))
    in_pieces = together(gathered(records[:cut]).cells, gathered(records[cut:]).cells)
    assert in_pieces == gathered(records_of(of)).cells


@given(samples)
def test_what_lies_there_twice_counts_once(of: list[Sample]) -> None:
    records = records_of(of)
    twice = [replaced for record in records for replaced in (record, record._replace(offset=record.offset + 100))]
    assert gathered(twice).cells == gathered(records).cells


@given(samples)
def test_hours_and_days_are_the_sum_of_their_minutes(of: list[Sample]) -> None:
    found = gathered(records_of(of)).cells
    minutes = [(key, cell) for key, cell in found.items() if key.grain is Grain.MINUTE]
    for grain in (Grain.HOUR, Grain.DAY):
        moved = [{Key(grain, grain.start(key.start), key.series): cell} for key, cell in minutes]
        assert together(*moved) == {key: cell for key, cell in found.items() if key.grain is grain}


@given(samples)
def test_rows_tell_the_same(of: list[Sample]) -> None:
    found = gathered(records_of(of)).cells
    positions = {
        TopicPartition("srm-metrics-A.internal", 0): Position(7, "id"),
        TopicPartition("x", 1): Position(1, None),
    }
    table = table_of(found, positions)
    assert table.schema == SCHEMA
    assert dict(cells_in(table)) == found
    assert positions_in(table) == positions


def minute(found: Gathered, series: Series, start: int = NOON) -> Cell:
    return found.cells[Key(Grain.MINUTE, start, series)]


def test_what_each_series_is_told_by() -> None:
    def partition(number: int, lag: int | None) -> PartitionSample:
        latency, at = Histogram.of([5.0]), NOON + 1000
        one = TopicPartition("orders", number)
        return PartitionSample(AB, at, 30.0, one, "A.orders", 3, 300, latency, lag, lag_seconds=float(number))

    flow = FlowSample(AB, "h/1/1", NOON + 1000, 30.0, 30.0, FlowState.RUNNING, lag_records=9, lag_seconds=2.0)
    waiting = replace(flow, driver="h/2/2", at=NOON + 2000, state=FlowState.WAITING, lag_records=None)
    group = GroupSample(AB, NOON + 1500, 30.0, "billing", ("orders",), Histogram.of([100.0]))
    found = gathered(records_of([flow, waiting, partition(0, 4), partition(1, 2), group]))
    both, checkpoint = Histogram.of([5.0, 5.0]), Histogram.of([100.0])
    lag_at = NOON + 1000
    whole_flow = Cell(NOON + 1500, 30.0, 6, 600, both, checkpoint, lag_at, 9, 2.0)
    assert minute(found, Series(Kind.FLOW, "A->B")) == whole_flow
    assert minute(found, Series(Kind.TOPIC, "A->B", "orders")) == replace(
        whole_flow, seconds=None, lag_records=6, lag_seconds=1.0
    )
    one = Series(Kind.PARTITION, "A->B", "orders", 1)
    assert minute(found, one) == Cell(lag_at, 30.0, 3, 300, Histogram.of([5.0]), Histogram(), lag_at, 2, 1.0)
    assert minute(found, Series(Kind.GROUP, "A->B", group="billing")) == Cell(
        NOON + 1500, checkpoint_latency=checkpoint
    )
    unknown = gathered(records_of([partition(0, 4), partition(1, None)]))
    assert minute(unknown, Series(Kind.TOPIC, "A->B", "orders")).lag_records is None


def test_records_that_are_none_are_passed_by() -> None:
    good = records_of([sample_of(0, NOON, 0, 1)])[0]
    newer = good._replace(offset=1, value=(good.value or b"").replace(b'"v":1', b'"v":2'))
    garbage, tombstone = good._replace(offset=2, value=b"garbage"), good._replace(offset=3, value=None)
    found = gathered([good, newer, garbage, tombstone])
    assert found.next_offsets == {("srm-metrics-A.internal", 0): 4}
    assert len(found.cells) == 3


def test_a_moment_is_put_right_by_the_records_own_and_never_lies_in_the_future() -> None:
    record = records_of([sample_of(0, NOON + 2 * HOUR, 0, 1)])[0]
    (start,) = {key.start for key in gathered([record._replace(timestamp=NOON)]).cells if key.grain is Grain.MINUTE}
    assert start == NOON
    (start,) = {key.start for key in gathered([record], now=NOON).cells if key.grain is Grain.MINUTE}
    assert start == NOON


@pytest.mark.parametrize(
    ("length", "grain"),
    [
        (3 * HOUR, Grain.MINUTE),
        (12 * HOUR, Grain.MINUTE),
        (DAY, Grain.HOUR),
        (30 * DAY, Grain.HOUR),
        (60 * DAY, Grain.DAY),
    ],
)
def test_long_spans_are_cut_coarsely(length: int, grain: Grain) -> None:
    assert grain_for(Span(NOON - length, NOON)) is grain


@pytest.mark.parametrize("grain", list(Grain))
def test_buckets_begin_where_days_of_utc_do(grain: Grain) -> None:
    start_of: Callable[[int], int] = grain.start
    assert start_of(DAY * 20_000) == DAY * 20_000
    assert start_of(DAY * 20_000 + grain.ms - 1) == DAY * 20_000
    assert start_of(DAY * 20_000 + grain.ms) == DAY * 20_000 + grain.ms


@given(samples, st.integers(1, 5))
def test_a_task_makes_rows_of_its_records(of: list[Sample], size: int) -> None:
    records = records_of(of)
    rows = [one._asdict() | {"timestamp": moment(one.timestamp or 0)} for one in records]
    names, kinds = ("topic", "partition", "offset", "key"), (pa.string(), pa.int32(), pa.int64(), pa.binary())
    stamped = [("value", pa.binary()), ("timestamp", pa.timestamp("us", tz="UTC"))]
    schema = pa.schema([*zip(names, kinds, strict=True), *stamped])
    batches = [pa.RecordBatch.from_pylist(rows[at : at + size], schema) for at in range(0, len(rows), size)]
    table = pa.Table.from_batches(gather(batches, NOON + DAY), SCHEMA)
    assert dict(cells_in(table)) == gathered(records).cells
    read = TopicPartition("srm-metrics-A.internal", 0)
    assert positions_in(table) == ({read: Position(len(of), None)} if of else {})
