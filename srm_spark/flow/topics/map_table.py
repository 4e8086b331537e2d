"""Keeps the tables of a running flow (`srm_spark.state`) like the topic in which its offset map and its losses lie.

A periodic task of its own, for the table is a convenience: whatever becomes of it, records flow on. The first write is
that of the whole map, so a table that is lost, damaged or old is made anew; afterwards only what changed is written.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping

from srm_spark.config.settings import FlowSettings
from srm_spark.core.map_rows import MapRow, RowChanges, row_changes, rows
from srm_spark.core.model import KeptLoss, TopicPartition
from srm_spark.core.news import Every, News
from srm_spark.core.offset_map import PartitionMap
from srm_spark.errors import SrmError
from srm_spark.flow.periodic import Periodic, Task
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.spark import SparkSession
from srm_spark.spark.session import configure, is_local, lacks_delta, own_session, release
from srm_spark.state import SETTINGS, LossTable, OffsetMapTable, TableRow, first_line, own_folder

log = logging.getLogger(__name__)

_REST = 1.0
"""Rest so many times as long as a round took: the table must not take Spark away from the records all the time."""
_TIDY_SECONDS = 3600.0


class MapTable:
    """The task. Without `start` nothing happens."""

    def __init__(self, settings: FlowSettings, session: SparkSession, maps: OffsetMaps) -> None:
        """`session` is left alone, the work is done in a copy of it; `maps` are the flow's own."""
        self._settings = settings
        self._session = session
        self._own: SparkSession | None = None
        self._maps = maps
        self._written: dict[TopicPartition, PartitionMap] | None = None
        """What the table holds; None while that is not known."""
        self._losses: list[KeptLoss] | None = None
        """The same of the table of losses."""
        self._tidy = Every(_TIDY_SECONDS)
        self._tidy.done(time.monotonic())
        self._news = News()
        self._is_behind = False
        self._stop = threading.Event()
        self._task: Task | None = None

    def start(self, tasks: Periodic) -> None:
        """Begin as one of `tasks`, unless the settings want no table or this session can have none."""
        if not self._settings.map_table:
            return
        if self._settings.state.is_default and not is_local(self._session):
            text = (
                "flow=%s has no table of its offset map: executors on other machines do not reach a folder of this "
                "one; set state.path to a URI that all of them reach, or to nothing"
            )
            log.info(text, self._settings.flow)
            return
        # Not at once: a flow that has just started has better things to do, and one that fails comes back often.
        name, seconds = f"map table {self._settings.flow}", self._settings.state.interval_seconds
        self._task = tasks.every(seconds, name, self._run, at_once=False, rest=_REST, last=self._let_go)

    @property
    def is_started(self) -> bool:
        """Whether there is a table to keep."""
        return self._task is not None

    def tell_to_stop(self) -> None:
        """Let it end behind the write in progress."""
        self._stop.set()
        if self._task is not None:
            self._task.stop()

    def join(self, seconds: float) -> bool:
        """Wait until it has ended; False when Spark did not return in time."""
        return self._task is None or self._task.join(seconds)

    def _run(self) -> None:
        if not self._try():
            self.tell_to_stop()

    def _let_go(self) -> None:
        if self._own is not None:
            release(self._own, self._session)

    def _try(self) -> bool:
        """Bring the table up to date; False where that is of no use in this session."""
        path = self._settings.map_table
        try:
            if self._own is None:
                self._own = own_session(self._session)
                configure(self._own, SETTINGS)
            self.write_map(OffsetMapTable(self._own, self._settings.flow, path))
            self.write_losses(LossTable(self._own, self._settings.flow, self._settings.loss_table))
        except SrmError as error:  # nothing was written
            self._tell(type(error), str(error))
        except Exception as error:  # of Spark, of Delta, of a file system
            self._written = self._losses = None
            if self._stop.is_set():
                return False
            lacking = lacks_delta(self._session)
            remedy = f"if this stays, delete {path}: it is made anew, and no record depends on it"
            self._tell(type(error), f"{first_line(error)}; {lacking or remedy}")
            return lacking is None
        else:
            self._tell(None)
        return True

    def _tell(self, failure: type[Exception] | None, text: str = "") -> None:
        """Log what stands in the way, once for each kind of it: its words have numbers of tasks and files."""
        was_behind, self._is_behind = self._is_behind, failure is not None
        if self._news.is_new("failure", failure):
            log.warning("flow=%s the table of its offset map is not up to date: %s", self._settings.flow, text)
        if was_behind and failure is None:
            log.info("flow=%s the table of its offset map is up to date again", self._settings.flow)

    def write_map(self, table: OffsetMapTable) -> None:
        """Bring the table of the map up to date; what Spark or Delta refuses is raised as it comes."""
        self._maps.refresh()
        with self._maps.lock:
            now = {partition: known.copy() for partition, known in self._maps.maps.items()}
        if self._stop.is_set():  # the maps may have been let go of, and the table would be emptied
            return
        before = self._written if self._written is not None and table.is_there() else None
        if before is None:
            self._losses = None  # its folder may be gone, too
            if self._settings.state.is_default:
                own_folder(self._settings.state.path)
            table.replace(_rows(now))
            log.info("flow=%s its offset map is a table: %s", self._settings.flow, table.path)
        else:
            changes = {p: known for p, known in _changes(before, now) if any(known)}
            if changes:
                table.merge(_put(now, changes), _gone(changes))
        self._written = now
        if self._tidy.is_due(time.monotonic()):
            self._tidy.done(time.monotonic())
            table.tidy()

    def write_losses(self, table: LossTable) -> None:
        """Write the table of losses anew, where there is a new one."""
        with self._maps.lock:
            now = list(self._maps.losses.values())
        if now != self._losses and not self._stop.is_set():
            table.replace(now)
            self._losses = now


_Maps = Mapping[TopicPartition, PartitionMap]
_NOTHING = PartitionMap()


def _changes(before: _Maps, now: _Maps) -> Iterator[tuple[TopicPartition, RowChanges]]:
    for partition in {**before, **now}:
        yield partition, row_changes(before.get(partition, _NOTHING), now.get(partition, _NOTHING))


def _rows(maps: _Maps) -> Iterator[TableRow]:
    for partition, known in maps.items():
        yield from (_table_row(partition, known.topic_id, row) for part in known.parts() for row in rows(part))


def _put(maps: _Maps, changes: Mapping[TopicPartition, RowChanges]) -> Iterator[TableRow]:
    for partition, change in changes.items():
        for row in change.put:
            yield _table_row(partition, maps[partition].topic_id, row)


def _gone(changes: Mapping[TopicPartition, RowChanges]) -> Iterable[TableRow]:
    return (TableRow(p.topic, p.partition, None, start) for p, change in changes.items() for start in change.gone)


def _table_row(partition: TopicPartition, topic_id: str | None, row: MapRow) -> TableRow:
    return TableRow(
        partition.topic,
        partition.partition,
        topic_id,
        row.source_start,
        row.source_end,
        row.target_start,
        row.records,
    )
