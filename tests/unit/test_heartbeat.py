"""What the log says about heartbeats that cannot be written."""

from __future__ import annotations

import logging

import pytest

from srm_spark.config.settings import HeartbeatSettings
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.heartbeat import telling
from srm_spark.model import Flow


@pytest.mark.parametrize(("enabled", "told"), [(True, ["away", "gone", "away"]), (False, [])])
def test_a_failure_is_told_once_and_never_of_a_pair_that_nobody_enabled(
    caplog: pytest.LogCaptureFixture, enabled: bool, told: list[str]
) -> None:
    reasons = iter(["away", "away", "gone", None, "away"])

    def beat() -> None:
        if (reason := next(reasons)) is not None:
            raise TargetUnavailable(reason)

    tell = telling(HeartbeatSettings(Flow("A", "B"), enabled, 1.0, 1), beat)
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            tell()
    assert caplog.messages == [f"flow=A->B no heartbeat: {reason}" for reason in told]
