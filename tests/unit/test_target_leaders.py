"""A log under another leader, in front of whose newest copies lies something of others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from srm_spark.config import load_settings
from srm_spark.core.cluster import LogEnd
from srm_spark.core.model import LogIdentity, TopicPartition
from srm_spark.errors import TargetChanged
from srm_spark.flow.recovery.target_leaders import TargetLeaders

CONFIG = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"
HERE, THERE = TopicPartition("t", 0), TopicPartition("A.t", 0)


class Target:
    """Tells of one partition under which leader epoch it is; None where it is gone."""

    def __init__(self, epoch: int | None) -> None:
        self.epoch = epoch
        self.asked = 0

    def log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        self.asked += 1
        return {} if self.epoch is None else {p: LogEnd(100, self.epoch) for p in partitions}


def leaders(tmp_path: Path, target: Target) -> TargetLeaders:
    path = tmp_path / "srm.properties"
    path.write_text(CONFIG)
    return TargetLeaders(load_settings([path]).flows[0], cast("Any", target))


@pytest.mark.parametrize("now", [8, None])
def test_another_leader_or_none_is_a_cause_to_compare(tmp_path: Path, now: int | None) -> None:
    with pytest.raises(TargetChanged, match=r"A->B: A\.t-0 has another leader"):
        leaders(tmp_path, Target(now)).require_same({HERE: THERE}, {HERE: LogIdentity(remote_epoch=7)})


def test_the_leader_of_before_is_none(tmp_path: Path) -> None:
    leaders(tmp_path, Target(7)).require_same({HERE: THERE}, {HERE: LogIdentity(remote_epoch=7)})


def test_nobody_is_asked_where_nothing_was_known(tmp_path: Path) -> None:
    target = Target(7)
    leaders(tmp_path, target).require_same({HERE: THERE}, {HERE: LogIdentity()})
    leaders(tmp_path, target).require_same({}, {})
    assert target.asked == 0
