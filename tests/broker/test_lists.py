"""Lists that are changed by the real command while drivers run, and while none does."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import pytest

from srm_spark.driver import Driver
from srm_spark.flow.status import FlowState
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.control import SRM_CONTROL
from tests.broker.mirror import SOON, assert_copied, await_lag_zero, await_state, status_of, write_config
from tests.broker.pair_io import FAST
from tests.group_io import commit, committed
from tests.kafka_io import Kafka, numbered

TAKEN_SECONDS = 2.0
"""A driver that runs takes a change in this time."""


class Steered:
    """A pair, steered by the command alone: its file takes no topic and no group."""

    def __init__(self, pair: Pair, folder: Path, told: pytest.LogCaptureFixture) -> None:
        self.pair = pair
        self._told = told
        keys = {**FAST, "dialect": "srm", "sync.group.offsets.enabled": "true", "topics": "", "groups": ""}
        self.keys = {**keys, "refresh.topics.enabled": "false", "refresh.groups.interval.seconds": "3600"}
        self.path = write_config(folder / "lists.properties", pair.clusters, [pair.flow], self.keys)

    def begin(self, *arguments: str, word: str = "topics") -> subprocess.Popen[str]:
        """The command, which is not waited for."""
        where = ["--source", self.pair.alias, "--target", self.pair.target_alias]
        line = [str(SRM_CONTROL), "--config", str(self.path), word, *where, *arguments]
        return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __call__(self, *arguments: str, word: str = "topics") -> str:
        """What the command prints."""
        return ended(self.begin(*arguments, word=word))

    def lists(self) -> list[str]:
        """As SRM prints them."""
        return self("--list").splitlines()

    def drive(self) -> Driver:
        """A driver, running."""
        driver = self.pair.start(self.pair.clusters, [self.pair.flow], self.keys)
        await_state(driver, self.pair.flow, FlowState.RUNNING)
        return driver

    def await_taken(self, said: str) -> None:
        """The driver has told that it took a change, in time."""
        line = f"flow={self.pair.flow} lists: {said} by "
        await_until(lambda: any(line in one for one in self._told.messages), TAKEN_SECONDS, line)

    def await_topics(self, driver: Driver, count: int) -> None:
        """So many topics flow."""
        await_until(lambda: status_of(driver, self.pair.flow).topics == count, SOON, f"{count} topics")


def ended(command: subprocess.Popen[str]) -> str:
    out, err = command.communicate(timeout=60)
    assert command.returncode == 0, err
    return out


@pytest.fixture
def steered(pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Steered]:
    with caplog.at_level("INFO", "srm_spark"):
        yield Steered(pair, tmp_path, caplog)


def test_topics_begin_stop_and_go_on_while_a_driver_runs(steered: Steered) -> None:
    pair, topic, other = steered.pair, steered.pair.topic(), steered.pair.topic("u")
    for name in (topic, other):
        pair.source.create(name, 2)
        pair.source.write(name, numbered(20, 2))
    driver = steered.drive()
    assert "no entry of their list names a topic" in str(status_of(driver, pair.flow).reason)
    assert steered("--add", topic, "--reason", "the shop moves") == "Done.\n"
    steered.await_taken(f"topics +{topic}")
    assert_copied(pair.source, topic, pair.target, pair.remote())
    assert steered("--remove", topic, "--add", f"u-{pair.unique}") == "Done.\n"
    steered.await_taken(f"topics +{other} -{topic}")
    assert_copied(pair.source, other, pair.target, pair.remote("u"))
    pair.source.write(topic, numbered(20, 2, "off"))
    pair.source.write(other, numbered(20, 2, "on"))
    assert_copied(pair.source, other, pair.target, pair.remote("u"))
    await_lag_zero(driver)
    assert pair.target.given(pair.remote()) == 20, "nothing while it is off the list"
    steered("--add", topic)
    steered.await_taken(f"topics +{topic}")
    assert_copied(pair.source, topic, pair.target, pair.remote())
    steered.await_topics(driver, 2)
    driver.stop()
    pair.source.write(topic, numbered(20, 2, "down"))
    steered("--remove", other)
    driver = steered.drive()
    assert_copied(pair.source, topic, pair.target, pair.remote())
    assert status_of(driver, pair.flow).topics == 1
    assert status_of(driver, pair.flow).losses == {}
    history = json.loads(steered("--history", "-o", "json"))
    assert [each["why"] for each in history] == ["the shop moves", "", "", ""]
    assert all(abs(time.time() - _seconds(each["at"])) < 600 for each in history)


def test_groups_begin_to_be_synced_while_a_driver_runs(steered: Steered) -> None:
    pair, topic, group = steered.pair, steered.pair.topic(), f"g-{steered.pair.unique}"
    pair.source.create(topic)
    pair.source.write(topic, numbered(10))
    steered("--add", topic)
    driver = steered.drive()
    assert_copied(pair.source, topic, pair.target, pair.remote())
    await_lag_zero(driver)
    commit(pair.source, group, {(topic, 0): 7})
    assert steered("--add", f"g-{pair.unique}", word="groups") == "Done.\n"
    steered.await_taken(f"groups +{group}")
    await_until(lambda: committed(pair.target, group, pair.remote()), SOON, "it is on the target")
    assert committed(pair.target, group, pair.remote())[pair.remote(), 0][0] == 7
    steered("--add-blacklist", "g-.*", word="groups")
    steered.await_taken("groups deny +g-.*")
    commit(pair.source, group, {(topic, 0): 9})
    looks = time.monotonic() + 3 * float(FAST["sync.group.offsets.interval.seconds"])
    await_until(lambda: time.monotonic() > looks, 30, "three rounds")
    assert committed(pair.target, group, pair.remote())[pair.remote(), 0][0] == 7


def test_commands_at_once_lose_nothing(steered: Steered) -> None:
    names = [f"t{number}" for number in range(4)]
    running = [steered.begin("--add", name) for name in names]
    for each in running:
        assert ended(each) == "Done.\n"
    listed = steered.lists()
    assert (listed[0], set(listed[1:-2]), listed[-2:]) == (
        "Current whitelist:",
        set(names),
        ["Current blacklist:", "Done."],
    )


def test_lists_are_changed_while_the_source_is_down_and_without_a_file(
    secondary: KafkaCluster, unique: str, tmp_path: Path
) -> None:
    path = tmp_path / "down.properties"
    source, target = f"a{unique}", f"b{unique}"
    path.write_text(
        f"clusters = {source}, {target}\n{source}.bootstrap.servers = localhost:1\n"
        f"{target}.bootstrap.servers = {secondary.bootstrap_servers}\n{source}->{target}.enabled = true\n"
        "dialect = srm\noffset.storage.replication.factor = 1\nadmin.timeout.ms = 2000\n"
    )
    pair = ["--source", source, "--target", target]

    def run(*line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(SRM_CONTROL), *line], capture_output=True, text=True, timeout=60, check=False)

    def lists(*line: str) -> Sequence[str]:
        return run(*line, "--list").stdout.splitlines()

    bare = ["--bootstrap-server", secondary.bootstrap_servers, "topics", *pair]
    assert lists(*bare) == ["Current whitelist:", "Current blacklist:", "Done."]
    assert run("--config", str(path), "topics", *pair, "--add", "t,pay.*").stdout == "Done.\n"
    assert run(*bare, "--add-blacklist", "pay-secret", "--props", "client.id=me").stdout == "Done.\n"
    whole = ["Current whitelist:", "t", "pay.*", "Current blacklist:", "pay-secret", "Done."]
    assert lists(*bare) == lists("--config", str(path), "topics", *pair) == whole
    wide = run("--config", str(path), "topics", *pair, "--list", "-o", "wide")
    assert (wide.returncode, "what entries match is not known: cluster a" in wide.stderr) == (0, True)
    topic = f"mm2-control.{source}.internal"
    assert Kafka(secondary).configs(topic)["cleanup.policy"] == "compact"


def test_a_dry_run_counts_what_would_flow(steered: Steered) -> None:
    pair, topic = steered.pair, steered.pair.topic()
    pair.source.create(topic, 2)
    pair.source.write(topic, numbered(30, 2))
    printed = steered("--add", topic, "--dry-run").splitlines()
    assert printed[0] == f"would change: +{topic}"
    counted, size = printed[1].rsplit(", ", 1)
    assert counted == f"begins to flow: {topic}, 2 partitions, 30 records to copy"
    assert int(size.removesuffix(" bytes in all")) > 100
    assert steered.lists() == ["Current whitelist:", "Current blacklist:", "Done."]
    steered("--add", topic)
    (entry,) = json.loads(steered("--list", "-o", "json"))["allow"]
    assert entry["matches"] == [topic]


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
