"""What another configuration does to a running driver: flow by flow, and nothing where nothing changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.config import load_settings
from srm_spark.config.reload import FIXED, Changes, compare
from srm_spark.config.settings import Settings
from srm_spark.core.model import Flow

BASE = """\
clusters = A, B, C
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
A->B.enabled = true
A->B.topics = orders
A->C.enabled = true
dialect = mm2
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return _load(tmp_path, "")


def _load(folder: Path, more: str, base: str = BASE) -> Settings:
    path = folder / "srm.properties"
    path.write_text(base + more)
    return load_settings([path])


def _names(changes: Changes) -> dict[str, list[str]]:
    return {
        "started": [str(flow.flow) for flow in changes.started],
        "stopped": [str(flow) for flow in changes.stopped],
        "restarted": [str(restart.settings.flow) for restart in changes.restarted],
        "unchanged": [str(flow) for flow in changes.unchanged],
        "refused": [str(flow) for flow in changes.refused],
    }


def test_nothing_changed(settings: Settings, tmp_path: Path) -> None:
    changes = compare(settings, _load(tmp_path, "# a comment\n\n"))
    assert changes.unchanged == tuple(flow.flow for flow in settings.flows)
    assert not any(_names(changes)[what] for what in ("started", "stopped", "restarted", "refused"))
    assert [*changes.heartbeats_started, *changes.heartbeats_stopped] == []
    assert list(changes.describe()) == ["no flow changed"]


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("A->B.topics = orders, payments", "topics.include"),
        ("A->B.topics.exclude = x.*", "topics.exclude"),
        ("A->B.refresh.topics.interval.seconds = 77", "topics.refresh_seconds"),
        ("A->B.batch.max.records = 5", "batch.max_records"),
        ("A->B.bandwidth.limit.bytes = 1000000", "limits.flow_bytes"),
        ("B.bandwidth.limit.bytes = 1000000", "limits.cluster_bytes"),
        ("A->B.priority.low.topics = logs.*", "limits.low_topics"),
        ("A->B.flow.retry.count = 3", "retry_count"),
        ("B.producer.linger.ms = 7", "producer[linger.ms]"),
        ("A->B.offset.lag.max = 1", "syncs.lag_max"),
    ],
)
def test_a_change_starts_only_its_flow_again(settings: Settings, tmp_path: Path, line: str, changed: str) -> None:
    changes = compare(settings, _load(tmp_path, f"{line}\n"))
    names = _names(changes)
    assert (names["restarted"], names["unchanged"]) == (["A->B"], ["A->C"])
    assert changed in changes.restarted[0].changed
    assert changed in next(iter(changes.describe()))


def test_a_secret_is_named_and_never_shown(settings: Settings, tmp_path: Path) -> None:
    jaas = 'x.PlainLoginModule required username="u" password="Hush-1";'
    more = f"B.security.protocol = SASL_SSL\nB.sasl.mechanism = PLAIN\nB.sasl.jaas.config = {jaas}\n"
    changes = compare(settings, _load(tmp_path, more))
    text = "\n".join(changes.describe()) + repr(changes)
    assert "target.properties[sasl.jaas.config]" in text
    assert "Hush-1" not in text


def test_flows_come_and_go(settings: Settings, tmp_path: Path) -> None:
    new = _load(tmp_path, "B->C.enabled = true\n", BASE.replace("A->C.enabled = true", "A->C.enabled = false"))
    names = _names(compare(settings, new))
    assert names == {
        "started": ["B->C"],
        "stopped": ["A->C"],
        "restarted": [],
        "unchanged": ["A->B"],
        "refused": [],
    }


@pytest.mark.parametrize(
    "line",
    [
        "replication.policy.separator = _",
        "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "A->B.name = other",
        "offset.storage.topic = elsewhere",
    ],
)
def test_what_would_copy_again_or_elsewhere_is_refused_with_the_reason(
    settings: Settings, tmp_path: Path, line: str
) -> None:
    changes = compare(settings, _load(tmp_path, f"{line}\nbatch.max.records = 5\n"))
    assert changes.refused
    assert all("stop the driver" in reason for reason in changes.refused.values())
    before = {flow.flow: flow for flow in settings.flows}
    after = {flow.flow: flow for flow in changes.settings.flows}
    assert all(after[flow] is before[flow] for flow in changes.refused)


def test_heartbeats_follow_their_interval_and_their_cluster(settings: Settings, tmp_path: Path) -> None:
    faster = compare(settings, _load(tmp_path, "A->B.emit.heartbeats.interval.seconds = 9\n"))
    assert [str(beat.flow) for beat in faster.heartbeats_started] == ["A->B"]
    assert [str(flow) for flow in faster.heartbeats_stopped] == ["A->B"]
    assert not faster.restarted
    off = compare(settings, _load(tmp_path, "B->C.emit.heartbeats.enabled = false\n"))
    assert [str(flow) for flow in off.heartbeats_stopped] == ["B->C"]
    assert off.heartbeats_started == ()
    moved = compare(settings, _load(tmp_path, "", BASE.replace("b:1", "b:1,b:2")))
    assert {beat.flow.target for beat in moved.heartbeats_started} == {"B"}


def test_every_fixed_setting_exists(settings: Settings) -> None:
    for name in FIXED:
        value: object = settings.flows[0]
        for part in name.split("."):
            value = getattr(value, part)


def test_a_flow_that_does_not_end_in_time_is_tried_again_by_the_next_reload(settings: Settings, tmp_path: Path) -> None:
    new = _load(tmp_path, "A->B.topics = orders, payments\nA->C.topics = x\n")
    late = Flow("A", "B")
    changes = compare(settings, new).put_off({late}, settings)
    assert _names(changes) | {"restarted": ["A->C"], "refused": ["A->B"]} == _names(changes)
    assert "flow=A->B keeps its old settings: it did not end in time" in "\n".join(changes.describe())
    again = compare(changes.settings, new)
    assert [restart.settings.flow for restart in again.restarted] == [late]
    assert compare(settings, new).put_off((), settings) == compare(settings, new)


def test_a_flow_that_is_gone_from_the_file_is_not_put_off(settings: Settings, tmp_path: Path) -> None:
    changes = compare(settings, _load(tmp_path, "A->C.enabled = false\n"))
    assert changes.put_off({Flow("A", "C")}, settings) == changes
