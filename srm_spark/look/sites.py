"""Which services say on clusters of other sites that they can be asked: one thread per cluster follows that."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.advertised import TOPIC, HeardAdvertisement, decode
from srm_spark.core.cluster import Cluster
from srm_spark.core.wording import one_line
from srm_spark.errors import FlowError, TargetUnavailable
from srm_spark.flow.clusters import target_alone
from srm_spark.flow.topics.followed import FollowedTopic
from srm_spark.look.threads import ClusterThreads, follow

_CALL_SECONDS = 5.0
_READ_SECONDS = 30.0
_PAUSE_SECONDS = 2.0
_STOP_SECONDS = 5.0
_MOST = 100
"""Addresses of one site; whoever writes more is no service."""
_log = logging.getLogger(__name__)


@dataclass
class Site:
    """What is known of where the services of one cluster are. What it held last counts while it does not answer."""

    alias: str
    """The same everywhere."""
    why_not: str | None = "it was not read yet"
    """Why the cluster cannot be read; None where it can."""
    cluster_id: str | None = None
    """Kafka's own; None where it was not told yet."""
    _heard: dict[bytes, HeardAdvertisement] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def heard(self) -> list[HeardAdvertisement]:
        """The advertisements that were not taken back, the newest first."""
        return sorted((one for one in self._all() if one.said.target == self.alias), key=lambda one: -(one.at or 0))

    def other_names(self) -> set[str]:
        """How else services call this cluster."""
        return {one.said.target for one in self._all()} - {self.alias}

    def _all(self) -> list[HeardAdvertisement]:
        with self._lock:
            return list(self._heard.values())

    def take(self, key: bytes, heard: HeardAdvertisement | None) -> None:
        """Take one in; None takes it back."""
        with self._lock:
            self._heard.pop(key, None)
            if heard is not None and len(self._heard) < _MOST:
                self._heard[key] = heard

    def forget(self) -> None:
        """The topic is another one."""
        with self._lock:
            self._heard.clear()


class SiteReader:
    """Follows one cluster."""

    def __init__(self, site: Site, cluster: Cluster) -> None:
        """Nothing is asked yet."""
        self._site, self._cluster = site, cluster
        self._topic = FollowedTopic(
            cluster, TOPIC, "srm-service|sites", TargetUnavailable, _READ_SECONDS, forget=site.forget
        )
        self._is_there = False

    def look(self) -> None:
        """Take in what is new; what is in the way is told to the site and never raised."""
        try:
            self._look()
        except Exception as error:  # a thread that ended would leave the site as it was last
            if self._site.why_not != one_line(error):
                text = "cluster %s: where its services are cannot be read: %s"
                _log.warning(text, self._site.alias, one_line(error), exc_info=not isinstance(error, FlowError))
            self._site.why_not = one_line(error)
        else:
            self._site.why_not = None

    def _look(self) -> None:
        if self._site.cluster_id is None:
            self._site.cluster_id = self._cluster.cluster_id()
        self._is_there = self._is_there or TOPIC in self._cluster.topics()
        if not self._is_there:
            return
        for record in self._topic.new_records():
            said = decode(record.key, record.value)
            heard = None if said is None else HeardAdvertisement(said, record.timestamp)
            self._site.take(record.key or b"", heard)

    def close(self) -> None:
        """Let go of the connections."""
        self._topic.close()


def _reach(settings: ClusterSettings) -> Cluster:
    return target_alone(settings, "srm-service|sites", _CALL_SECONDS)


class SiteReaders(ClusterThreads):
    """A reader and its thread for each cluster."""

    def __init__(
        self,
        sites: Sequence[Site],
        clusters: Sequence[ClusterSettings],
        reach: Callable[[ClusterSettings], Cluster] = _reach,
    ) -> None:
        """`clusters` are those of the sites, in the same order."""

        def run(site: Site, settings: ClusterSettings, over: threading.Event) -> None:
            follow(over, lambda: SiteReader(site, reach(settings)), partial(_lost, site), _PAUSE_SECONDS)

        of_sites = zip(sites, clusters, strict=True)
        super().__init__(((f"srm site {site.alias}", partial(run, site, one)) for site, one in of_sites), _STOP_SECONDS)


def _lost(site: Site, why: str) -> None:
    site.why_not = why
