"""`srm-control offsets` and `groups`, judged by Kafka's own tools and client, with the source up and down."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.testing import KafkaCluster, LocalKafka, run_java
from tests.awaiting import await_until
from tests.broker.conftest import Pair, Start
from tests.broker.mirror import SOON, await_count, await_lag_zero, write_config
from tests.group_io import commit, committed, read_checkpoints
from tests.kafka_io import Kafka, numbered

JUDGE = Path(__file__).parents[1] / "java" / "TranslateJudge.java"
RESET = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture
def short_lived(secondary: KafkaCluster, unique: str, start: Start) -> Iterator[tuple[Pair, LocalKafka]]:
    """A pair whose source can be stopped."""
    with LocalKafka(f"short-{unique}") as source:
        clusters: dict[str, KafkaCluster] = {f"a{unique}": source, f"b{unique}": secondary}
        yield Pair(Kafka(source), Kafka(secondary), clusters, unique, start), source


def run(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--config", str(path), *arguments])


def test_offsets_are_exported_for_kafkas_own_tool_also_when_the_source_is_down(
    short_lived: tuple[Pair, LocalKafka], tmp_path: Path, java_judge: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    pair, source = short_lived
    ours, other = f"g1-{pair.unique}", f"g2-{pair.unique}"
    pair.source.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(20, 2))
    commit(pair.source, ours, {(pair.topic(), 0): 4, (pair.topic(), 1): 7})
    commit(pair.source, other, {(pair.topic(), 0): 99})
    keys = {**pair.keys, "emit.checkpoints.interval.seconds": "1", "admin.timeout.ms": "5000"}
    driver = pair.replicate(keys)
    await_count(pair.target, pair.remote(), 20)
    await_lag_zero(driver)
    wanted = [f"{ours},{pair.remote()},0,4", f"{ours},{pair.remote()},1,7"]
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], keys)
    flow = ("--source", pair.alias, "--target", pair.target_alias)

    answer = run(path, "offsets", *flow, "--group", ours, "--export")
    assert (answer.exit_code, answer.stdout.splitlines()) == (0, wanted), answer.output
    rows = {
        (row["group"], row["partition"]): row
        for row in json.loads(run(path, "groups", "status", *flow, "-o", "json").stdout)["positions"]
    }
    assert rows[ours, 0]["source_lag"] == 6
    assert rows[ours, 1]["downstream"] == 7
    assert rows[ours, 1]["target_offset"] is None
    assert rows[ours, 1]["sync"] == "not synced: sync.group.offsets.enabled is false"
    assert (rows[other, 0]["downstream"], rows[other, 0]["source_lag"]) == (10, 0)
    assert rows[other, 0]["standing"].startswith("ahead of replication")
    table = run(path, "groups", "status", *flow).stdout
    assert ours in table
    assert pair.remote() in table

    name = f"{pair.alias}.checkpoints.internal"
    await_until(lambda: len(read_checkpoints(pair.target, name)) == 3, SOON, "checkpoints of all positions")
    said = java_judge(JUDGE, pair.target.bootstrap_servers, pair.alias, ours).stdout.splitlines()
    assert sorted(said) == [f"{pair.remote()}-0 4", f"{pair.remote()}-1 7"]
    driver.stop()
    source.stop()

    export = tmp_path / "offsets.csv"
    answer = run(path, "offsets", *flow, "--group", f"{ours},nobody.*", "--export", "--to", str(export))
    assert answer.exit_code == 0, answer.output
    assert "the source does not answer" in answer.stderr
    assert export.read_text().splitlines() == wanted
    arguments = ("--group", ours, "--reset-offsets", "--from-file", str(export), "--execute")
    run_java(RESET, "--bootstrap-server", pair.target.bootstrap_servers, *arguments)
    assert committed(pair.target, ours, pair.remote()) == {(pair.remote(), 0): (4, ""), (pair.remote(), 1): (7, "")}


def test_mistakes_are_told(pair: Pair, tmp_path: Path) -> None:
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], pair.keys)
    answer = run(path, "offsets", "--source", pair.target_alias, "--target", pair.alias, "--export")
    assert answer.exit_code == 1, answer.output
    assert f"{pair.target_alias}->{pair.alias} is not enabled in these files" in answer.output
    pair.source.create(pair.topic())
    commit(pair.source, f"group-{pair.unique}", {(pair.topic(), 0): 0})
    flow = ("--source", pair.alias, "--target", pair.target_alias)
    answer = run(path, "offsets", *flow, "--export")
    assert answer.exit_code == 1
    assert f"topic {pair.map_topic} is not there" in answer.output
