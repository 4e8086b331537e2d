"""Changes the lists on the target, for a command: no driver has to run, and the source may be down."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence

from srm_spark.config.settings import control_topic
from srm_spark.core.cluster import Cluster, ControlRecord
from srm_spark.core.lists import Act, ListState, act_key, encode_act, in_parts
from srm_spark.core.wording import count
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.topics.internal_topics import ensure_topic, fault_of, lists_topic
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
        self.acts = ActLog(target if reads is None else reads, self.topic, "srm-control lists")
        """What was read of it."""

    def state(self) -> ListState:
        """What all acts add up to now; nothing where there is no topic. Raises TargetUnavailable."""
        if self.acts.is_there:
            self.acts.refresh()
        return self.acts.state

    def remarks(self) -> tuple[str, ...]:
        """What is odd about the topic, in sentences. Raises TargetUnavailable."""
        strange, partitions = self.acts.strange, self._target.topics().get(self.topic)
        if partitions is None:
            return ()
        passed_over = f"passed over {count(strange, 'record')} of topic {self.topic}: no act of srm-control"
        fault = fault_of(self._target, lists_topic(self.topic, 1), partitions)
        faulty = None if fault is None else f"topic {self.topic} {fault.text}; {fault.remedy}"
        return tuple(filter(None, (passed_over if strange else None, faulty, self.acts.gone())))

    def write(self, act: Act) -> ListState:
        """Write an act and read it back: what all acts add up to then. Raises as `append`."""
        self.append([encode_act(part) for part in in_parts(act)])
        return self.acts.state

    def append(self, acts: Sequence[bytes]) -> list[str]:
        """Write acts and read them back; their ids.

        Raises TargetUnavailable; where they do not come back in time they may count all the same.
        """
        factor = self._factor or min(_COPIES, self._target.broker_count())
        ensure_topic(self._target, lists_topic(self.topic, factor))
        ids = [uuid.uuid4().hex for _ in acts]
        written = list(map(act_key, ids))
        records = [ControlRecord(self.topic, key, act, partition=0) for key, act in zip(written, acts, strict=True)]
        self._target.writer("srm-control lists", TargetUnavailable, properties=self._producer).write(records)
        deadline = time.monotonic() + self._target.timeout
        self.acts.require()
        self.acts.refresh()
        while not self.acts.keys.issuperset(written):
            if time.monotonic() > deadline:
                what = f"{self._target.timeout:g} s after it was written the change is not in topic {self.topic}"
                raise self._target.refused("read the lists back", f"{what}; see --list whether it counts")
            time.sleep(_LOOK_SECONDS)
            self.acts.refresh()
        return ids

    def close(self) -> None:
        """Let go of the connections."""
        self.acts.close()
