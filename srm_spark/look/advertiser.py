"""Says on each target where this service can be asked, as long as it runs, and takes that back when it ends."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from srm_spark.config.settings import FlowSettings, ServiceSettings
from srm_spark.core.advertised import TOPIC, Address, Advertisement, encode
from srm_spark.core.cluster import Cluster, ControlRecord, Writer
from srm_spark.core.news import News
from srm_spark.core.wording import one_line
from srm_spark.errors import SrmError, TargetUnavailable
from srm_spark.flow.clusters import target_of
from srm_spark.flow.topics.internal_topics import advertisements_topic, ensure_topic
from srm_spark.look.threads import ClusterThreads

EVERY_SECONDS = 30.0
_CALL_SECONDS = 5.0
_STOP_SECONDS = 7.0
_ANY_HOST = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - names for it
_log = logging.getLogger(__name__)


def own_address(
    service: ServiceSettings, *, is_local: bool, name: Callable[[], str] = socket.getfqdn
) -> Address | None:
    """Where others find this service; None where it is reached by its own machine alone. `name` is that of the host."""
    said = service.advertised
    if said.host is None and is_local:
        return None
    host = said.host or (name() if service.host in _ANY_HOST else service.host)
    protocol = said.protocol or ("http" if service.certificate is None else "https")
    return Address(protocol, host, said.port or service.port, said.path)


class Advertisements:
    """What is said on one target. Not safe to use from several threads."""

    def __init__(self, said: Advertisement, cluster: Cluster, replication_factor: int) -> None:
        """Nothing is asked of the cluster yet."""
        self._said, self._cluster, self._factor = said, cluster, replication_factor
        self._writer: Writer | None = None
        self._has_said = False
        self._news = News()

    def renew(self) -> None:
        """Say it once more; what is in the way is told once, and never raised."""
        try:
            self._write(encode(self._said))
            self._has_said = True
            self._news.is_new("failure", None)
        except Exception as error:  # the service answers all the same to those who know its address
            self._writer = None
            if self._news.is_new("failure", type(error)):
                text = "cluster %s: other services are not told where this one is, and it is tried again: %s"
                is_ours = isinstance(error, SrmError)
                _log.warning(text, self._cluster.alias, one_line(error), exc_info=not is_ours)

    def withdraw(self) -> None:
        """Take it back, where it was said."""
        if not self._has_said:
            return
        try:
            self._write((encode(self._said)[0], None))
        except SrmError as error:
            _log.warning("cluster %s still says where this service was: %s", self._cluster.alias, one_line(error))

    def _write(self, record: tuple[bytes, bytes | None]) -> None:
        if self._writer is None:
            ensure_topic(self._cluster, advertisements_topic(self._factor))
            self._writer = self._cluster.writer("srm-service|sites", TargetUnavailable, seconds=_CALL_SECONDS)
        self._writer.write([ControlRecord(TOPIC, *record, partition=0, timestamp=int(time.time() * 1000))])


class Advertiser(ClusterThreads):
    """Says it on each target."""

    def __init__(
        self,
        address: Address,
        flows: Sequence[FlowSettings],
        replication_factor: int | None = None,
        *,
        every: float = EVERY_SECONDS,
        reach: Callable[[FlowSettings], Cluster] = lambda settings: target_of(settings, "service"),
    ) -> None:
        """`flows` are those that it tells of."""

        def run(target: str, one: FlowSettings, over: threading.Event) -> None:
            factor = one.metrics_factor if replication_factor is None else replication_factor
            _advertise(Advertisement(target, address, every), lambda: reach(one.within(_CALL_SECONDS)), factor, over)

        targets = {one.flow.target: one for one in flows}
        super().__init__(
            ((f"srm address on {name}", partial(run, name, one)) for name, one in targets.items()), _STOP_SECONDS
        )


def _advertise(said: Advertisement, reach: Callable[[], Cluster], factor: int, over: threading.Event) -> None:
    try:
        advertisements = Advertisements(said, reach(), factor)
    except SrmError as error:  # the client library refuses the settings of this cluster: its reader says so, too
        _log.warning("cluster %s: other services are not told where this one is: %s", said.target, one_line(error))
        return
    while not over.is_set():
        advertisements.renew()
        over.wait(said.every)
    advertisements.withdraw()
