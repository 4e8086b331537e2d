"""Calls of the admin client, without a cluster: who keeps silent is asked again."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo
from confluent_kafka.cimpl import NewPartitions, NewTopic

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.cluster import TopicSpec
from srm_spark.core.model import TopicPartition
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.kafka.cluster import ClusterClient

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class Client:
    """Answers for the partitions below `answered`; for the others its time runs out, or it says `silence`."""

    def __init__(self, answered: int, tries: list[tuple[int, float]], silence: object = None) -> None:
        self._answered = answered
        self._tries = tries
        self._silence = silence

    def list_offsets(
        self, asked: dict[KafkaTopicPartition, Any], *, isolation_level: object, request_timeout: float
    ) -> dict[KafkaTopicPartition, Future[Any]]:
        self._tries.append((len(asked), request_timeout))
        futures: dict[KafkaTopicPartition, Future[Any]] = {}
        for partition in asked:
            future = futures[partition] = Future()
            if partition.partition < self._answered:
                future.set_result(ListOffsetsResultInfo(7, -1, -1))
            elif isinstance(self._silence, KafkaException):
                future.set_exception(self._silence)
            elif self._silence is not None:
                future.set_result(self._silence)
            else:
                future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        return futures

    def poll(self, _: float) -> None:
        """Nothing is waiting."""


def cluster(
    answered: list[int], monkeypatch: pytest.MonkeyPatch, timeout: float, silence: object = None
) -> tuple[ClusterClient, list[Any]]:
    """One whose clients answer for so many partitions, one client after the other, and the tries so far."""
    tries: list[tuple[int, float]] = []
    left = iter(answered)
    monkeypatch.setattr("srm_spark.kafka.cluster.admin_client", lambda *_: Client(next(left), tries, silence))
    return ClusterClient(ClusterSettings("A", "h:1", {}), SourceUnavailable, timeout=timeout), tries


def test_who_keeps_silent_is_asked_again_by_a_new_client_with_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    found, tries = cluster([1, 0, 2], monkeypatch, 60)
    assert found.end_offsets([FIRST, SECOND]) == {FIRST: 7, SECOND: 7}
    assert [(count, round(seconds)) for count, seconds in tries] == [(2, 5), (1, 10), (1, 20)]


def test_when_the_time_is_up_the_silence_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    found, tries = cluster([0], monkeypatch, 0)
    with pytest.raises(SourceUnavailable, match=r"list offsets of t-0.*last seen"):
        found.end_offsets([FIRST])
    assert len(tries) == 1


def test_a_success_without_an_offset_is_a_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    silence = ListOffsetsResultInfo(OFFSET_INVALID, -1, -1)
    found, tries = cluster([1, 2], monkeypatch, 60, silence)
    assert found.end_offsets([FIRST, SECOND]) == {FIRST: 7, SECOND: 7}
    assert [count for count, _ in tries] == [2, 1]
    found, _ = cluster([1], monkeypatch, 0, silence)
    with pytest.raises(SourceUnavailable, match=r"list offsets of t-1.*leader did not answer.*last seen"):
        found.end_offsets([FIRST, SECOND])


@pytest.mark.parametrize(
    "code",
    [KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE],
)
def test_a_partition_that_moves_is_left_out_where_nobody_waits(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = cluster([1], monkeypatch, 60, KafkaException(KafkaError(code)))
    assert found.end_offsets([FIRST, SECOND], waits=False) == {FIRST: 7}


class Controller:
    """Makes topics, and grows them; it takes 10,000 partitions in a request at most, as Kafka's own does."""

    def __init__(self) -> None:
        self.requests: list[int] = []

    def create_topics(self, new: list[NewTopic], *, request_timeout: float) -> dict[str, Future[None]]:
        del request_timeout
        return self._taken({one.topic: one.num_partitions for one in new})

    def create_partitions(self, new: list[NewPartitions], *, request_timeout: float) -> dict[str, Future[None]]:
        del request_timeout
        return self._taken({one.topic: one.new_total_count for one in new})

    def _taken(self, counts: dict[str, int]) -> dict[str, Future[None]]:
        self.requests.append(sum(counts.values()))
        done: dict[str, Future[None]] = {name: Future() for name in counts}
        for future in done.values():
            if self.requests[-1] > 10_000:
                future.set_exception(KafkaException(KafkaError(KafkaError.POLICY_VIOLATION)))
            else:
                future.set_result(None)
        return done

    def poll(self, _: float) -> None:
        """Nothing is waiting."""


def test_topics_of_many_partitions_are_made_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = Controller()
    monkeypatch.setattr("srm_spark.kafka.cluster.admin_client", lambda *_: controller)
    client = ClusterClient(ClusterSettings("B", "h:1", {}), TargetUnavailable)
    names = [f"t{number}" for number in range(12)]
    assert client.create(TopicSpec(name, 900, 1, {}) for name in names) == dict.fromkeys(names)
    assert (sum(controller.requests), max(controller.requests)) == (10_800, 1_800)
    assert client.grow(dict.fromkeys(names, 3_000)) == dict.fromkeys(names)
    assert controller.requests[6:] == [3_000] * 12, "one topic is one request, however large"
    assert client.create([]) == {}
