"""Which level decided, and what lost."""

from __future__ import annotations

import pytest

from srm_spark.config.explain import Explanation, explain, resolved
from srm_spark.core.model import Flow
from srm_spark.errors import ConfigError
from tests.unit.config.conftest import Loader

FLOW = Flow("A", "B")


def _told(explanation: Explanation) -> list[tuple[str, str, str]]:
    return [(candidate.level, candidate.key, candidate.value) for candidate in (explanation.won, *explanation.lost)]


def test_everything_that_wanted_to_set_a_property_is_told(loaded: Loader) -> None:
    text = "connectors.topics = c\ntopics = g\ntopics = g2\nA->B.topics = f\n"
    found = loaded(text, overrides={"A->B.topics": "o"}, end="")
    assert _told(explain(found, FLOW, "topics")) == [
        ("replication", "A->B.topics", "o"),
        ("connectors.", "connectors.topics", "c"),
        ("global", "topics", "g2"),
        ("replaced by a later line", "A->B.topics", "f"),
        ("replaced by a later line", "topics", "g"),
        ("default", "", ""),
    ]


def test_worker_and_client_properties_are_told_too(loaded: Loader) -> None:
    text = """offset.storage.topic = t
B.offset.storage.topic = b
A.consumer.fetch.min.bytes = 1
A->B.consumer.fetch.min.bytes = 2
B.producer.linger.ms = 1
A->B.producer.override.linger.ms = 2
A.ssl.key.password = hunter2
A.admin.request.timeout.ms = 5
"""
    found = loaded(text)
    assert _told(explain(found, FLOW, "offset.storage.topic")) == [
        ("global", "offset.storage.topic", "t"),
        ("cluster", "B.offset.storage.topic", "b"),
    ]
    assert explain(found, FLOW, "consumer.fetch.min.bytes").won.key == "A.consumer.fetch.min.bytes"
    assert explain(found, FLOW, "producer.linger.ms").won.key == "A->B.producer.override.linger.ms"
    assert explain(found, FLOW, "source.admin.request.timeout.ms").won.value == "5"
    assert explain(found, FLOW, "source.cluster.ssl.key.password").won.value == "********"
    assert explain(found, FLOW, "offset.lag.max").won.level == "default"
    assert explain(found, FLOW, "tasks.max").won.value == ""


def test_a_property_that_does_not_exist(loaded: Loader) -> None:
    assert explain(loaded(), FLOW, "consumer.max.poll.records").won.level == "not set, the client's default"
    with pytest.raises(ConfigError, match=r"no such property — did you mean offset\.lag\.max"):
        explain(loaded(), FLOW, "offset.lagmax")


def test_resolved_shows_each_property_once(loaded: Loader) -> None:
    found = loaded("B.producer.linger.ms = 1\nA.consumer.client.rack = r\nA.security.protocol = SSL\n")
    names = [explanation.name for explanation in resolved(found, FLOW)]
    assert len(names) == len(set(names))
    assert {"topics", "producer.linger.ms", "consumer.client.rack", "source.cluster.security.protocol"} <= set(names)
