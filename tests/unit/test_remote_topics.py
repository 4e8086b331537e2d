"""Remote topics that are made are told. Fakes answer for both clusters."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from srm_spark.config import load_settings
from srm_spark.core.cluster import TopicSpec
from srm_spark.core.made_here import MadeTopic
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import connect
from srm_spark.flow.topics.internal_topics import ensure_topic, map_topic
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.remote_topics import RemoteTopics, record_made
from tests.memory_cluster import MemoryLog, MemoryTopic
from tests.unit.memory_flow import MemoryFlow, flow_settings

CONFIG = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"


def test_remote_topics_that_are_made_are_logged_and_refused_ones_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    there = {"A.orders": 1}

    def create(specs: Iterable[TopicSpec]) -> dict[str, str | None]:
        refused = {spec.name: "no right" if spec.name == "A.secret" else None for spec in specs}
        there.update({name: 1 for name, reason in refused.items() if reason is None})
        return refused

    source: Any = SimpleNamespace(configs=lambda _: {})
    target: Any = SimpleNamespace(
        alias="B", topics=lambda: there, create=create, grow=lambda _: {}, configs=lambda names: {n: {} for n in names}
    )
    path = tmp_path / "srm.properties"
    path.write_text(CONFIG)
    remote = RemoteTopics(replace(connect(load_settings(path).flows[0]), source=source, target=target))
    caplog.set_level(logging.INFO)
    for _ in range(2):
        prepared = remote.prepare({"orders": 1, "users": 1, "payments": 1, "secret": 1})
    assert set(prepared.held) == {"secret"}
    told = [message for message in caplog.messages if "created" in message]
    assert told == ["flow=A->B created 2 topics on B: A.payments, A.users"]


def test_a_topic_whose_id_is_told_late_is_recorded_all_the_same() -> None:
    flow = MemoryFlow(flow_settings({}))
    ensure_topic(flow.target, map_topic(flow.settings))
    made, asked = MemoryTopic([MemoryLog()], {}), list[str]()

    def happens(what: str) -> None:
        asked.append(what)
        if asked.count("describe topics") == 2:
            flow.target.held["A.t"] = made

    flow.target.happens = happens
    record_made(flow.reach(flow.settings), {"A.t": "t"})
    maps = OffsetMaps(flow.target, flow.settings.map_topic, "test", TargetUnavailable)
    maps.refresh()
    assert maps.made.topics == {"A.t": MadeTopic("t", made.topic_id)}
