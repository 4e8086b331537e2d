"""Why a group is not synced, as `srm-control groups status` tells it; share and streams groups are named, too."""

from __future__ import annotations

import json
import logging
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.flow.groups.choice import NO_CONSUMER_GROUP
from srm_spark.testing import run_java
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_count, await_lag_zero, write_config
from tests.group_io import commit, member, next_record
from tests.kafka_io import numbered

STREAMS_GROUP = Path(__file__).parents[1] / "java" / "StreamsGroup.java"
SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"


def make_others(pair: Pair, java_judge: Callable[..., subprocess.CompletedProcess[str]]) -> tuple[str, str]:
    """A share group and a streams group on the source."""
    shared, streamed = f"shared-{pair.unique}", f"streamed-{pair.unique}"
    server = ("--bootstrap-server", pair.source.bootstrap_servers)
    run_java(SHARE_CONSUMER, *server, "--topic", pair.topic(), "--group", shared, "--timeout-ms", "2000", check=False)
    host, port = pair.source.bootstrap_servers.split(":")
    java_judge(STREAMS_GROUP, host, port, streamed, pair.topic())
    return shared, streamed


def test_every_group_that_is_not_synced_has_its_reason(
    pair: Pair,
    tmp_path: Path,
    java_judge: Callable[..., subprocess.CompletedProcess[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    shared, streamed = make_others(pair, java_judge)
    chosen = {"groups": f".*-{pair.unique}", "groups.exclude": "noise-.*"}
    with caplog.at_level(logging.INFO, "srm_spark"):
        driver = pair.replicate(chosen)
        await_count(pair.target, pair.remote(), 10)
        await_lag_zero(driver)
        lines = {f"flow={pair.flow} group={group} is not synced: {NO_CONSUMER_GROUP}" for group in (shared, streamed)}
        await_until(lambda: lines <= set(caplog.messages), SOON, "the log names them")
        driver.stop()
    assert [caplog.messages.count(line) for line in lines] == [1, 1]

    here, there = (pair.topic(), 0), (pair.remote(), 0)
    pair.source.create(pair.topic("later"))
    for group, place in {"due": here, "ahead": here, "active": here, "unknown": (pair.topic("later"), 0)}.items():
        commit(pair.source, f"{group}-{pair.unique}", {place: 4})
    for group in (f"noise-{pair.unique}", f"{pair.unique}-other"):
        commit(pair.source, group, {here: 4})
    commit(pair.target, f"ahead-{pair.unique}", {there: 8})
    keys = {**pair.keys, **chosen, "sync.group.offsets.enabled": "true"}
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], keys)
    arguments = ["--config", str(path), "groups", "status", "--source", pair.alias, "--target", pair.target_alias]
    consumer = member(pair.target, f"active-{pair.unique}", pair.remote())
    try:
        next_record(consumer)
        answer = CliRunner().invoke(main, [*arguments, "--group", f".*{pair.unique}.*", "-o", "json"])
        text = CliRunner().invoke(main, [*arguments, "--group", f".*{pair.unique}.*"]).stdout
    finally:
        consumer.close()
    found = json.loads(answer.stdout)
    assert {row["group"].removesuffix(f"-{pair.unique}"): row["sync"] for row in found["positions"]} == {
        "due": "to be synced",
        "ahead": "not synced: the group is further on the target",
        "active": "not synced: the group has members on the target",
        "unknown": "not synced: there is no translation",
    }
    standings = {row["group"]: row["standing"] for row in found["positions"]}
    assert standings[f"unknown-{pair.unique}"] == "the partition is not replicated yet"
    assert found["not_taken"] == {
        shared: NO_CONSUMER_GROUP,
        streamed: NO_CONSUMER_GROUP,
        f"noise-{pair.unique}": "groups.exclude has noise-.*",
        f"{pair.unique}-other": "no pattern of groups matches, nor an entry of their list",
    }
    assert f"not taken ({NO_CONSUMER_GROUP}): {shared}, {streamed}" in text
    assert "not synced: the group has members on the target" in text
