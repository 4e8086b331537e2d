"""As whom the generations of one run write records: each under a new epoch of the flow's own producer id.

Where the target gives one, older writers are refused by its brokers: processes that were stopped and go on, executors
that outlive their driver, requests that sat behind a quota. Where it does not, or cannot be asked, records travel all
the same, and a start behind an unclean end waits until the target stands still.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from srm_spark.core.cluster import Fence
from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Author, Fenced
from srm_spark.errors import FenceUnavailable, ProtocolUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.internal_topics import owned_partitions

log = logging.getLogger(__name__)

_GONE, _DENIED = 3, 29
"""A partition that is not there takes nothing of an older writer either, nor does a remote one we may not write to."""


class Authors:
    """Of one run; nothing is asked before `open`."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._fence: Fence | None = None
        self.are_fenced = False
        """Whether everything that this run writes is refused once another one has begun."""
        self.has_refused = False
        """Whether nothing of an older author of this flow is taken any more."""

    def open(self, tell: Callable[[str], None], *, is_due: bool) -> None:
        """Find out whether the target gives the flow a producer id; `tell` takes what is waited for.

        Where it `is_due`, the topics that hold the flow's state hear of its new epoch: what is read of them from here
        on is all that an older owner has written. Raises TargetUnavailable where the target is away, LeaseLost where
        another driver does the same.
        """
        self.close()
        flow = self._clusters.settings.flow
        try:
            self._fence = self._clusters.make_fence()
            if self._fence is not None:
                self._become(self._fence, [], tell, is_due=is_due)
                self.are_fenced = True
        except FenceUnavailable as error:
            if is_due and error.may_pass:  # there was one before: without it, writers of then would never be refused
                raise TargetUnavailable(str(error)) from error
            log.warning(
                "flow=%s %s: writers of this run are not fenced off when another one takes over, so its start waits "
                "until the target stands still; see docs/delivery.md",
                flow,
                error,
            )
        except ProtocolUnavailable as error:
            if self._fence is not None:
                raise TargetUnavailable(str(error)) from error
            log.warning("flow=%s records are written by librdkafka, and nothing is fenced: %s", flow, error)

    def next(self, remotes: Iterable[TopicPartition], tell: Callable[[str], None], *, is_due: bool) -> Author | None:
        """The author of the next generation; None where librdkafka's producers write.

        Where it `is_due`, `remotes` hear of it, and older authors are refused there: each gets a marker. Raises
        LeaseLost where another driver does the same, TargetUnavailable where the target is away or gives no id now.
        """
        self.has_refused = False
        if self._fence is None:
            return None
        try:
            if not self.are_fenced:
                return self._fence.plain()
            return self._become(self._fence, remotes, tell, is_due=is_due)
        except ProtocolUnavailable as error:
            raise TargetUnavailable(str(error)) from error

    def keep_alive(self) -> None:
        """Let the target know that the id is in use, or it would forget it. Raises what `next` raises."""
        if self.are_fenced:
            try:
                self._clusters.current.keep_alive(owned_partitions(self._clusters))
            except ProtocolUnavailable as error:
                raise TargetUnavailable(str(error)) from error

    def close(self) -> None:
        """Let go of the connections."""
        if self._fence is not None:
            self._clusters.current.end()
            self._fence.close()
        self._fence, self.are_fenced = None, False

    def _become(
        self, fence: Fence, remotes: Iterable[TopicPartition], tell: Callable[[str], None], *, is_due: bool
    ) -> Author:
        if not is_due:
            return self._clusters.current.become(fence, lambda: fence.begin(tell))
        copied = set(remotes)
        partitions = {*owned_partitions(self._clusters), *copied}
        found = list[Fenced]()

        def fenced() -> Author:
            found.append(fence.fence(partitions, tell))
            return found[0].author

        author = self._clusters.current.become(fence, fenced)
        # Control records may be written by another login than the one that marks partitions.
        harmless = {_GONE: partitions, _DENIED: copied}
        left = {p: code for p, code in found[0].refused.items() if p not in harmless.get(code, ())}
        for partition, code in left.items():
            log.warning("flow=%s %s is not fenced: error %s", self._clusters.settings.flow, partition, code)
        self.has_refused = not found[0].is_first and not left.keys() & copied
        return author
