"""What was committed last, all parts of it, as the exactly-once mode reads it from progress."""

from __future__ import annotations

import pytest

from srm_spark.core.cluster import TopicSpec
from srm_spark.core.codec import INTERVALS_PER_RECORD
from srm_spark.core.model import Interval, OffsetRange, ProgressDetail
from srm_spark.errors import ProgressFailed
from srm_spark.flow.topics.progress import ProgressTopic, ProgressWriter
from tests.unit.commanded import P
from tests.unit.shifted import Shifted

_FULL = tuple(Interval(2 * number, number, 1) for number in range(INTERVALS_PER_RECORD))
_END = 2 * INTERVALS_PER_RECORD


@pytest.mark.parametrize(("start", "is_joined"), [(_END, True), (5, False)])
def test_what_was_cut_to_fit_into_records_is_joined_and_not_with_a_rewind(start: int, is_joined: bool) -> None:
    world = Shifted({"A->B.exactly.once.support": "required"})
    world.flow.target.create([TopicSpec(world.flow.settings.progress_topic, 1, 1, {})])
    first = ProgressDetail(OffsetRange(0, _END), INTERVALS_PER_RECORD, _FULL)
    second = ProgressDetail(OffsetRange(start, start), INTERVALS_PER_RECORD, ())
    target, settings = world.flow.target, world.flow.settings
    writer = ProgressWriter(settings, target.writer("test", ProgressFailed))
    for detail in (first, second):
        writer.commit({P: detail})
    progress = ProgressTopic(settings, target)
    progress.refresh()
    assert progress.newest[P] == ([first, second] if is_joined else [second])
