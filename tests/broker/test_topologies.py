"""Topologies: both directions, fan-in, fan-out and chain, a ring of three; Kafka's own MirrorClient as a judge."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Start
from tests.broker.mirror import assert_copied
from tests.broker.mirror_maker import formatted
from tests.broker.pair_io import settle
from tests.kafka_io import Kafka, numbered

pytestmark = pytest.mark.slow

JUDGE = Path(__file__).parents[1] / "java" / "MirrorClientJudge.java"


def test_both_directions_do_not_copy_for_ever(
    start: Start, primary: KafkaCluster, secondary: KafkaCluster, unique: str
) -> None:
    clusters = {f"a{unique}": primary, f"b{unique}": secondary}
    a, b = clusters
    kafkas = {alias: Kafka(cluster) for alias, cluster in clusters.items()}
    topic = f"t-{unique}"
    for alias, kafka in kafkas.items():
        kafka.create(topic, 2)
        kafka.write(topic, numbered(20, 2, alias))
    driver = start(clusters, [f"{a}->{b}", f"{b}->{a}"], {"topics": f".*-{unique}"})
    assert_copied(kafkas[a], topic, kafkas[b], f"{a}.{topic}")
    assert_copied(kafkas[b], topic, kafkas[a], f"{b}.{topic}")
    assert settle(driver, kafkas, unique) == {a: {topic, f"{b}.{topic}"}, b: {topic, f"{a}.{topic}"}}
    assert all(
        kafkas[at].given(t) == 20 for at, t in ((a, topic), (b, topic), (a, f"{b}.{topic}"), (b, f"{a}.{topic}"))
    )


def test_fan_out_fan_in_and_chain(start: Start, three: Mapping[str, KafkaCluster], unique: str) -> None:
    """a->b and a->c, b->c as well: c gets a's topic on both ways."""
    a, b, c = three
    kafkas = {alias: Kafka(cluster) for alias, cluster in three.items()}
    topic = f"t-{unique}"
    for alias in (a, b):
        kafkas[alias].create(topic)
        kafkas[alias].write(topic, numbered(10, prefix=alias))
    driver = start(three, [f"{a}->{b}", f"{a}->{c}", f"{b}->{c}"], {"topics": f".*-{unique}"})
    assert_copied(kafkas[a], topic, kafkas[b], f"{a}.{topic}")
    assert_copied(kafkas[a], topic, kafkas[c], f"{a}.{topic}")
    assert_copied(kafkas[b], topic, kafkas[c], f"{b}.{topic}")
    assert_copied(kafkas[a], topic, kafkas[c], f"{b}.{a}.{topic}")
    found = settle(driver, kafkas, unique)
    assert found[b] == {topic, f"{a}.{topic}"}
    assert found[c] == {f"{a}.{topic}", f"{b}.{topic}", f"{b}.{a}.{topic}"}


def test_a_ring_of_three_judged_by_kafkas_own_client_and_formatters(
    start: Start,
    three: Mapping[str, KafkaCluster],
    unique: str,
    java_judge: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    a, b, c = three
    kafkas = {alias: Kafka(cluster) for alias, cluster in three.items()}
    topic = f"t-{unique}"
    for alias, kafka in kafkas.items():
        kafka.create(topic)
        kafka.write(topic, numbered(10, prefix=alias))
    keys = {
        "topics": f".*-{unique}",
        "emit.heartbeats.enabled": "true",
        "emit.heartbeats.interval.seconds": "1",
        "heartbeats.replication.enabled": "true",
    }
    driver = start(three, [f"{a}->{b}", f"{b}->{c}", f"{c}->{a}"], keys)
    for first, second, third in ((a, b, c), (b, c, a), (c, a, b)):
        assert_copied(kafkas[first], topic, kafkas[second], f"{first}.{topic}")
        assert_copied(kafkas[first], topic, kafkas[third], f"{second}.{first}.{topic}")
    for heartbeats in (f"{b}.heartbeats", f"{b}.{a}.heartbeats"):
        await_until(lambda: kafkas[c].count(heartbeats) > 0, 40, f"{heartbeats} on {c}")  # noqa: B023
    driver.stop()
    for alias, before, first in ((a, c, b), (b, a, c), (c, b, a)):
        own = {name for name in kafkas[alias].topics() if name.endswith(f"-{unique}")}
        assert own == {topic, f"{before}.{topic}", f"{before}.{first}.{topic}"}

    said = java_judge(JUDGE, three[c].bootstrap_servers, a, b, f"no{unique}").stdout.splitlines()
    answers = dict(line.rsplit(" ", 1) for line in said if not line.endswith(" "))
    assert {a, b} <= set(answers["upstream"].split(","))
    assert (answers[f"hops {b}"], answers[f"hops {a}"], answers[f"hops no{unique}"]) == ("1", "2", "-1")
    assert {f"{b}.{topic}", f"{b}.{a}.{topic}"} <= set(answers[f"topics {b}"].split(","))
    assert {f"{b}.{topic}", f"{b}.{a}.{topic}"} <= set(answers["remote"].split(","))

    beats = formatted(three[c], "heartbeats", "Heartbeat")
    assert any(f"Heartbeat{{sourceClusterAlias={b}, targetClusterAlias={c}, timestamp=" in line for line in beats)
    syncs = formatted(three[a], f"mm2-offset-syncs.{b}.internal", "OffsetSync")
    assert f"OffsetSync{{topicPartition={topic}-0, upstreamOffset=9, downstreamOffset=9}}" in syncs
