"""`srm-control switchover` on real brokers: a site is left over its flows to two others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.testing import LocalKafka
from tests.broker.conftest import Start
from tests.broker.mirror import await_lag_zero, write_config
from tests.group_io import commit, committed, member, take
from tests.kafka_io import Kafka, numbered

pytestmark = pytest.mark.slow


def test_a_site_is_left_over_all_its_flows(
    *,
    primary: Any,
    secondary: Any,
    start: Start,
    unique: str,
    tmp_path: Path,
    local_kafka: Callable[..., LocalKafka],
) -> None:
    third = local_kafka(f"third-{unique}")
    a, b, c = f"a{unique}", f"b{unique}", f"c{unique}"
    clusters, flows = {a: primary, b: secondary, c: third}, [f"{a}->{b}", f"{a}->{c}"]
    here, topic, fenced = Kafka(primary), f"t-{unique}", tmp_path / "fenced"
    remote = f"{a}.{topic}"
    here.create(topic)
    here.write(topic, numbered(10))
    keys = {"topics": topic, "admin.timeout.ms": "5000", "groups": f".*{unique}"}
    driver = start(clusters, flows, keys)
    path = write_config(tmp_path / "srm.properties", clusters, flows, keys)
    commit(here, f"g{unique}", {(topic, 0): 4})
    await_lag_zero(driver)

    def run(*arguments: str, typed: str | None = None) -> Result:
        line = ["switchover", "--config", str(path), "--site", a, "--folder", str(tmp_path), *arguments]
        return CliRunner().invoke(main, line if typed is not None else [*line, "--yes"], input=typed)

    there = {alias: Kafka(cluster) for alias, cluster in clusters.items() if alias != a}
    looked = run("--dry-run", "-o", "json")
    assert looked.exit_code == 0, looked.output
    plan = json.loads(looked.stdout)
    assert [one["flow"] for one in plan["flows"]] == flows
    assert [one["stage"] for one in plan["stages"]] == ["drain", "commit", "check"]
    assert run(typed="yes\n").exit_code == 1
    assert [committed(cluster, f"g{unique}", remote) for cluster in there.values()] == [{}, {}]

    reader = member(there[c], f"g{unique}", remote)  # it keeps one of the flows from its end
    take(reader, 1)
    fence = ("--fence", f"echo once >> {fenced}")
    answer = run(*fence, "--wait", "15", typed=f"{a}\n")
    assert answer.exit_code == 3, answer.output
    assert f"not safe of {a}\n  {a}->{c}: group g{unique} on {remote}-0: it has members on {c}" in answer.stdout
    assert committed(there[b], f"g{unique}", remote)[remote, 0][0] == 4
    reader.close()
    answer = run(*fence, "-o", "json")
    assert answer.exit_code == 0, answer.output
    assert [(one["flow"], one["unsafe"]) for one in json.loads(answer.stdout)["flows"]] == [(flows[1], [])]
    assert f"done by an earlier call: all of {flows[0]}" in answer.stderr
    assert fenced.read_text() == "once\n"
    for cluster in there.values():
        assert committed(cluster, f"g{unique}", remote)[remote, 0][0] == 4
    assert not any((tmp_path / f"srm-planned_failover-{a}-{alias}.json").exists() for alias in there)
