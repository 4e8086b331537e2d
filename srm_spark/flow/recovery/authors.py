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
from srm_spark.core.record_batch import Author
from srm_spark.errors import FenceUnavailable, ProtocolUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters

log = logging.getLogger(__name__)

_HARMLESS = frozenset({3, 29})
"""A partition that is not there, or that we may not write to, takes nothing of an older writer either."""


class Authors:
    """Of one run; nothing is asked before `open`."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._fence: Fence | None = None
        self.are_fenced = False
        """Whether everything that this run writes is refused once another one has begun."""
        self.has_refused = False
        """Whether nothing of an older author of this flow is taken any more."""

    def open(self, tell: Callable[[str], None]) -> None:
        """Find out whether the target gives the flow a producer id; `tell` takes what is waited for.

        Raises TargetUnavailable where it is away.
        """
        self.close()
        flow = self._clusters.settings.flow
        try:
            self._fence = self._clusters.make_fence()
            if self._fence is not None:
                self._fence.begin(tell)
                self.are_fenced = True
        except FenceUnavailable as error:
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
            if not is_due:
                return self._fence.begin(tell)
            fenced = self._fence.fence(remotes, tell)
        except ProtocolUnavailable as error:
            raise TargetUnavailable(str(error)) from error
        left = {p: code for p, code in fenced.refused.items() if code not in _HARMLESS}
        for partition, code in left.items():
            log.warning("flow=%s %s is not fenced: error %s", self._clusters.settings.flow, partition, code)
        self.has_refused = not fenced.is_first and not left
        return fenced.author

    def keep_alive(self, author: Author) -> None:
        """Let the target know that the id is in use, or it would forget it. Raises what `next` raises."""
        if self._fence is not None and self.are_fenced:
            try:
                self._fence.keep_alive(author, TopicPartition(self._clusters.settings.progress_topic, 0))
            except ProtocolUnavailable as error:
                raise TargetUnavailable(str(error)) from error

    def close(self) -> None:
        """Let go of the connections."""
        if self._fence is not None:
            self._fence.close()
        self._fence, self.are_fenced = None, False
