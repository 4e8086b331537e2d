"""What of an internal topic that is there does harm. A cluster is played."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, cast

import pytest

from srm_spark.core.cluster import Cluster, TopicConfig, TopicSpec
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.topics.internal_topics import InternalTopic, ensure_topic

COMPACTED = {"cleanup.policy": "compact"}
TRUTH = InternalTopic(TopicSpec("state", 2, 1, COMPACTED), "what counts", is_truth=True, needs_partitions=2)
HINTS = InternalTopic(TopicSpec("state", 1, 1, COMPACTED), "hints")
BEATS = InternalTopic(TopicSpec("state", 1, 1, COMPACTED))


class Played:
    """A cluster that has the topic, or lets it be examined by nobody."""

    alias, bootstrap_servers = "B", "b:9092"

    def __init__(self, policy: str | None, partitions: int = 2) -> None:
        self.policy, self.partitions = policy, partitions

    def topics(self) -> dict[str, int]:
        return {"state": self.partitions}

    def configs(self, names: Collection[str]) -> dict[str, dict[str, TopicConfig]]:
        if self.policy is None:
            raise TargetUnavailable("DESCRIBE_CONFIGS is not allowed")
        return {name: {"cleanup.policy": TopicConfig(self.policy, True, False, False, False)} for name in names}

    def refused(self, what: str, reason: str) -> TargetUnavailable:
        return TargetUnavailable(f"cluster B: cannot {what}: {reason}")


def ensure(topic: InternalTopic, policy: str | None, partitions: int = 2) -> None:
    cluster: Any = Played(policy, partitions)
    ensure_topic(cast("Cluster", cluster), topic)


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_no_flow_runs_on_truth_that_is_deleted_by_age(policy: str) -> None:
    with pytest.raises(TargetUnavailable) as caught:
        ensure(TRUTH, policy)
    assert str(caught.value) == (
        f"cluster B: cannot keep state in topic state: it holds what counts and has cleanup.policy={policy}, so it "
        "forgets what is old but true; kafka-configs.sh --alter --topic state --add-config cleanup.policy=compact "
        "--bootstrap-server b:9092"
    )


def test_too_few_partitions_are_refused() -> None:
    with pytest.raises(TargetUnavailable, match=r"has 1 partition, and 2 are needed; .*--partitions 2"):
        ensure(TRUTH, "compact", 1)


def test_what_can_be_found_out_again_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ensure(HINTS, "delete")
    assert "topic state holds hints and has cleanup.policy=delete" in caplog.text
    assert "cleanup.policy=compact --bootstrap-server b:9092" in caplog.text


@pytest.mark.parametrize(
    ("topic", "policy"), [(TRUTH, "compact"), (HINTS, "compact"), (BEATS, "delete"), (TRUTH, None)]
)
def test_nothing_is_said_of_what_does_no_harm_or_may_not_be_seen(
    topic: InternalTopic, policy: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        ensure(topic, policy)
    assert not caplog.text
