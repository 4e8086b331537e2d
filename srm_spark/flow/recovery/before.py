"""Who wrote a flow before its next generation does, and what of his may still be under way to the target."""

from __future__ import annotations

import logging
from collections.abc import Callable

from srm_spark.core.last_run import UNKNOWN_RUN, LastRun
from srm_spark.core.provenance import Stamp
from srm_spark.core.record_batch import Author
from srm_spark.errors import FlowError
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.recovery.authors import Authors
from srm_spark.flow.recovery.settling import Remotes, Settle, TargetEnds, Tell, settled
from srm_spark.flow.topics.progress import note_run
from srm_spark.kafka.lease import Lease

log = logging.getLogger(__name__)


class Before:
    """The last writer, as one run of the flow knows him: first that of the run before, then its own generations."""

    def __init__(self, clusters: Clusters, tell: Tell, wait: Callable[..., TargetEnds] = settled) -> None:
        """`tell` takes what is waited for."""
        self._clusters = clusters
        self._tell = tell
        self._settled = wait
        self._run = UNKNOWN_RUN
        self._authors = Authors(clusters)
        self._author: Author | None = None

    @property
    def is_clean(self) -> bool:
        """Whether nothing of his can be under way."""
        return self._run.is_clean

    @property
    def _is_due(self) -> bool:
        """Whether partitions are told: who wrote under another id than the flow's, or none, would not be refused."""
        return not self.is_clean and self._run.is_fenced

    @property
    def was_exactly_once(self) -> bool:
        """Whether he wrote in transactions, so that a new term refuses what is under way."""
        return self._run.is_exactly_once

    @property
    def stamp(self) -> Stamp | None:
        """What he put on his copies; where that is not recorded, what is put on them now."""
        settings = self._clusters.settings
        if self._run.is_stamped is None:
            return settings.stamp
        return settings.own_stamp if self._run.is_stamped else None

    def follow(self, last: LastRun, *, after_failure: bool) -> None:
        """Take over from the last run, and say that another one begins, before anything is written."""
        self._run = last._replace(is_clean=last.is_clean and not after_failure)
        if last.is_fenced or not self._clusters.settings.is_exactly_once:
            self._authors.open(self._tell, is_due=self._is_due)
        note_run(self._clusters, is_clean=False, is_fenced=self._is_fenced)

    def take_over(self, remotes: Remotes) -> Author | None:
        """Wait until nothing of his is under way to these remote partitions; as whom the next generation writes them.

        None where librdkafka's producers write. Raises TargetUnavailable; LeaseLost where another driver takes over.
        """
        author = self._authors.next(remotes.values(), self._tell, is_due=self._is_due)
        if not self.is_clean:
            self.wait(remotes)
        return None if self._clusters.settings.is_exactly_once else author

    def begin(self, author: Author | None, *, in_transactions: bool) -> None:
        """A generation of our own writes from now on."""
        self._author = author
        self._run = LastRun(True, in_transactions, self._clusters.settings.provenance_enabled, self._is_fenced)

    def keep_alive(self) -> None:
        """Let the target know that the flow's producer id is in use. Raises what `take_over` raises."""
        if self._author is not None:
            self._authors.keep_alive()

    def close(self) -> None:
        """Let go of the connections."""
        self._authors.close()

    @property
    def are_fenced(self) -> bool:
        """Whether each start takes over the producer id of plain records, and so ends what others do under it."""
        return self._authors.are_fenced

    @property
    def _is_fenced(self) -> bool:
        return self._authors.are_fenced and not self._clusters.settings.is_exactly_once

    def cut_off(self) -> None:
        """It was interrupted: something of it may be under way."""
        self._run = self._run._replace(is_clean=False)

    def note_clean(self, lease: Lease) -> None:
        """Spare the next start its wait, where nothing of this run can be under way."""
        if not self.is_clean or not lease.is_held():
            return
        try:
            note_run(self._clusters, is_clean=True, is_fenced=self._is_fenced)
        except FlowError as error:
            flow = self._clusters.settings.flow
            log.warning("flow=%s the next start will wait for what may be under way: %s", flow, error)

    @property
    def settle(self) -> Settle | None:
        """Waits until nothing of his is under way; None where that is done."""
        return self.wait if self.is_clean else None

    def wait(self, remotes: Remotes) -> TargetEnds:
        """Wait until nothing of his is under way any more. Raises TargetUnavailable where that takes too long.

        A flow that has never run says so before it writes anything: where nothing is written either, there was nobody.
        """
        if self._run == UNKNOWN_RUN:
            ends = self._clusters.target.end_offsets(remotes.values())
            if not any(ends.values()):
                return ends
        is_fenced = self.was_exactly_once or (self._run.is_fenced and self._authors.has_refused)
        return self._settled(self._clusters, remotes, is_fenced=is_fenced, stamp=self.stamp, tell=self._tell)
