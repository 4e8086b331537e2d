"""What samples come to over a minute, an hour and a day: cells that add up, whatever came first. No I/O.

A cell is what is known of one series in one bucket of time:

```
                              12:01     12:02   …            minute, hour and day each have cells of their own
flow                            …         …
topic     orders                …         …     cell: records, bytes, seconds, latencies, lag at its newest moment
partition orders-3              …         …
group     billing               …         …
```

`a + b` is the cell of what both tell. It does not matter in which order or groups cells are added, so what comes late
is added like anything else. What nobody has told is None, and never 0. Times are milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeVar

from srm_spark.core.flow_series import Hearing, has_figures, moment_of
from srm_spark.core.metrics import FlowSample, Histogram, PartitionSample, Sample, decode
from srm_spark.core.series import Span

_N = TypeVar("_N", int, float)
_MINUTE_MS = 60_000
_NONE = Histogram()


class Grain(Enum):
    """How wide a bucket is."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"

    @property
    def ms(self) -> int:
        """In milliseconds."""
        return _WIDTHS[self]

    def start(self, at: int) -> int:
        """When the bucket of a moment begins; days are those of UTC."""
        return at // self.ms * self.ms


_WIDTHS = {Grain.MINUTE: _MINUTE_MS, Grain.HOUR: 60 * _MINUTE_MS, Grain.DAY: 1440 * _MINUTE_MS}
_MOST_BUCKETS = 800
"""More of them nobody sees in a chart: half a day of minutes, a month of hours."""


def grain_for(span: Span) -> Grain:
    """The finest one that cuts a span into few enough buckets."""
    fits = (grain for grain in Grain if (span.end - span.start) / grain.ms <= _MOST_BUCKETS)
    return next(fits, Grain.DAY)


class Kind(Enum):
    """What a series is of."""

    FLOW = "flow"
    TOPIC = "topic"
    PARTITION = "partition"
    GROUP = "group"


class Series(NamedTuple):
    """Of what a cell tells; names are those of the source."""

    kind: Kind
    flow: str
    topic: str | None = None
    partition: int | None = None
    group: str | None = None


class Key(NamedTuple):
    """Where a cell lies."""

    grain: Grain
    start: int
    series: Series


@dataclass(frozen=True)
class Cell:
    """What is known of one series in one bucket."""

    newest: int
    """Moment of the newest sample in it."""
    seconds: float | None = None
    """Time that is told of; of flows and partitions only: topics are told of as long as their flow."""
    records: int | None = None
    bytes: int | None = None
    replication_latency: Histogram = _NONE
    checkpoint_latency: Histogram = _NONE
    lag_at: int | None = None
    """Newest moment at which the lag was asked for; None where no sample is about lag."""
    lag_records: int | None = None
    """At that moment, of all that tell of it together; None where that of one is not known."""
    lag_seconds: float | None = None
    """The most that was known at any moment."""

    def __add__(self, other: Cell) -> Cell:
        lag_at, lag_records = _newest_lag(self, other)
        return Cell(
            max(self.newest, other.newest),
            _sum(self.seconds, other.seconds),
            _sum(self.records, other.records),
            _sum(self.bytes, other.bytes),
            self.replication_latency + other.replication_latency,
            self.checkpoint_latency + other.checkpoint_latency,
            lag_at,
            lag_records,
            max((one for one in (self.lag_seconds, other.lag_seconds) if one is not None), default=None),
        )


def _sum(one: _N | None, other: _N | None) -> _N | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _newest_lag(one: Cell, other: Cell) -> tuple[int | None, int | None]:
    """The later one; samples of one moment are those of several partitions, which add up."""
    if one.lag_at is None or other.lag_at is None:
        known = other if one.lag_at is None else one
        return known.lag_at, known.lag_records
    if one.lag_at != other.lag_at:
        later = max(one, other, key=lambda cell: cell.lag_at or 0)
        return later.lag_at, later.lag_records
    if one.lag_records is None or other.lag_records is None:
        return one.lag_at, None
    return one.lag_at, one.lag_records + other.lag_records


Cells = dict[Key, Cell]


def add_to(cells: MutableMapping[Key, Cell], more: Iterable[tuple[Key, Cell]]) -> None:
    """Add cells to those of the same place."""
    for key, cell in more:
        before = cells.get(key)
        cells[key] = cell if before is None else before + cell


def together(*of: Mapping[Key, Cell]) -> Cells:
    """All of them added up."""
    made: Cells = {}
    for cells in of:
        add_to(made, cells.items())
    return made


def cells_of(sample: Sample, at: int) -> Iterator[tuple[Series, Cell]]:
    """What a sample tells, of each series that it is about; `at` is where it lies in time."""
    flow = str(sample.flow)
    if isinstance(sample, FlowSample):
        if has_figures(sample):
            lag = (at, sample.lag_records, sample.lag_seconds)
            yield Series(Kind.FLOW, flow), Cell(at, sample.seconds, None, None, _NONE, _NONE, *lag)
    elif isinstance(sample, PartitionSample):
        copied = (sample.records, sample.bytes, sample.latency, _NONE)
        topic, partition = sample.partition
        lag = (at, sample.lag_records, sample.lag_seconds)
        yield Series(Kind.PARTITION, flow, topic, partition), Cell(at, sample.seconds, *copied, *lag)
        yield Series(Kind.TOPIC, flow, topic), Cell(at, None, *copied, *lag)
        yield Series(Kind.FLOW, flow), Cell(at, None, *copied)
    else:
        cell = Cell(at, checkpoint_latency=sample.latency)
        yield Series(Kind.GROUP, flow, group=sample.group), cell
        yield Series(Kind.FLOW, flow), cell
        for topic in sample.topics:
            yield Series(Kind.TOPIC, flow, topic), cell


class MetricsRecord(NamedTuple):
    """A record of a metrics topic, and where it lies."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    """Milliseconds since the epoch."""
    key: bytes | None
    value: bytes | None


@dataclass
class Gathered:
    """What records of metrics topics come to."""

    cells: Cells = field(default_factory=dict)
    next_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    """Topic and partition → behind the last record that is counted."""

    def add(self, records: Iterable[MetricsRecord], now: int) -> None:
        """Count records, each partition's in order; one that lies there twice counts once. `now` by this host's clock.

        A moment that the driver's clock has wrong is put right as the service does, see `moment_of`. What is no sample
        of a known version is left out: the service tells of it.
        """
        seen: set[tuple[bytes | None, int]] = set()
        fine: Cells = {}
        for record in records:
            self.next_offsets[record.topic, record.partition] = record.offset + 1
            sample = decode(record.key, record.value)
            if sample is not None and (record.key, sample.at) not in seen:
                seen.add((record.key, sample.at))
                at = moment_of(sample.at, Hearing(now, 0.0, False, record.timestamp))
                start = Grain.MINUTE.start(at)
                add_to(fine, ((Key(Grain.MINUTE, start, series), cell) for series, cell in cells_of(sample, at)))
        for grain in Grain:
            coarse = ((Key(grain, grain.start(key.start), key.series), cell) for key, cell in fine.items())
            add_to(self.cells, coarse)
