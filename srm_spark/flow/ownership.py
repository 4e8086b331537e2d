"""Whose a flow is, of several drivers: waits for the lease, and says who should have it instead of us."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from srm_spark.config.keys_connector import SOURCE_ID_KEY
from srm_spark.core.acts import Command
from srm_spark.core.cluster import Cluster
from srm_spark.core.spreading import StandBy
from srm_spark.errors import AnotherSource, LeaseHeld, SourceUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.share import OTHERS_SECONDS, Share, new_driver
from srm_spark.flow.topics.drains import Drains
from srm_spark.kafka.lease import Lease

log = logging.getLogger(__name__)

_ASK_SECONDS = 2.0


class Ownership:
    """Of one run of a flow."""

    def __init__(self, clusters: Clusters, lease: Lease, share: Share | None, *, waits: bool) -> None:
        """Without the driver's `share` of the work the flow stays here; without `waits` nobody is waited for."""
        self._settings, self._flow = clusters.settings, clusters.settings.flow
        self._lease, self._waits = lease, waits
        self._source = clusters.source
        self._asked: Cluster | None = None
        """The source while another driver has the flow: nothing may hang on its answer then."""
        self._share, self._is_given = share or Share(new_driver()), share is not None
        self._drains = Drains(clusters)
        self._source_id: str | None = None
        """None until it is known; empty where the cluster has none."""
        self.was_anothers = False
        """Whether another driver had it."""

    def take(
        self, stop: threading.Event, is_up: Callable[[], bool], is_well: Callable[[], bool], tell: Callable[[str], None]
    ) -> bool:
        """Wait until it is ours, and `tell` for whom; False where it was told to `stop` before.

        `is_up`: Spark is there. `is_well`: both clusters answer. Who lacks one of them stands by for nothing.
        Raises LeaseHeld where somebody has it and nobody is waited for, AnotherSource where it is another
        installation's, SourceUnavailable, TargetUnavailable.
        """
        while not stop.is_set():
            owner = self._owner(stop, is_up)
            if stop.is_set():
                return False
            if owner is None:
                self._require_our_source(owner)
                if self._lease.acquire():
                    self._share.begin(self._flow)
                    return True
            reason = f"another driver owns the flow: {owner or 'it was faster, or the target takes no claim'}"
            if not self._waits:
                raise LeaseHeld(f"flow {self._flow}: {reason}; stop that driver, or start without --no-wait")
            if owner is not None:
                self._require_our_source(owner)
            tell(reason)
            self.was_anothers = True
            self._share.drain(self._flow, self._drains.look())
            self._lease.stand_by(lambda: self._says(is_up() and is_well()))
            self._lease.await_free(stop, self._settings.timings.tick_seconds)
        return False

    def drained(self, drained: Mapping[str, Command]) -> None:
        """These hosts shall not have it."""
        self._share.drain(self._flow, drained)

    def copied(self, size: int) -> None:
        """So many bytes of it."""
        self._share.copied(self._flow, size)

    def goes(self, drained: Mapping[str, Command]) -> str | None:
        """To whom it goes now, and why; None for nobody. These hosts shall not have it."""
        if not self._is_given:
            return None
        self._share.drain(self._flow, drained)
        wanted = drained.get(self._share.host)
        if wanted is None and not self._settings.is_spread:
            return None
        others = [one for one in self._lease.standbys() if one.driver.host not in drained]
        other = self._share.goes_to(self._flow, others)
        if other is None:
            return None
        why = "which has less to do" if wanted is None else f"for somebody wants that: {wanted}"
        return f"goes to {other.driver.place}, {why}"

    def end(self) -> None:
        """It is not ours any more, or never was."""
        self._share.end(self._flow)
        self._drains.close()
        self._lease.release()

    def _require_our_source(self, owner: str | None) -> None:
        """Two files may call two clusters by one name: records of both in one remote topic could not be told apart.

        While somebody copies from one cluster, the flow is never copied from another one; behind that, only where the
        file says so: who stops for a moment must not lose it to whoever waits.
        """
        if owner is None:
            self._source_id = self._source.cluster_id() or ""  # a name may lead elsewhere than when we began to wait
        elif self._source_id is None:
            self._asked = self._asked or self._source.beside(f"{self._flow}|its id", _ASK_SECONDS)
            try:
                self._source_id = self._asked.cluster_id() or ""
            except SourceUnavailable:
                return
        ours, stated, before = self._source_id, self._settings.source_id, self._lease.copied_from
        servers = self._settings.source.bootstrap_servers
        what = f"flow {self._flow}: {servers} leads to the Kafka cluster {ours or '(no id)'}"
        if stated and ours != stated:
            raise AnotherSource(f"{what}, and {SOURCE_ID_KEY} says {stated}; correct one of them")
        self._lease.copy_from(ours)
        if not ours or before in ("", ours):
            return
        if owner is not None:
            text = f"{what}, but a driver of another installation copies the flow from {before}: {owner}"
            raise AnotherSource(f"{text}; give the source another alias in one of both files")
        if not stated:
            text = f"{what}, but the flow was copied from {before}; give the source another alias"
            raise AnotherSource(f"{text}, or, where it was built anew, set {self._flow}.{SOURCE_ID_KEY} = {ours}")
        log.warning(
            "flow=%s is copied from the Kafka cluster %s from now on, and was from %s", self._flow, ours, before
        )

    def _says(self, can_run_it: bool) -> StandBy | None:
        return self._share.stand_by(self._flow) if self._is_given and can_run_it else None

    def _owner(self, stop: threading.Event, is_up: Callable[[], bool]) -> str | None:
        """Who has the lease; None where nobody has, and nobody with less to do wants it either."""
        owner = self._lease.other_owner()
        if owner is not None or not self._is_given:
            return owner
        others: list[StandBy] = self._lease.standbys()
        if others:  # whether we shall have it matters to them alone
            self._share.drain(self._flow, self._drains.look())
        seconds = self._share.seconds_to_others(self._flow, others)
        if others and not is_up():
            seconds = max(seconds, OTHERS_SECONDS)
        if not seconds or stop.wait(seconds):
            return None
        return self._lease.other_owner()
