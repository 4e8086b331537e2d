"""Reads history by deltalake, which needs no Spark: lines of metrics in buckets of a minute, an hour or a day.

A target's table is opened once; afterwards only what was committed since is read. Several threads may ask.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyarrow.dataset import dataset

from srm_spark.config.settings import HistorySettings
from srm_spark.core.history import Grain, Kind, Series
from srm_spark.core.history_rows import PARTITIONED_BY, SCHEMA, day_of
from srm_spark.core.model import Flow
from srm_spark.core.news import Every, News
from srm_spark.core.series import Array, Line, Metric, Span
from srm_spark.core.wording import one_line

log = logging.getLogger(__name__)

_NEWS_SECONDS = 10.0
"""How often it is seen what was committed."""
_KEPT_SECONDS = 120.0
"""For so long an answer is kept: what is asked here is over for two hours, and only what came very late changes it."""
_KEPT_BYTES = 64_000_000
_SINCE_SECONDS = 600.0
_OF_A_LINE = 4
"""Arrays of keys by buckets."""
_LATENCIES = {Metric.REPLICATION_LATENCY: "replication_latency", Metric.CHECKPOINT_LATENCY: "checkpoint_latency"}
_STORED = pa.schema([field for field in SCHEMA if field.name not in PARTITIONED_BY])
_LAGS = {Metric.RECORDS_LAG: "lag_records", Metric.SECONDS_LAG: "lag_seconds"}
_COLUMNS = [
    *("start", "newest", "topic", "records", "bytes", "seconds", *_LAGS.values()),
    *(f"{name}_{part}" for name in _LATENCIES.values() for part in ("count", "total", "least", "most")),
]
_Asked = tuple[Grain, int, int, tuple[Series, ...]]
_BYTES = (Metric.BYTE_RATE, Metric.BYTE_COUNT)
_RATES = (Metric.BYTE_RATE, Metric.RECORD_RATE)


@dataclass
class _Target:
    path: str
    table: DeltaTable | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    news: Every = field(default_factory=lambda: Every(_NEWS_SECONDS))


class History:
    """Of all targets."""

    def __init__(self, settings: HistorySettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is opened yet."""
        self._settings, self._clock = settings, clock
        self._targets: dict[str, _Target] = {}
        self._kept: dict[_Asked, tuple[float, _Cells]] = {}
        self._since: dict[Flow, tuple[float, int]] = {}
        self._newest: dict[str, tuple[float, dict[str, int]]] = {}
        self._lock = threading.Lock()
        self._news = News()

    def line(self, metric: Metric, span: Span, grain: Grain, flow: Flow, series: Sequence[Series]) -> Line | None:
        """A metric of each of these series, in the buckets that touch the span; None where there is no history.

        They are of one kind; of partitions and groups it is one.
        """
        cells = self._cells(span, grain, flow, series)
        if cells is None:
            return None
        is_of_topics = metric in _RATES and series[0].kind is Kind.TOPIC
        of_flow = self._cells(span, grain, flow, [Series(Kind.FLOW, str(flow))]) if is_of_topics else None
        return cells.line(metric, of_flow)

    def since(self, flow: Flow) -> int | None:
        """Since when there is history of a flow, in milliseconds since the epoch; None where there is none."""
        found = self._since.get(flow)
        if found is None or self._clock() - found[0] > _SINCE_SECONDS:
            where = pc.field("flow") == str(flow)
            rows = self._read(flow.target, _files(Grain.MINUTE, Kind.FLOW, 0), where, ["start"])
            starts = np.array([]) if rows is None else _milliseconds(rows, "start")
            if not len(starts):
                return None
            found = self._since[flow] = (self._clock(), int(starts.min()))
        return found[1]

    def newest(self, flow: Flow) -> int | None:
        """Moment of the newest sample of a flow that is kept; None where there is none, or it cannot be read."""
        found = self._newest.get(flow.target)
        if found is None or self._clock() - found[0] > _NEWS_SECONDS:
            found = self._newest[flow.target] = (self._clock(), self._newest_into(flow.target))
        return found[1].get(str(flow))

    def _newest_into(self, target: str) -> dict[str, int]:
        # A day is one row of a flow, which has the newest of all its minutes.
        rows = self._read(target, _files(Grain.DAY, Kind.FLOW, 0), None, ["flow", "newest"])
        if rows is None:
            return {}
        newest: dict[str, int] = {}
        for flow, at in zip(rows["flow"].to_pylist(), _milliseconds(rows, "newest").tolist(), strict=True):
            newest[flow] = max(int(at), newest.get(flow, 0))
        return newest

    def _cells(self, span: Span, grain: Grain, flow: Flow, series: Sequence[Series]) -> _Cells | None:
        first, end = grain.start(span.start), -(-span.end // grain.ms) * grain.ms
        asked = (grain, first, end, tuple(series))
        now = self._clock()
        with self._lock:
            kept = self._kept.get(asked)
        if kept is not None and now - kept[0] < _KEPT_SECONDS:
            return kept[1]
        where = (pc.field("flow") == str(flow)) & (pc.field("start") >= _instant(first))
        where &= pc.field("start") < _instant(end)
        kind = series[0].kind
        if kind is Kind.TOPIC:
            where &= pc.field("topic").isin([one.topic for one in series])
        elif kind is Kind.PARTITION:
            where &= (pc.field("topic") == series[0].topic) & (pc.field("partition") == series[0].partition)
        elif kind is Kind.GROUP:
            where &= pc.field("group") == series[0].group
        rows = self._read(flow.target, _files(grain, kind, first), where, _COLUMNS)
        if rows is None:
            return None
        cells = _Cells(rows, series, grain)
        # Else what was decompressed stays with this process. Right behind the reading Arrow's threads hold some of it.
        pa.default_memory_pool().release_unused()
        with self._lock:
            self._kept[asked] = (now, cells)
            while len(self._kept) > 1 and sum(one.size for _, one in self._kept.values()) > _KEPT_BYTES:
                del self._kept[next(iter(self._kept))]
        return cells

    def _read(
        self, name: str, files: list[tuple[str, str, str]], where: pc.Expression | None, columns: list[str]
    ) -> pa.Table | None:
        with self._lock:
            target = self._targets.setdefault(name, _Target(f"{self._settings.path}/{name}"))
        for is_last in (False, True):
            try:
                with target.lock:
                    paths = [unquote(uri) for uri in self._opened(target).file_uris(file_pruning_predicate=files)]
                # Not by deltalake's own data set, which takes milliseconds for each file.
                found: pa.Table = dataset(paths, _STORED, format="parquet").to_table(columns=columns, filter=where)
                self._news.is_new(name, None)
                return found
            except TableNotFoundError:
                target.table = None
                return None
            except Exception as error:  # of deltalake, Arrow, the file system: it was vacuumed, or made anew meanwhile
                target.table = None
                if is_last and self._news.is_new(name, type(error)):
                    log.warning("target=%s its history cannot be read: %s", name, one_line(error))
        return None

    def _opened(self, target: _Target) -> DeltaTable:
        if target.table is None:
            target.table = DeltaTable(target.path)
        elif target.news.is_due(self._clock()):
            target.table.update_incremental()
            target.news.done(self._clock())
        return target.table


def _files(grain: Grain, kind: Kind, first: int) -> list[tuple[str, str, str]]:
    return [("grain", "=", grain.value), ("kind", "=", kind.value), ("day", ">=", str(day_of(first)))]


class _Cells:
    """Rows of the table, spread over series by buckets."""

    def __init__(self, rows: pa.Table, series: Sequence[Series], grain: Grain) -> None:
        self._rows, self._width = rows, grain.ms
        starts = _milliseconds(rows, "start")
        self._starts, self._column = np.unique(starts, return_inverse=True)
        self._row = np.zeros(len(starts), np.int64)
        if series[0].kind is Kind.TOPIC:
            names = pa.array([one.topic for one in series], pa.string())
            self._row = pc.index_in(rows["topic"], names).to_numpy().astype(np.int64)
        self._shape = (len(series), len(self._starts))
        self._newest = np.full(len(self._starts), -1.0)
        np.maximum.at(self._newest, self._column, _milliseconds(rows, "newest"))
        self._lines: dict[tuple[Metric, bool], Line] = {}

    def line(self, metric: Metric, of_flow: _Cells | None) -> Line:
        """Of a metric; rates of topics ask their flow for how long it told of."""
        key = metric, of_flow is None  # where the flow could not be read, the next one to ask tries again
        if key not in self._lines:
            is_latency = metric in _LATENCIES
            self._lines[key] = self._latency(_LATENCIES[metric]) if is_latency else self._traffic(metric, of_flow)
        return self._lines[key]

    def _latency(self, name: str) -> Line:
        count, total, least, most = (self._spread(f"{name}_{part}") for part in ("count", "total", "least", "most"))
        return self._line(np.nan_to_num(count), np.nan_to_num(total), least, most)

    def _traffic(self, metric: Metric, of_flow: _Cells | None) -> Line:
        name = _LAGS.get(metric) or ("bytes" if metric in _BYTES else "records")
        values = self._spread(name)
        if metric in _RATES:
            seconds = self._spread("seconds") if of_flow is None else of_flow.seconds_at(self._starts)
            values = values / np.where(seconds > 0, seconds, np.nan)
        count = (~np.isnan(values)).astype(np.float64)
        return self._line(count, np.nan_to_num(values), values, values)

    def seconds_at(self, starts: Array) -> Array:
        """Time that is told of in the buckets that begin then, of the only series; NaN where it is not known."""
        found = np.full((1, len(starts)), np.nan)
        _, here, there = np.intersect1d(starts, self._starts, return_indices=True)
        found[0, here] = self._spread("seconds")[0, there]
        return found

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return int(self._rows.nbytes) + sum(line.count.nbytes * _OF_A_LINE for line in [*self._lines.values()])

    def _line(self, count: Array, total: Array, least: Array, most: Array) -> Line:
        return Line(self._starts, self._newest, count, total, least, most, bucket_ms=self._width)

    def _spread(self, name: str) -> Array:
        found = np.full(self._shape, np.nan)
        found[self._row, self._column] = _numbers(self._rows, name)
        return found


def _numbers(rows: pa.Table, name: str) -> Array:
    """A column; NaN where it is null."""
    found: Array = rows[name].cast(pa.float64()).to_numpy()
    return found


def _milliseconds(rows: pa.Table, name: str) -> npt.NDArray[np.float64]:
    micros: npt.NDArray[np.int64] = rows[name].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy()
    return (micros // 1000).astype(np.float64)


def _instant(at: int) -> pa.Scalar:
    return pa.scalar(at * 1000, pa.timestamp("us", tz="UTC"))
