"""Behind an election on the target that has cost copies: lost is that of which no copy was found.

An election may cost copies that are recorded, and copies of which only their writer knew. One that makes a leader of a
replica that was cut off before brings copies back that were lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from srm_spark.core.losses import uncovered
from srm_spark.core.model import Flow, Interval, Loss, LossCause, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.flow.recovery.guard import report_loss
from srm_spark.flow.recovery.starts import Start

log = logging.getLogger(__name__)


def losses_behind(
    flow: Flow,
    partition: TopicPartition,
    start: Start,
    *,
    recorded: int,
    found: Iterable[Interval],
    known: PartitionMap,
) -> tuple[Loss, ...]:
    """What is lost at a start that goes on behind copies which were `found`, one record here, one there.

    `recorded` is the recorded position, up to which `known` names copies. What of the losses of `start` was not known
    before is told.
    """
    gone = next((loss for loss in start.losses if loss.cause is LossCause.TARGET), None)
    others = [loss for loss in start.losses if loss is not gone]
    begin = recorded if gone is None else gone.offsets.start
    intervals = list(found)
    behind = uncovered(OffsetRange(recorded, start.position.next_offset), intervals)
    before = list(uncovered(OffsetRange(begin, recorded), intervals))
    unknown = [Loss(gap, LossCause.TARGET) for gap in behind]
    for loss in unknown:
        report_loss(flow, partition, loss)
    if gone is not None and before != [gone.offsets]:
        text = "flow=%s partition=%s of these there are copies all the same; lost are: %s"
        log.warning(text, flow, partition, ", ".join(str(Loss(gap)) for gap in before) or "none")
    return (*others, *(_of_copies(known, gap) for gap in before), *unknown)


def _of_copies(known: PartitionMap, offsets: OffsetRange) -> Loss:
    """With the places where the copies were."""
    first, last = known.next_copy(offsets.start), known.copies_before(offsets.end, 1)
    target = OffsetRange(first, last[-1].downstream_end) if first is not None and last else None
    return Loss(offsets, LossCause.TARGET, target)
