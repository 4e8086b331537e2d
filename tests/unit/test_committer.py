"""Offset map, offset syncs, progress: in this order, whatever fails in between."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from srm_spark.config import load_settings
from srm_spark.config.settings import FlowSettings
from srm_spark.core.codec import decode_offset_sync, decode_progress_detail, decode_progress_value
from srm_spark.core.model import Interval, LogIdentity, Loss, OffsetRange, ProgressDetail, TopicPartition
from srm_spark.errors import LeaseLost, OffsetSyncFailed, ProgressFailed
from srm_spark.flow.topics.committer import Committer, uncommitted
from srm_spark.flow.topics.syncs import SyncWriter
from tests.unit.memory import MemoryTopics

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
MAP, SYNCS, PROGRESS = "mm2-offset-map.A.internal", "mm2-offset-syncs.B.internal", "mm2-offsets.A.internal"


def copied(start: int, end: int, at: int) -> ProgressDetail:
    interval = Interval(start, at, end - start)
    return ProgressDetail(OffsetRange(start, end), at + end - start, (interval,), logs=LogIdentity("id"))


@pytest.fixture
def settings(tmp_path: Path) -> FlowSettings:
    path = tmp_path / "srm.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\ndialect = mm2\n"
    )
    (found,) = load_settings([path]).flows
    return found


def committer(settings: FlowSettings, topics: MemoryTopics, *, is_ours: bool = True) -> Committer:
    def require_lease() -> None:
        if not is_ours:
            raise LeaseLost("another driver")

    syncs = SyncWriter(settings, SYNCS, topics)
    return Committer(settings, {}, SYNCS, None, require_lease, state=topics, syncs=syncs)


def test_progress_never_knows_more_than_the_map(settings: FlowSettings) -> None:
    topics = MemoryTopics()
    made = committer(settings, topics)
    made.commit({P: copied(0, 5, 0), Q: copied(0, 3, 0)})
    assert topics.topics() == [MAP, SYNCS, PROGRESS]
    assert [decode_progress_value(one.value) for one in topics.written if one.topic == PROGRESS] == [4, 2]
    assert made.known.keys() == {P, Q}
    made.commit({P: copied(5, 9, 5)})
    assert topics.topics() == [MAP, SYNCS, PROGRESS] * 2
    assert made.known[P].copy_of(8) == 8


@pytest.mark.parametrize("refusing", [MAP, PROGRESS])
def test_what_is_refused_ends_it_there(settings: FlowSettings, refusing: str) -> None:
    topics = MemoryTopics(refused={refusing: ProgressFailed("no")})
    with pytest.raises(ProgressFailed):
        committer(settings, topics).commit({P: copied(0, 5, 0)})
    assert topics.topics() == ([] if refusing == MAP else [MAP, SYNCS])


@pytest.mark.parametrize(("gaps", "syncs"), [(10, 11), (63, 64), (64, 64), (5000, 64)])
def test_of_a_log_full_of_gaps_so_many_syncs_are_written_from_the_first_to_the_last(
    settings: FlowSettings, gaps: int, syncs: int
) -> None:
    intervals = tuple(Interval(6 * number, 5 * number, 5) for number in range(gaps))
    end = 6 * gaps
    topics = MemoryTopics()
    committer(settings, topics).commit(
        {P: ProgressDetail(OffsetRange(0, end), 5 * gaps, intervals, logs=LogIdentity("id"))}
    )
    found = [decode_offset_sync(one.key, one.value) for one in topics.written if one.topic == SYNCS]
    assert len(found) == syncs
    assert (found[0].upstream, found[0].downstream) == (0, 0)
    assert (found[-1].upstream, found[-1].downstream) == (end - 2, 5 * gaps - 1)
    assert sorted(found, key=lambda one: one.upstream) == found
    steps = [newer.downstream - older.downstream for older, newer in itertools.pairwise(found)]
    assert max(steps) <= 5 * (gaps // 32 + 1)
    assert set(steps[-31:]) <= {4, 5}, "the newest ones are all there"


def test_offset_syncs_may_fail_and_come_later(settings: FlowSettings) -> None:
    topics = MemoryTopics(refused={SYNCS: OffsetSyncFailed("away")})
    made = committer(settings, topics)
    made.commit({P: copied(0, 5, 0)})
    assert topics.topics() == [MAP, PROGRESS]
    topics.refused.clear()
    made.commit({Q: copied(0, 5, 0)})
    synced = [one for one in topics.written if one.topic == SYNCS]
    assert {one.key[-1] for one in synced} == {0, 1}, "of both partitions"


def test_nothing_is_written_without_the_lease(settings: FlowSettings) -> None:
    topics = MemoryTopics()
    with pytest.raises(LeaseLost):
        committer(settings, topics, is_ours=False).commit({P: copied(0, 5, 0)})
    assert topics.written == []
    committer(settings, topics, is_ours=False).commit({})


def test_progress_that_was_committed_with_the_records_is_not_written_again(settings: FlowSettings) -> None:
    topics = MemoryTopics()
    committer(settings, topics).commit({P: copied(0, 5, 0), Q: copied(0, 3, 0)}, committed={P})
    progress = [one for one in topics.written if one.topic == PROGRESS]
    assert [decode_progress_value(one.value) for one in progress] == [2]


def test_but_what_the_source_deleted_meanwhile_is() -> None:
    lost = (Loss(OffsetRange(2, 3)),)
    left = uncommitted({P: replace(copied(0, 5, 0), lost=lost), Q: copied(0, 3, 0)}, {P, Q})
    assert left.keys() == {P}
    assert (left[P].source, left[P].intervals, left[P].lost) == (OffsetRange(5, 5), (), lost)


def test_what_is_in_progress_already_comes_into_the_map_alone(settings: FlowSettings) -> None:
    topics = MemoryTopics()
    committer(settings, topics).map({P: copied(0, 5, 0)})
    assert topics.topics() == [MAP, SYNCS]
    header = topics.written[0].value
    assert header is not None
    assert decode_progress_detail(header) is not None
