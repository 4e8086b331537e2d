"""When a range is read, when it is not, and what is no part of it. No broker: a consumer is played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.errors import SourceChanged, SourceUnavailable
from srm_spark.kafka import fetch
from srm_spark.kafka.clients import LastError
from srm_spark.kafka.fetch import Fetch, Follower, RangeReader, Source
from srm_spark.kafka.fetched import Event
from srm_spark.kafka.topic_ids import TopicIds
from tests.unit.arrow_rows import run_of

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
Pieces = Sequence[Sequence[Run | Event]]


class Played:
    """What a consumer gives, look by look; nothing behind that."""

    def __init__(self, looks: Pieces) -> None:
        self.looks = [list(look) for look in looks]
        self.starts: Mapping[TopicPartition, int] = {}

    def assign(self, starts: Mapping[TopicPartition, int]) -> None:
        self.starts = starts

    def take(self, _: float) -> list[Run | Event]:
        return self.looks.pop(0) if self.looks else []

    def close(self) -> None:
        pass


class Consumer:
    """Notes which partitions it need not fetch any more."""

    def __init__(self) -> None:
        self.paused: list[int] = []

    def pause(self, places: Sequence[Any]) -> None:
        self.paused += [place.partition for place in places]

    def position(self, places: Sequence[Any]) -> Sequence[Any]:
        return [SimpleNamespace(offset=-1001) for _ in places]

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        return 3, 9

    def __getattr__(self, _: str) -> Any:
        return lambda *_: []


def source_of(looks: Pieces) -> Any:
    return Source(Consumer(), LastError(), Played(looks), TopicIds({}, LastError()))  # type: ignore[arg-type]


def read(monkeypatch: pytest.MonkeyPatch, looks: Pieces, ranges: Mapping[TopicPartition, OffsetRange]) -> list[Run]:
    source = source_of(looks)
    monkeypatch.setattr(fetch.Source, "of", lambda *_, **__: source)
    monkeypatch.setattr(fetch, "idle_sources", {})
    return list(RangeReader(Fetch({}, "A", 0.0), ranges))


def end_of(partition: TopicPartition, offset: int) -> Event:
    return Event(partition, KafkaError(KafkaError._PARTITION_EOF), offset)


def offsets(runs: Sequence[Run]) -> list[list[int]]:
    return [run.offsets.tolist() for run in runs]


def test_a_range_ends_with_its_last_offset_or_with_one_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = {P: OffsetRange(3, 7)}
    assert offsets(read(monkeypatch, [[run_of([3, 4])], [run_of([5, 6])]], ranges)) == [[3, 4], [5, 6]]
    assert offsets(read(monkeypatch, [[run_of([3, 4, 9])]], ranges)) == [[3, 4]]
    assert offsets(read(monkeypatch, [[run_of([3, 4])], [run_of([11])]], ranges)) == [[3, 4]]
    assert offsets(read(monkeypatch, [[run_of([4])], [end_of(P, 7)]], ranges)) == [[4]]


def test_an_end_in_front_of_the_ranges_end_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new leader may know of fewer records for a moment; to take that for the end would lose the others."""
    looks: Pieces = [[run_of([3, 4]), end_of(P, 5)], [run_of([5, 6])]]
    assert offsets(read(monkeypatch, looks, {P: OffsetRange(3, 7)})) == [[3, 4], [5, 6]]
    with pytest.raises(SourceUnavailable, match=r"t-0 gave nothing for 0 s at offset 3 of 7; .*holds offsets 3 to 9"):
        read(monkeypatch, [[end_of(P, 5)]], {P: OffsetRange(3, 7)})


@pytest.mark.parametrize("looks", [[[run_of([2, 3])]], [[run_of([3, 4])], [run_of([0, 1])]]], ids=["at once", "later"])
def test_a_log_that_went_back_is_not_read(monkeypatch: pytest.MonkeyPatch, looks: Pieces) -> None:
    with pytest.raises(SourceChanged, match=r"A: t-0 gave offset \d where \d was next"):
        read(monkeypatch, looks, {P: OffsetRange(3, 7)})
    monkeypatch.setattr(fetch.Source, "of", lambda *_, **__: source_of(looks))
    follower = Follower(Fetch({}, "A", 0.0), {P: 3})
    with pytest.raises(SourceChanged, match="its log went back"):
        list(chain(follower.take(0.0), follower.take(0.0)))


class Ids:
    """What a source answers, look by look: whether the topics are the ones that are expected."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.asked: list[Mapping[str, str]] = []

    def check(self, expected: Mapping[str, str], cluster: str, _: float) -> None:
        self.asked.append(dict(expected))
        if not self.answers.pop(0):
            raise SourceChanged(f"cluster {cluster}: created anew")


def test_what_was_fetched_is_given_once_its_topic_is_known_to_be_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: Pieces = [[run_of([3, 4])], [run_of([5, 6])]]
    source, ids = source_of(looks), Ids(True, False)
    monkeypatch.setattr(fetch.Source, "of", lambda *_, **__: replace(source, topic_ids=ids))
    monkeypatch.setattr(fetch, "idle_sources", {})
    runs = iter(RangeReader(Fetch({}, "A", 0.0, topic_ids={"t": "id", "u": "other"}), {P: OffsetRange(3, 7)}))
    assert offsets([next(runs)]) == [[3, 4]]
    with pytest.raises(SourceChanged):
        next(runs)
    assert ids.asked == [{"t": "id"}] * 2


def test_topics_that_may_not_be_read_are_named_together(monkeypatch: pytest.MonkeyPatch) -> None:
    denied = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    looks = [[Event(P, denied, 0)], [Event(TopicPartition("u", 0), denied, 0)]]
    with pytest.raises(SourceUnavailable, match=r"Not authorized to access topics: \[t, u\]; allow READ on topic t, u"):
        read(monkeypatch, looks, {P: OffsetRange(3, 7)})


def test_an_error_of_the_group_that_is_never_joined_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    error = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    looks: Pieces = [[Event(TopicPartition("", -1), error, 0), run_of([3])]]
    assert offsets(read(monkeypatch, looks, {P: OffsetRange(3, 4)})) == [[3]]
