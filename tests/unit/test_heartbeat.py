"""What the log says about heartbeats that cannot be written."""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from srm_spark.config import load_settings
from srm_spark.config.settings import ClusterSettings, HeartbeatSettings
from srm_spark.core.model import Flow
from srm_spark.errors import ClientRefused, TargetUnavailable
from srm_spark.flow.topics.heartbeat import BeatGroup, Heartbeats, beat_groups, due, telling
from srm_spark.kafka.cluster import ClusterClient


@pytest.mark.parametrize(("enabled", "told"), [(True, ["away", "gone", "away"]), (False, [])])
def test_a_failure_is_told_once_and_never_of_a_pair_that_nobody_enabled(
    caplog: pytest.LogCaptureFixture, enabled: bool, told: list[str]
) -> None:
    reasons = iter(["away", "away", "gone", None, "away"])

    def beat() -> None:
        if (reason := next(reasons)) is not None:
            raise TargetUnavailable(reason)

    pair = HeartbeatSettings(Flow("A", "B"), enabled, 1.0, 1)
    tell = telling(BeatGroup(ClusterSettings("B", "h:1"), (pair,)), beat)
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            tell()
    assert caplog.messages == [f"flow=A->B no heartbeat: {reason}" for reason in told]


class Clients:
    """Stands for the client library, and counts the clients that it is asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: Counter[tuple[str, str]] = Counter()
        self.beats: Counter[tuple[str, bytes]] = Counter()
        monkeypatch.setattr("srm_spark.kafka.control.control_producer", partial(self._make, "producer"))
        monkeypatch.setattr("srm_spark.kafka.cluster.admin_client", partial(self._make, "admin"))
        monkeypatch.setattr("srm_spark.flow.topics.heartbeat.ensure_topic", lambda *_: None)

    def _make(self, kind: str, cluster: ClusterSettings, *_: object) -> Any:
        self.made[kind, cluster.alias] += 1

        def produce(topic: str, value: bytes, key: bytes, **_: object) -> None:
            self.beats[cluster.alias, key] += 1

        return SimpleNamespace(produce=produce, flush=lambda _: 0, poll=lambda _: 0)


def test_all_pairs_into_one_cluster_share_its_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aliases = [f"c{number}" for number in range(20)]
    lines = [
        f"clusters = {','.join(aliases)}",
        "c0->c1.enabled = true",
        "dialect = mm2",
        "c2->c1.emit.heartbeats.interval.seconds = 9",
    ]
    lines += [f"{alias}.bootstrap.servers = {alias}:1" for alias in aliases]
    path = tmp_path / "srm.properties"
    path.write_text("\n".join(lines))
    settings = load_settings([path])
    assert len(settings.heartbeats) == 380
    groups = beat_groups(settings.heartbeats, settings.clusters)
    assert len(groups) == 20
    assert len(groups["c1"].pairs) == 19
    assert groups["c1"].interval_seconds == 1.0
    assert groups["c0"].target is settings.clusters["c0"]
    clients = Clients(monkeypatch)
    for group in groups.values():
        heartbeats = Heartbeats(group)
        for _ in range(3):
            heartbeats.beat()
    assert clients.made == {(kind, alias): 1 for alias in aliases for kind in ("admin", "producer")}
    assert len(clients.beats) == 380
    assert set(clients.beats.values()) == {1}  # none is due again yet


def test_each_pair_beats_at_its_own_pace() -> None:
    pairs = [HeartbeatSettings(Flow(name, "x"), True, every, 1) for name, every in (("a", 1.0), ("b", 2.5), ("c", 9.0))]
    group = BeatGroup(ClusterSettings("x", "h:1"), tuple(pairs))
    tick = group.interval_seconds
    assert tick == 0.5
    beaten: dict[Flow, float] = {}
    counts: Counter[str] = Counter()
    for number in range(180):  # 90 seconds by a timer that is early and late by turns
        now = tick * number + (-0.01, 0.02)[number % 2]
        for flow in due(pairs, beaten, now, tick):
            counts[flow.source] += 1
            beaten[flow] = now
    assert counts == {"a": 90, "b": 36, "c": 10}


def test_a_cluster_whose_client_cannot_be_made_is_told_and_stops_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    kerberos = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
    }
    group = BeatGroup(ClusterSettings("B", "h:1", kerberos), (HeartbeatSettings(Flow("A", "B"), True, 1.0, 1),))
    with caplog.at_level(logging.WARNING):
        telling(group, Heartbeats(group).beat)()
    (message,) = caplog.messages
    assert message.startswith("flow=A->B no heartbeat: cluster B (h:1): the client library refuses its settings: ")
    assert "GSSAPI" in message


def test_who_asks_such_a_cluster_gets_a_sentence() -> None:
    with pytest.raises(ClientRefused, match="srm-control config validate names the line"):
        ClusterClient(ClusterSettings("B", "h:1", {"client.dns.lookup": "sometimes"}), TargetUnavailable)
