"""MirrorMaker 2's own `MirrorMakerConfig` is the judge: on the same files it must resolve every key as we do."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from srm_spark.config import keys, keys_connector, levels
from srm_spark.config.keys_client import CLIENT_KEYS, SECURITY_KEYS
from srm_spark.config.load import load
from srm_spark.config.sasl import FUNCTION_KEY
from srm_spark.config.schema import Dialect, Scope
from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import Flow

Judgement = dict[str, Any]
JUDGE = Path(__file__).with_name("MirrorMakerJudge.java")
SAMPLES = sorted((Path(__file__).parents[1] / "unit" / "config" / "samples").glob("mm2-*.properties"))
RANDOM_FILES = 120

FILLED_IN = {"name", "connector.class", "source.cluster.alias", "target.cluster.alias", "enabled"}
"""What MM2 writes into every connector config where the file says nothing."""
ADDED = {"topics.blacklist", "groups.blacklist", "config.properties.blacklist", FUNCTION_KEY} | {
    key.name for key in keys_connector.OWN if key.scope is Scope.CONNECTOR
}
"""What we take at the top level beyond MM2 4.3: its former names, and ours."""
OTHER_DEFAULTS = {
    "enabled",
    "refresh.topics.interval.seconds",
    "refresh.groups.interval.seconds",
    "emit.checkpoints.interval.seconds",
    "sync.group.offsets.interval.seconds",
    "tasks.max",
    "target.cluster.alias",
    "metric.reporters",
}
"""`enabled` is false in dedicated mode; intervals are ours; aliases and reporters have no meaning here."""
NOT_OURS = ("client.id", "poll.timeout.ms", "enable.auto.commit")
"""Client properties that each side sets itself, or that only look like one."""
WORKER_FILLED_IN = {
    "client.id",
    "group.id",
    "offset.storage.topic",
    "status.storage.topic",
    "config.storage.topic",
    "key.converter",
    "value.converter",
    "header.converter",
}


def _random_file(dice: random.Random) -> str:
    aliases = dice.sample(["A", "B", "C", "us-east", "dc_2"], dice.randint(2, 3))
    values = {
        "topics": ["orders", "a.*,b", ".*"],
        "topics.exclude": ["x,y"],
        "offset.lag.max": ["0", "7"],
        "replication.factor": ["1", "-1"],
        "emit.heartbeats.enabled": ["true", "false"],
        "emit.heartbeats.interval.seconds": ["3"],
        "offset-syncs.topic.location": ["source", "target"],
        "use.defaults.from": ["source"],
        "tasks.max": ["4"],
        "replication.policy.separator": ["_", "-"],
        "replication.policy.custom": ["z"],
        "offset.storage.topic": ["my-offsets"],
        "offset.storage.replication.factor": ["1", "2"],
        "offset.flush.interval.ms": ["5000"],
        "security.protocol": ["SSL", "PLAINTEXT"],
        "ssl.truststore.location": ["/t1", "/t2"],
        "ssl.truststore.password": ["s1", "s2"],
        "bootstrap.servers": ["z:1"],
        "producer.linger.ms": ["1", "2"],
        "producer.override.linger.ms": ["8"],
        "producer.ssl.truststore.location": ["/t3"],
        "consumer.fetch.min.bytes": ["5", "6"],
        "consumer.auto.offset.reset": ["latest"],
        "consumer.security.protocol": ["PLAINTEXT"],
        "source.consumer.fetch.min.bytes": ["9"],
        "source.cluster.ssl.truststore.location": ["/t4"],
        "target.cluster.bootstrap.servers": ["y:1"],
        "admin.request.timeout.ms": ["1000"],
        "target.admin.request.timeout.ms": ["2000"],
        "request.timeout.ms": ["77"],
        "consumer.poll.timeout.ms": ["500"],
        "errors.tolerance": ["all"],
        "config.storage.topic": ["c"],
        "task.shutdown.graceful.timeout.ms": ["3"],
        "enabled": ["true", "false"],
        "made.up": ["1"],
    }
    flows = [f"{source}->{target}." for source in aliases for target in aliases if source != target]
    prefixes = ["", *(f"{alias}." for alias in aliases), *flows]
    lines = {f"{alias}.bootstrap.servers": f"{alias}:9092" for alias in aliases if dice.random() < 0.95}
    for _ in range(dice.randint(0, 25)):
        name = dice.choice(list(values))
        lines[dice.choice(prefixes) + name] = dice.choice(values[name])
    for flow in flows:
        if dice.random() < 0.5:
            lines[f"{flow}enabled"] = dice.choice(["true", "false", "TRUE"])
    return "".join(f"{key} = {value}\n" for key, value in {"clusters": ", ".join(aliases), **lines}.items())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Hand-written files and random ones."""
    folder = tmp_path_factory.mktemp("mm2")
    dice = random.Random(7)
    found = list(SAMPLES)
    for number in range(RANDOM_FILES):
        found.append(folder / f"random-{number}.properties")
        found[-1].write_text(_random_file(dice))
    return found


@pytest.fixture(scope="module")
def judge(
    files: list[Path],
    tmp_path_factory: pytest.TempPathFactory,
    java_judge: Callable[..., subprocess.CompletedProcess[str]],
) -> dict[str, list[Any]]:
    """What the judge says, by the first word of its lines; one JVM for all files, as starting one takes longest."""
    listing = tmp_path_factory.mktemp("listing") / "files.txt"
    listing.write_text("".join(f"{file}\n" for file in files))
    said: dict[str, list[Any]] = {"JUDGE": [], "KNOWN": [], "CLIENT": []}
    for line in java_judge(JUDGE, str(listing)).stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word in said:
            said[word].append(json.loads(rest))
    return said


@pytest.fixture(scope="module")
def judged(files: list[Path], judge: dict[str, list[Any]]) -> list[tuple[Path, Judgement]]:
    """Every file with MM2's view of it."""
    return list(zip(files, judge["JUDGE"], strict=True))


def test_the_key_table_has_every_key_of_the_connectors_with_its_default(judge: dict[str, list[Any]]) -> None:
    (known,) = judge["KNOWN"]
    ours = {name: key for name, key in keys.BY_NAME.items() if name in known}
    assert set(known) - set(ours) == set()
    assert set(keys.connector_names(Dialect.MM2)) - set(known) == ADDED
    differing = {
        name
        for name, default in known.items()
        if name not in SECURITY_KEYS and default not in (ours[name].default, "", None)
    }
    assert differing == OTHER_DEFAULTS


def test_the_client_table_has_every_property_of_the_java_clients(judge: dict[str, list[Any]]) -> None:
    known = {name for names in judge["CLIENT"] for name in names}
    assert known - set(CLIENT_KEYS) == set()
    assert set(CLIENT_KEYS) - known == {FUNCTION_KEY}


def _pairs(judged: list[tuple[Path, Judgement]]) -> Iterator[tuple[Path, Flow, Judgement]]:
    for file, judgement in judged:
        if "error" in judgement:
            continue
        for name, answer in judgement.items():
            yield file, Flow(*name.split("->")), answer


def _with_default(ours: dict[str, str], theirs: Mapping[str, str], names: set[str]) -> dict[str, str]:
    return {**{name: theirs[name] for name in names if name in theirs}, **ours}


def test_connector_properties_are_those_of_mirror_maker(judged: list[tuple[Path, Judgement]]) -> None:
    compared = 0
    for file, flow, theirs in _pairs(judged):
        connector = levels.connector_props(load([file]).sources.entries, flow, Dialect.MM2).values()
        assert _with_default(connector, theirs["connector"], FILLED_IN) == theirs["connector"], (file.read_text(), flow)
        compared += 1
    assert compared > RANDOM_FILES / 2


def test_worker_properties_are_those_of_mirror_maker(judged: list[tuple[Path, Judgement]]) -> None:
    for file, flow, theirs in _pairs(judged):
        worker = levels.worker_props(load([file]).sources.entries, flow, Dialect.MM2).values()
        assert _with_default(worker, theirs["worker"], WORKER_FILLED_IN) == theirs["worker"], (file.read_text(), flow)


@pytest.mark.parametrize(
    ("side", "client", "theirs_is"),
    [
        ("source", "consumer", "sourceConsumerConfig"),
        ("source", "admin", "sourceAdminConfig"),
        ("target", "admin", "targetAdminConfig"),
        ("source", "producer", "sourceProducerConfig"),
    ],
)
def test_client_properties_are_those_of_mirror_maker(
    judged: list[tuple[Path, Judgement]], side: str, client: str, theirs_is: str
) -> None:
    for file, flow, answer in _pairs(judged):
        connector = levels.connector_props(load([file]).sources.entries, flow, Dialect.MM2)
        ours = levels.client_props(connector, side, client, Dialect.MM2).values()
        theirs = {name: value for name, value in answer[theirs_is].items() if name not in NOT_OURS}
        filled_in = {"auto.offset.reset": "earliest"} if client == "consumer" else {}
        ours = {name: value for name, value in ours.items() if name not in NOT_OURS}
        assert {**filled_in, **ours} == theirs, (file.read_text(), flow)


def test_enabled_flows_and_heartbeats_are_those_of_mirror_maker(judged: list[tuple[Path, Judgement]]) -> None:
    for file, judgement in judged:
        if "error" in judgement:
            continue
        settings = load([file]).settings
        enabled = {name for name, answer in judgement.items() if answer["connector"]["enabled"].lower() == "true"}
        assert {str(flow.flow) for flow in settings.flows} == enabled, file.read_text()
        beating = {
            name
            for name, answer in judgement.items()
            if answer["connector"].get("emit.heartbeats.enabled", "true").lower() == "true"
        }
        assert {str(heartbeat.flow) for heartbeat in settings.heartbeats} == beating, file.read_text()


def test_settings_of_a_flow_carry_what_mirror_maker_would_use(judged: list[tuple[Path, Judgement]]) -> None:
    for file, judgement in judged:
        for flow in () if "error" in judgement else load([file]).settings.flows:
            theirs = judgement[str(flow.flow)]
            assert flow.progress_topic == theirs["worker"]["offset.storage.topic"]
            consumer = {name: text for name, text in theirs["sourceConsumerConfig"].items() if name not in NOT_OURS}
            ours = {**_common(flow.source), **flow.consumer}
            assert {name: ours.get(name) for name in consumer} == consumer, (file.read_text(), flow.flow)
            producer = {**_common(flow.target), **flow.producer}
            expected = {
                name.removeprefix("producer."): value
                for name, value in theirs["worker"].items()
                if name.startswith("producer.")
            }
            expected |= {
                name.removeprefix("producer.override."): value
                for name, value in theirs["connector"].items()
                if name.startswith("producer.override.")
            }
            assert {name: producer.get(name) for name in expected} == expected, (file.read_text(), flow.flow)


def _common(cluster: ClusterSettings) -> dict[str, str]:
    return {"bootstrap.servers": cluster.bootstrap_servers, **cluster.properties}
