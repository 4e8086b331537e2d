"""A control topic is followed without a gap, whatever its reader meets on the way."""

from __future__ import annotations

import pytest
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError
from confluent_kafka import TopicPartition as KafkaTopicPartition

from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import TargetUnavailable
from srm_spark.kafka.control import ControlReader


class Given:
    """A message, or an error in its place."""

    def __init__(self, offset: int | None, error: KafkaError | None = None) -> None:
        self._offset, self._error = offset, error

    def error(self) -> KafkaError | None:
        return self._error

    def offset(self) -> int | None:
        return self._offset

    def partition(self) -> int:
        return 0

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"v"

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_NOT_AVAILABLE, 0


class Client:
    """A consumer that has these in its queue."""

    def __init__(self, *queue: Given) -> None:
        self.queue = list(queue)

    def assign(self, _: object) -> None:
        """From the beginning."""

    def consume(self, count: int, _: float) -> list[Given]:
        given, self.queue = self.queue[:count], self.queue[count:]
        return given

    def position(self, asked: list[KafkaTopicPartition]) -> list[KafkaTopicPartition]:
        return [KafkaTopicPartition(one.topic, one.partition, 3) for one in asked]


def test_what_lies_behind_an_error_is_given_before_it_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gives it once: a topic that may be read again has lost nothing of it."""
    denied = Given(None, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    client = Client(Given(0), denied, Given(1), Given(2))
    monkeypatch.setattr("srm_spark.kafka.control.reader", lambda *_: client)
    monkeypatch.setattr("srm_spark.kafka.control.headers_of", lambda _: ())
    follower = ControlReader(ClusterSettings("B", "h:1"), "topic", [0], "test", TargetUnavailable)
    found = list[int]()

    def follow() -> None:
        for record in follower.read({0: 4}, 5.0):
            found.append(record.offset)  # one by one: what came before the error counts

    with pytest.raises(TargetUnavailable, match="allow READ on topic topic"):
        follow()
    assert found == [0, 1, 2]
