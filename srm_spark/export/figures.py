"""What the figures of one flow come to at a scrape. What is not known, or was true before, is left out."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from srm_spark.config.settings import ClusterSettings, FlowSettings
from srm_spark.config.tls import login_end
from srm_spark.core.driver_status import MISSED_WORDS, FlowState
from srm_spark.core.metrics import PAUSED
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.tallies import Tally
from srm_spark.errors import SrmError
from srm_spark.flow.meter import GroupPartition, Period, Seen, View
from srm_spark.flow.status import FlowStatus

log = logging.getLogger(__name__)
_HOUR_MS = 3_600_000
ALL = "all"
"""In place of the number of a partition: all of the topic together."""


@dataclass(frozen=True)
class Lag:
    """How far some partitions are behind, together; None where one of them is not known."""

    records: int | None
    seconds: float | None


@dataclass(frozen=True)
class Place:
    """A partition of the source, or all of a topic."""

    topic: str
    partition: str
    remote: str
    """Name of the remote topic."""


@dataclass(frozen=True)
class FlowFigures:
    """Of one flow of a driver."""

    settings: FlowSettings
    status: FlowStatus
    view: View
    period: Period | None
    """The newest; None before the first, or where there are none."""
    now: int
    """Milliseconds since the epoch."""
    has_partitions: bool = False

    @property
    def flow(self) -> Flow:
        """Which one."""
        return self.settings.flow

    @property
    def is_running(self) -> bool:
        """Whether what is true of the moment is known."""
        return self.status.state is FlowState.RUNNING

    @property
    def checked_ago(self) -> float | None:
        """Seconds since the source has answered for the partition that it answered for least lately."""
        checked = [seen.checked_at for seen in self.view.seen.values()]
        known = [at for at in checked if at is not None]
        return max(0.0, (self.now - min(known)) / 1000) if known and len(known) == len(checked) else None

    def certificate_end(self, cluster: ClusterSettings) -> float | None:
        """When the certificate ends by which the flow logs in to a cluster; None where there is none."""
        login = {name: value for name, value in cluster.properties.items() if name.startswith(("ssl.", "security."))}
        return _end_of(frozenset(login.items()), self.now // _HOUR_MS)

    @property
    def paused(self) -> int:
        """How many partitions stand still."""
        return sum(1 for seen in self.view.seen.values() if seen.state == PAUSED)

    @property
    def fresh(self) -> Period | None:
        """The newest period, while it runs, unless the next ones are missing."""
        every = self.settings.metrics.seconds
        if self.period is None or every is None or not self.is_running or self.period.seconds <= 0:
            return None
        return self.period if self.now - self.period.at <= 1000 * MISSED_WORDS * every else None

    def lags(self) -> Iterator[tuple[Place, Lag]]:
        """Of each topic, or of each partition where these are wanted."""
        if not self.is_running:
            return
        if self.has_partitions:
            for partition, seen in self.view.seen.items():
                yield self.place(partition), self._lag([(partition, seen)])
        else:
            yield from self.topic_lags()

    def topic_lags(self) -> Iterator[tuple[Place, Lag]]:
        """Of each topic."""
        topics: dict[str, list[tuple[TopicPartition, Seen]]] = {}
        for partition, seen in self.view.seen.items() if self.is_running else ():
            topics.setdefault(partition.topic, []).append((partition, seen))
        for topic, found in topics.items():
            yield self._of_topic(topic), self._lag(found)

    def totals(self) -> Iterator[tuple[Place, Tally]]:
        """What was copied since the driver began, of each topic or partition."""
        if self.has_partitions:
            yield from ((self.place(partition), tally) for partition, tally in self.view.partitions.items())
        else:
            yield from self.topic_totals()

    def topic_totals(self) -> Iterator[tuple[Place, Tally]]:
        """The same of each topic."""
        yield from ((self._of_topic(topic), tally) for topic, tally in self.view.topics.items())

    def copied(self) -> Iterator[tuple[Place, Tally, float]]:
        """What was copied in the newest period, and its seconds: nothing is an answer, too, of what is not paused."""
        period = self.fresh
        if period is None:
            return
        found: dict[Place, Tally] = {}
        for partition in self.view.seen.keys() | period.copied.keys():
            tally = found.setdefault(self.place(partition), Tally())
            if partition in period.copied:
                tally.add(period.copied[partition])
        yield from ((place, tally, period.seconds) for place, tally in found.items())

    def checkpoints(self) -> Mapping[GroupPartition, Tally]:
        """Those that were written in the newest period."""
        return {} if self.fresh is None else self.fresh.checkpoints

    def place(self, partition: TopicPartition) -> Place:
        """As whose a partition is shown."""
        place = self._of_topic(partition.topic)
        return Place(place.topic, str(partition.partition), place.remote) if self.has_partitions else place

    def _of_topic(self, topic: str) -> Place:
        remote = self.view.remotes.get(topic)
        return Place(topic, ALL, remote or self.settings.policy().format_remote_topic(self.flow.source, topic))

    def _lag(self, found: Iterable[tuple[TopicPartition, Seen]]) -> Lag:
        records, seconds = [], []
        for partition, seen in found:
            records.append(seen.lag)
            seconds.append(seen.lag_seconds(self.now, self.view.newest.get(partition)))
        known_records = [one for one in records if one is not None]
        known_seconds = [one for one in seconds if one is not None]
        return Lag(
            sum(known_records) if len(known_records) == len(records) else None,
            max(known_seconds) if known_seconds and len(known_seconds) == len(seconds) else None,
        )


@lru_cache(maxsize=1000)
def _end_of(login: frozenset[tuple[str, str]], hour: int) -> float | None:  # noqa: ARG001 - a store is opened once an hour
    try:
        return login_end(dict(login))
    except SrmError as error:
        log.warning("when a client's certificate ends is not known: %s", error)
        return None
