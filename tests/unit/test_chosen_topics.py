"""What the log says about the topics that flow."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import cast

import pytest

from srm_spark.core.filters import NameFilter
from srm_spark.core.model import Flow
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.chosen import ChosenTopics


class OwnFilter(NameFilter):
    """A user's: what its patterns mean only it knows."""

    def matches(self, name: str) -> bool:
        return name == "orders"


def chosen(topics: NameFilter) -> ChosenTopics:
    return ChosenTopics(cast("Clusters", SimpleNamespace(settings=SimpleNamespace(flow=Flow("A", "B")), topics=topics)))


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_topics_are_named_once_and_then_only_those_that_come_and_go(said: pytest.LogCaptureFixture) -> None:
    topics = chosen(NameFilter((".*",)))
    for found in ({"payments": 2, "orders": 3}, {"payments": 2, "orders": 3}, {"orders": 3, "users": 1}):
        topics.tell(found)
    assert said.messages == [
        "flow=A->B topics=2 partitions=5: orders, payments",
        "flow=A->B topics=2 new: users",
        "flow=A->B topics=2 gone: payments",
    ]


def test_of_many_topics_the_first_are_named(said: pytest.LogCaptureFixture) -> None:
    chosen(NameFilter((".*",))).tell({f"t{number:02}": 1 for number in range(12)})
    assert said.messages[0].endswith(
        "topics=12 partitions=12: " + ", ".join(f"t0{n}" for n in range(10)) + " and 2 more"
    )


def test_a_pattern_that_matches_nothing_is_warned_of_once(said: pytest.LogCaptureFixture) -> None:
    topics = chosen(NameFilter(("orders", "gone", "pay.*", "logs.*")))
    for found in ({"orders": 1}, {"orders": 1, "logs.a": 1}, {"orders": 1, "logs.a": 1}):
        topics.tell(found)
    warnings = [record.getMessage() for record in said.records if record.levelno == logging.WARNING]
    assert [message.partition(":")[0] for message in warnings] == [
        "flow=A->B no topic that flows matches logs.*",
        "flow=A->B no topic that flows matches pay.*",
    ]
    assert "READ on it is not allowed" in warnings[0]


def test_patterns_of_a_filter_of_the_users_own_are_left_alone(said: pytest.LogCaptureFixture) -> None:
    chosen(OwnFilter(("pay.*",))).tell({"orders": 1})
    assert said.messages == ["flow=A->B topics=1 partitions=1: orders"]
