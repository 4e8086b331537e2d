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
from srm_spark.flow.clusters import connect
from srm_spark.flow.topics.remote_topics import RemoteTopics

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
