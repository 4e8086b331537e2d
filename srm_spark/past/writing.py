"""Writes history: one streaming query per target, from its metrics topics into its table, for as long as it is wanted.

Nothing depends on what Spark remembers: how far is counted stands in the table itself. A query that ends is started
anew, and one whose table is gone counts all that Kafka still holds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from srm_spark.config.render import spark_kafka_options
from srm_spark.config.secrets import SQL_SETTINGS
from srm_spark.config.settings import FlowSettings, HistorySettings
from srm_spark.core.cluster import Cluster
from srm_spark.core.history_rows import Position
from srm_spark.core.metrics import metrics_topic
from srm_spark.core.model import TopicPartition
from srm_spark.core.news import Every, News
from srm_spark.core.wording import one_line
from srm_spark.errors import FlowError, QueryFailed, SessionEnded
from srm_spark.flow.clusters import target_of
from srm_spark.past.batch import HistoryBatch
from srm_spark.spark import SparkSession
from srm_spark.spark.query import Query
from srm_spark.spark.session import (
    LIGHT_SESSION,
    check_connector,
    configure,
    end,
    is_alive,
    listen_for_batches,
    open_session,
    own_session,
    release,
)
from srm_spark.spark.source import stream
from srm_spark.state import first_line
from srm_spark.state.history_table import HISTORY_SETTINGS, HistoryTable

log = logging.getLogger(__name__)

_EARLIEST = -2
"""Spark's word for where a partition begins."""
BATCH_SECONDS = 60.0
_BATCH_RECORDS = 500_000
"""Some 150 MB of samples: of 40,000 partitions that are told of every 5 s."""
_LOOK_SECONDS = 10.0
"""How often it is seen whether the query runs and the topics are the same; after a failure the next try comes then."""
_TIDY_SECONDS = 3600.0
_STOP_SECONDS = 30.0
_GRACE_SECONDS = 15.0
_CALL_SECONDS = 10.0
_ALIVE_SECONDS = 2.0


class TargetHistory:
    """The history of all flows into one target. Not safe to use from several threads."""

    def __init__(
        self,
        session: SparkSession,
        flows: Sequence[FlowSettings],
        history: HistorySettings,
        cluster: Cluster,
        *,
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        """`session` is its own; `flows` are those into `cluster`."""
        self._session, self._settings, self._history, self._cluster = session, flows[0], history, cluster
        self._target = flows[0].flow.target
        self._topics = {metrics_topic(one.flow) for one in flows}
        self._batch_ms = int(batch_seconds * 1000)
        self._table = HistoryTable(session, table_path(history, self._target))
        self._query: Query | None = None
        self._topic_ids: dict[str, str] = {}
        self._partitions: dict[str, int] = {}
        self._tidy = Every(_TIDY_SECONDS)
        self._news = News()
        configure(session, {**HISTORY_SETTINGS, **SQL_SETTINGS})

    def look(self) -> None:
        """Begin, or go on; what is in the way is told once and raised never: the next look tries again."""
        try:
            self._look()
            self._news.is_new("failure", None)
        except Exception as error:  # of Spark, of Delta, of a file system, of the cluster
            self.stop()
            said = one_line(error) if isinstance(error, FlowError) else first_line(error)
            if self._news.is_new("failure", type(error)):  # once, however the words change
                log.warning("target=%s history is not written: %s; it is tried again", self._target, said)

    def _look(self) -> None:
        if self._query is not None and (failure := self._query.failure()) is not None:
            raise QueryFailed(failure.sentence, failure.kind)
        found = self._cluster.topics()
        topic_ids = self._cluster.topic_ids(self._topics & found.keys())
        # One without an id, which the broker does not know yet, would be counted again as another topic.
        partitions = {topic: found[topic] for topic in topic_ids}
        if self._query is None or (partitions, topic_ids) != (self._partitions, self._topic_ids):
            self.stop()
            self._partitions, self._topic_ids = partitions, topic_ids
            if partitions:
                self._query = self._started()

    def _tidied(self) -> None:
        """Between two batches: beside one of them, either would find that the other has changed its files."""
        if self._tidy.is_due(time.monotonic()):
            self._tidy.done(time.monotonic())
            today = datetime.now(timezone.utc).date()
            self._table.forget(today - timedelta(days=self._history.days))
            self._table.tidy(today - timedelta(days=2))

    def _started(self) -> Query:
        self._table.make()
        known = self._table.positions()
        starts = self._starts(known)
        options = spark_kafka_options(
            self._settings.target, self._settings.target_admin, self._settings.admin_timeout_seconds
        )
        log.info("target=%s history is written to %s", self._target, table_path(self._history, self._target))
        return Query(
            stream(self._session, options, starts, _BATCH_RECORDS),
            f"srm history {self._target}",
            lambda _: HistoryBatch(self._table, known, self._topic_ids, self._tidied),
            self._batch_ms,
            self._target,
        )

    def _starts(self, known: Mapping[TopicPartition, Position]) -> dict[TopicPartition, int]:
        """Where to read on. Of a topic that is another one than what is counted, from its beginning."""
        partitions = [TopicPartition(topic, one) for topic, count in self._partitions.items() for one in range(count)]
        ends = self._cluster.end_offsets(partitions)
        starts = {}
        for partition in partitions:
            position, topic_id = known.get(partition), self._topic_ids.get(partition.topic)
            is_same = position is not None and position.topic_id == topic_id
            is_there = position is not None and position.next_offset <= ends.get(partition, 0)
            starts[partition] = position.next_offset if position is not None and is_same and is_there else _EARLIEST
        return starts

    def stop(self) -> None:
        """End with the batch in progress."""
        query, self._query = self._query, None
        if query is not None and not query.stop(_STOP_SECONDS):
            log.warning("target=%s the batch of its history did not end in time", self._target)


def table_path(history: HistorySettings, target: str) -> str:
    """Folder of a target's table."""
    return f"{history.path}/{target}"


def write_history(
    flows: Sequence[FlowSettings],
    history: HistorySettings,
    stop: threading.Event,
    *,
    batch_seconds: float = BATCH_SECONDS,
    reach: Callable[[FlowSettings], Cluster] = lambda settings: target_of(settings, "history"),
) -> None:
    """Write the history of all targets until it is told to stop, in the session that is there or in one of its own.

    Raises SetupError where Spark does not start, and SessionEnded where it ends.
    """
    Path(history.path).mkdir(parents=True, exist_ok=True)
    session, is_ours = open_session(settings=LIGHT_SESSION)
    if not is_ours:
        check_connector(session)
    listen_for_batches(session)
    into: dict[str, list[FlowSettings]] = {}
    for one in flows:
        into.setdefault(one.flow.target, []).append(one.within(_CALL_SECONDS))

    def run(flows: Sequence[FlowSettings]) -> None:
        own = own_session(session)
        try:
            target = TargetHistory(own, flows, history, reach(flows[0]), batch_seconds=batch_seconds)
            while not stop.is_set():
                target.look()
                stop.wait(_LOOK_SECONDS)
            target.stop()
        except FlowError as error:  # the client library refuses the settings of this cluster
            log.error("target=%s history is not written: %s", flows[0].flow.target, one_line(error))
        finally:
            release(own, session)

    threads = [
        threading.Thread(target=run, args=[flows], name=f"srm history of {target}", daemon=True)
        for target, flows in into.items()
    ]
    for thread in threads:
        thread.start()
    while not stop.wait(_ALIVE_SECONDS):
        if not is_alive(session):
            stop.set()
            raise SessionEnded(
                "Spark ended under the job of history; start it again, it goes on where the tables stand"
            )
    for thread in threads:
        thread.join(_STOP_SECONDS + _GRACE_SECONDS)  # its query is interrupted by then, and Spark must outlive that
    if is_ours:
        end(session)
