"""Which offset syncs are remembered for positions in front of the exact map, and when they are read again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from srm_spark.core.checkpoints import Translation, TranslationStatus
from srm_spark.core.model import OffsetRange, OffsetSync, TopicPartition
from srm_spark.core.offset_map import Hole
from srm_spark.errors import SourceUnavailable
from srm_spark.flow.topics.sync_history import SyncHistory, SyncReader
from tests.awaiting import await_until

HERE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


class Written(SyncReader):
    """A topic with these syncs, followed as a real one."""

    def __init__(self, *syncs: OffsetSync) -> None:
        self.syncs = list(syncs)
        self.failure: SourceUnavailable | None = None
        self._at = 0

    def new(self) -> Iterator[OffsetSync]:
        while self._at < len(self.syncs):
            yield self.syncs[self._at]
            self._at += 1
            if self.failure is not None:
                raise self.failure

    def close(self) -> None:
        self._at = 0


def every(step: int, end: int, partition: TopicPartition = HERE) -> list[OffsetSync]:
    return [OffsetSync(partition, offset, offset + 5) for offset in range(0, end, step)]


def before(offset: int) -> list[Hole]:
    return [Hole(OffsetRange(0, offset), 0, None)]


def test_each_hole_has_the_syncs_within_it() -> None:
    """The older ones of the newest would make it coarse, and those of others would say that copying began again."""
    history = SyncHistory(Written(*every(10, 100_000)))
    holes = [Hole(OffsetRange(0, 500), 0, 505), Hole(OffsetRange(700, 900), 705, 905)]
    history.refresh({HERE: holes})
    assert history.sample(HERE, 499, 10**6) == Translation(TranslationStatus.SAMPLED, 499, 496, 8)
    assert history.sample(HERE, 899, 10**6) == Translation(TranslationStatus.SAMPLED, 899, 896, 8)


def test_where_no_sync_lies_in_a_hole_it_is_known_where_it_begins() -> None:
    history = SyncHistory(Written(OffsetSync(HERE, 10, 15)))
    history.refresh({HERE: [Hole(OffsetRange(700, 900), 705, 905)]})
    assert history.sample(HERE, 750, 10**6) == Translation(TranslationStatus.SAMPLED, 750, 705, 50)
    assert history.sample(HERE, 750, 600) is None, "the target ends before it"


def test_syncs_behind_the_beginning_of_the_map_do_not_make_the_past_coarser() -> None:
    history = SyncHistory(Written(*every(10, 100_000)))
    history.refresh({HERE: before(500)})
    assert history.sample(HERE, 499, 10**6) == Translation(TranslationStatus.SAMPLED, 499, 496, 8)
    history.refresh({})
    everything = history.sample(HERE, 499, 10**6)
    assert everything is not None
    assert everything.reread > 100


def test_a_map_that_begins_elsewhere_has_all_syncs_read_again() -> None:
    history = SyncHistory(Written(*every(10, 1000), *every(10, 1000, OTHER)))
    history.refresh({HERE: before(500), OTHER: before(20)})
    assert history.sample(HERE, 490, 10**6) == Translation(TranslationStatus.SAMPLED, 490, 495, 0)
    history.refresh({HERE: before(1000), OTHER: before(20)})
    assert history.sample(HERE, 990, 10**6) == Translation(TranslationStatus.SAMPLED, 990, 995, 0)


def test_a_hole_that_appears_has_the_syncs_that_were_passed_over_before() -> None:
    history = SyncHistory(Written(*every(10, 1000), *every(10, 1000, OTHER)))
    history.refresh({HERE: [], OTHER: before(20)})
    assert history.sample(HERE, 490, 10**6) is None
    history.refresh({HERE: before(500), OTHER: before(20)})
    assert history.sample(HERE, 490, 10**6) == Translation(TranslationStatus.SAMPLED, 490, 495, 0)


def test_new_syncs_are_taken_in() -> None:
    topic = Written(*every(10, 20))
    history = SyncHistory(topic)
    history.refresh({})
    assert history.sample(OTHER, 3, 100) is None
    topic.syncs += every(10, 20, OTHER)
    history.refresh({})
    assert history.sample(OTHER, 3, 100) == Translation(TranslationStatus.SAMPLED, 3, 6, 2)


def test_of_a_topic_that_is_not_read_to_its_end_nothing_is_known() -> None:
    """What was not read could say that copying began again."""
    topic = Written(*every(10, 50), OffsetSync(HERE, 5, 100))
    topic.failure = SourceUnavailable("away")
    history = SyncHistory(topic)
    with pytest.raises(SourceUnavailable, match="away"):
        history.refresh({})
    assert history.sample(HERE, 20, 10**6) is None
    topic.failure = None
    await_until(lambda: is_read(history), 10, "it is tried again")
    assert history.sample(HERE, 20, 10**6) == Translation(TranslationStatus.SAMPLED, 20, 101, 14)


def is_read(history: SyncHistory) -> bool:
    try:
        history.refresh({})
    except SourceUnavailable:
        return False
    return True
