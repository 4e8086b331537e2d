"""Which groups a cluster has, without a cluster: a broker that does not answer hides the groups that it coordinates."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import SourceUnavailable
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.groups import GroupsClient

SILENT, DENIED = KafkaError._TRANSPORT, KafkaError.CLUSTER_AUTHORIZATION_FAILED
Answer = tuple[list[str], list[int]]
"""Names of the groups, and codes of what brokers answered instead."""


class Client:
    """Gives one answer after the other."""

    def __init__(self, answers: list[Answer]) -> None:
        self._answers = answers

    def list_consumer_groups(self, *, request_timeout: float) -> Future[Any]:
        assert 0 < request_timeout <= 60
        names, codes = self._answers.pop(0)
        future: Future[Any] = Future()
        valid = [SimpleNamespace(group_id=name) for name in names]
        future.set_result(SimpleNamespace(valid=valid, errors=[KafkaError(code) for code in codes]))
        return future

    def poll(self, _: float) -> None:
        """Nothing is waiting."""


def names(answers: list[Answer], monkeypatch: pytest.MonkeyPatch, timeout: float = 60) -> list[str]:
    monkeypatch.setattr("srm_spark.kafka.cluster.admin_client", lambda *_: Client(answers))
    cluster = ClusterClient(ClusterSettings("A", "h:1", {}), SourceUnavailable, timeout=timeout)
    with closing(GroupsClient(cluster, "DESCRIBE")) as groups:
        return groups.names()


def test_groups_of_a_broker_that_does_not_answer_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [(["there"], [SILENT]), (["there", "hidden"], [])]
    assert names(answers, monkeypatch) == ["hidden", "there"]


@pytest.mark.parametrize(("code", "timeout"), [(SILENT, 0.1), (DENIED, 60)])
def test_some_of_the_groups_are_never_taken_for_all(code: int, timeout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceUnavailable, match="cannot list the groups of every broker"):
        names([(["there"], [code])] * 2, monkeypatch, timeout)


def test_a_cluster_without_groups_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names([([], [])], monkeypatch) == []
