"""When a range is read, when it is not, and what is no part of it, where librdkafka reads. No broker: a consumer is
played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.rows import Run
from srm_spark.errors import SourceChanged, SourceUnavailable
from srm_spark.kafka.consumed import ConsumedReader
from srm_spark.kafka.fetch import Fetch

P = TopicPartition("t", 0)
Looks = Sequence[Sequence[Message]]


class Played:
    """A consumer that gives messages look by look, and nothing behind that."""

    def __init__(self, looks: Looks) -> None:
        self.looks = [list(look) for look in looks]
        self.paused: list[int] = []

    def consume(self, count: int, _: float) -> list[Message]:
        if not self.looks:
            return []
        found, self.looks[0] = self.looks[0][:count], self.looks[0][count:]
        if not self.looks[0]:
            del self.looks[0]
        return found

    def pause(self, places: Sequence[Any]) -> None:
        self.paused += [place.partition for place in places]

    def position(self, places: Sequence[Any]) -> Sequence[Any]:
        return [SimpleNamespace(offset=-1001) for _ in places]

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        return 3, 9

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_: None


def message(offset: int, *, error: int = 0, topic: str = "t") -> Message:
    return Message(topic=topic, partition=0, offset=offset, value=b"v", error=KafkaError(error) if error else None)


def messages(*offsets: int) -> list[Message]:
    return [message(offset) for offset in offsets]


def end_of(offset: int) -> Message:
    return message(offset, error=KafkaError._PARTITION_EOF)


def reader_of(looks: Looks, end: int = 7, ids: Any = None, expected: Mapping[str, str] | None = None) -> ConsumedReader:
    consumer: Any = Played(looks)
    return ConsumedReader(Fetch({}, "A", 0.0, topic_ids=expected or {}), {P: OffsetRange(3, end)}, consumer, ids)


def read(looks: Looks, end: int = 7) -> list[list[int]]:
    reader = reader_of(looks, end)
    found: list[Run] = []
    for _ in looks:
        found += reader.runs(0.0)
    assert not reader.is_busy
    return [run.offsets.tolist() for run in found]


def test_a_range_ends_with_its_last_offset_or_with_one_behind_it() -> None:
    assert read([messages(3, 4), messages(5, 6)]) == [[3, 4], [5, 6]]
    assert read([messages(3, 4, 9)]) == [[3, 4]]
    assert read([messages(3, 4), messages(11)]) == [[3, 4]]
    assert read([messages(4), [end_of(7)]]) == [[4]]


def test_an_end_in_front_of_the_ranges_end_is_none() -> None:
    """A new leader may know of fewer records for a moment; to take that for the end would lose the others."""
    assert read([[*messages(3, 4), end_of(5)], messages(5, 6)]) == [[3, 4], [5, 6]]
    reader = reader_of([[end_of(5)]])
    assert list(reader.runs(0.0)) == []
    assert reader.unread == {P}
    said = reader.silence(2)
    assert "t-0 gave nothing for 2 s at offset 3 of 7; " in said
    assert said.endswith("holds offsets 3 to 9")


@pytest.mark.parametrize("looks", [[messages(2, 3)], [messages(3, 4), messages(0, 1)]], ids=["at once", "later"])
def test_a_log_that_went_back_is_not_read(looks: Looks) -> None:
    with pytest.raises(SourceChanged, match=r"A: t-0 gave offset \d where \d was next: its log went back"):
        read(looks)


class Ids:
    """What a source answers, look by look: whether the topics are the ones that are expected."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.asked: list[Mapping[str, str]] = []

    def check(self, expected: Mapping[str, str], cluster: str, _: float) -> None:
        self.asked.append(dict(expected))
        if not self.answers.pop(0):
            raise SourceChanged(f"cluster {cluster}: created anew")


def test_what_was_fetched_is_given_once_its_topic_is_known_to_be_the_same() -> None:
    ids = Ids(True, False)
    reader = reader_of([messages(3, 4), messages(5, 6)], ids=ids, expected={"t": "id", "u": "other"})
    (run,) = reader.runs(0.0)
    assert run.offsets.tolist() == [3, 4]
    with pytest.raises(SourceChanged):
        list(reader.runs(0.0))
    assert ids.asked == [{"t": "id"}] * 2


def test_topics_that_may_not_be_read_are_named_together() -> None:
    denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
    looks = [[message(0, error=denied)], [message(0, error=denied, topic="u")]]
    with pytest.raises(SourceUnavailable, match=r"Not authorized to access topics: \[t, u\]; allow READ on topic t, u"):
        read(looks)


def test_an_error_of_the_group_that_is_never_joined_does_no_harm() -> None:
    error = message(0, error=KafkaError.GROUP_AUTHORIZATION_FAILED, topic="")
    assert read([[error, message(3)]], 4) == [[3]]
