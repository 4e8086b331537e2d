"""Follows the metrics topics of one target, and its list of remote topics, into a `Board`: one thread per target.

A target that is away holds up nobody but its own flows, which are unknown meanwhile. Nothing is committed anywhere: a
service that starts reads what is there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster, ReadRecord
from srm_spark.core.metrics import META_TOPIC, decode, decode_meta, decode_meta_key, metrics_topic, newer
from srm_spark.core.news import Every
from srm_spark.core.series import WINDOW_MS
from srm_spark.core.wording import one_line
from srm_spark.errors import FlowError, TargetUnavailable
from srm_spark.flow.clusters import target_of
from srm_spark.flow.topics.followed import FollowedTopic
from srm_spark.look.board import Board
from srm_spark.look.threads import ClusterThreads, follow

_CALL_SECONDS = 5.0
"""A cluster that does not answer in this time counts as away."""
_READ_SECONDS = 30.0
"""A topic that yields nothing for so long counts as unreadable; one that yields goes on the next time."""
_PAUSE_SECONDS = 1.0
_MISSING_SECONDS = 5.0
"""How often topics are looked for that are not there yet."""
_STOP_SECONDS = 5.0
_log = logging.getLogger(__name__)


class MetricsReader:
    """What one target says; `look` takes in what came since the last time."""

    def __init__(self, board: Board, flows: Sequence[FlowSettings], cluster: Cluster) -> None:
        """`flows` are those into `cluster`."""
        self._board, self._cluster = board, cluster
        self._alias = flows[0].flow.target
        self._topics = {
            metrics_topic(one.flow): self._follow(metrics_topic(one.flow), partial(board.clear, one.flow))
            for one in flows
        }
        self._meta = self._follow(META_TOPIC, lambda: None)
        self._there: set[str] = set()
        self._missing = Every(_MISSING_SECONDS)

    def _follow(self, topic: str, forget: Callable[[], None]) -> FollowedTopic:
        return FollowedTopic(
            self._cluster, topic, f"srm-service|{topic}", TargetUnavailable, _READ_SECONDS, forget=forget
        )

    def look(self) -> None:
        """Take in what is new; what is in the way is told to the board and never raised."""
        taken = [0]
        try:
            self._look(taken)
        except FlowError as error:
            if not taken[0]:  # else it is only far from its end
                self._lost(error)
        except Exception as error:  # a thread that ended would leave its flows as they were last
            _log.exception("reading the metrics of cluster %s failed", self._alias)
            self._lost(error)
        else:
            if self._board.targets[self._alias].why_not is not None:
                _log.info("cluster %s: its metrics are read", self._alias)
            self._board.read(self._alias)

    def _lost(self, error: Exception) -> None:
        if self._board.targets[self._alias].why_not != one_line(error):
            _log.warning("cluster %s: its metrics cannot be read: %s", self._alias, one_line(error))
        self._board.lost(self._alias, one_line(error))

    def _look(self, taken: list[int]) -> None:
        followed = {META_TOPIC: self._meta, **self._topics}
        if followed.keys() - self._there and self._missing.is_due(time.monotonic()):
            self._there |= followed.keys() & self._cluster.topics().keys()
            self._missing.done(time.monotonic())
        view = self._board.targets[self._alias]
        if view.cluster_id is None:
            view.cluster_id = self._cluster.cluster_id()
        for name, topic in followed.items():
            if name in self._there:
                take = self._take_meta if name == META_TOPIC else self._take
                for record in topic.new_records():
                    take(record)
                    taken[0] += 1

    def _take(self, record: ReadRecord) -> None:
        if record.timestamp is not None and record.timestamp < self._board.now_ms() - WINDOW_MS:
            return
        sample = decode(record.key, record.value)
        if sample is not None:
            self._board.take(sample, record.timestamp)
        elif record.value is not None:
            self._unread(record)

    def _take_meta(self, record: ReadRecord) -> None:
        about = decode_meta_key(record.key)
        meta = decode_meta(record.key, record.value)
        if about is None or (meta is None and record.value is not None):
            self._unread(record)
        else:
            self._board.take_meta(*about, meta)

    def _unread(self, record: ReadRecord) -> None:
        unread = self._board.unread
        if newer(record.key, record.value):
            unread.newer += 1
            if unread.newer == 1:
                _log.warning(
                    "cluster %s holds metrics of a newer version, which are not counted: update this service",
                    self._alias,
                )
        else:
            unread.garbage += 1
            if unread.garbage == 1:
                _log.warning("cluster %s: a record of a metrics topic is none of ours; it is left out", self._alias)

    def close(self) -> None:
        """Let go of the connections."""
        for topic in (self._meta, *self._topics.values()):
            topic.close()


class Readers(ClusterThreads):
    """A reader and its thread for each target."""

    def __init__(
        self,
        board: Board,
        flows: Sequence[FlowSettings],
        reach: Callable[[FlowSettings], Cluster] = lambda settings: target_of(settings, "service"),
    ) -> None:
        def run(target: str, over: threading.Event) -> None:
            into = [one.within(_CALL_SECONDS) for one in flows if one.flow.target == target]
            make = partial(_reader, board, into, reach)
            follow(over, make, partial(board.lost, target), _PAUSE_SECONDS)

        super().__init__(((f"srm metrics of {one}", partial(run, one)) for one in board.targets), _STOP_SECONDS)


def _reader(board: Board, flows: Sequence[FlowSettings], reach: Callable[[FlowSettings], Cluster]) -> MetricsReader:
    return MetricsReader(board, flows, reach(flows[0]))
