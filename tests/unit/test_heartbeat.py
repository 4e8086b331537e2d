"""What the log says about heartbeats that cannot be written."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from srm_spark.config import load_settings
from srm_spark.config.settings import ClusterSettings, HeartbeatSettings
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.heartbeat import BeatGroup, beat_groups, telling
from srm_spark.model import Flow


@pytest.mark.parametrize(("enabled", "told"), [(True, ["away", "gone", "away"]), (False, [])])
def test_a_failure_is_told_once_and_never_of_a_pair_that_nobody_enabled(
    caplog: pytest.LogCaptureFixture, enabled: bool, told: list[str]
) -> None:
    reasons = iter(["away", "away", "gone", None, "away"])

    def beat() -> None:
        if (reason := next(reasons)) is not None:
            raise TargetUnavailable(reason)

    pair = HeartbeatSettings(Flow("A", "B"), enabled, 1.0, 1)
    tell = telling(BeatGroup(ClusterSettings("B", "h:1"), 1.0, (pair,)), beat)
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            tell()
    assert caplog.messages == [f"flow=A->B no heartbeat: {reason}" for reason in told]


def test_all_pairs_into_one_cluster_share_its_clients(tmp_path: Path) -> None:
    aliases = [f"c{number}" for number in range(20)]
    lines = [f"clusters = {','.join(aliases)}", "c0->c1.enabled = true", "c2->c1.emit.heartbeats.interval.seconds = 9"]
    lines += [f"{alias}.bootstrap.servers = {alias}:1" for alias in aliases]
    path = tmp_path / "srm.properties"
    path.write_text("\n".join(lines))
    settings = load_settings([path])
    assert len(settings.heartbeats) == 380
    groups = beat_groups(settings.heartbeats, settings.clusters)
    assert len(groups) == 20 + 1, "and one for the pair that has a pace of its own"
    assert len(groups["c1", 1.0].pairs) == 18
    assert [str(pair.flow) for pair in groups["c1", 9.0].pairs] == ["c2->c1"]
    assert groups["c0", 1.0].target is settings.clusters["c0"]
