"""Changes the lists on the target, for a command: no driver has to run, and the source may be down."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping

from srm_spark.config.settings import control_topic
from srm_spark.core.cluster import Cluster, ControlRecord
from srm_spark.core.lists import Act, ListState, act_key, encode_act, in_parts
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.topics.internal_topics import ensure_topic, lists_topic
from srm_spark.flow.topics.lists import ActLog

_LOOK_SECONDS = 0.05
_COPIES = 3
"""Of the topic where no file says how many, on a cluster that has so many brokers."""


class ListWriter:
    """The lists of the flows from one source to this target."""

    def __init__(
        self,
        target: Cluster,
        source: str,
        *,
        reads: Cluster | None = None,
        producer: Mapping[str, str] | None = None,
        replication_factor: int | None = None,
    ) -> None:
        """`reads` is the target as it is read, where that takes other properties; `producer` are some to write with."""
        self.topic = control_topic(source)
        self._target, self._producer, self._factor = target, producer, replication_factor
        self._acts = ActLog(target if reads is None else reads, self.topic, "srm-control lists")

    def state(self) -> ListState:
        """What all acts add up to now; nothing where there is no topic. Raises TargetUnavailable."""
        if self._acts.is_there:
            self._acts.refresh()
        return self._acts.state

    def write(self, act: Act) -> ListState:
        """Write an act and read it back: what all acts add up to then.

        Raises TargetUnavailable; where it does not come back in time it may count all the same.
        """
        factor = self._factor or min(_COPIES, self._target.broker_count())
        ensure_topic(self._target, lists_topic(self.topic, factor))
        written = {act_key(uuid.uuid4().hex): part for part in in_parts(act)}
        records = [ControlRecord(self.topic, key, encode_act(part), partition=0) for key, part in written.items()]
        self._target.writer("srm-control lists", TargetUnavailable, properties=self._producer).write(records)
        deadline = time.monotonic() + self._target.timeout
        self._acts.require()
        self._acts.refresh()
        while not self._acts.keys.issuperset(written):
            if time.monotonic() > deadline:
                what = f"{self._target.timeout:g} s after it was written the change is not in topic {self.topic}"
                raise self._target.refused("read the lists back", f"{what}; see --list whether it counts")
            time.sleep(_LOOK_SECONDS)
            self._acts.refresh()
        return self._acts.state

    def close(self) -> None:
        """Let go of the connections."""
        self._acts.close()
