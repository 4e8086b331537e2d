"""Lists under what goes wrong around them, by the real command: nothing of them is lost, and it is said."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.testing import KafkaCluster
from tests.broker.control import Running, srm_control
from tests.broker.mirror import write_config
from tests.kafka_io import Kafka, Record

pytestmark = pytest.mark.slow


class Steering:
    """The lists of one flow, on a target that others have lists on, too."""

    def __init__(self, target: KafkaCluster, unique: str, folder: Path) -> None:
        self.kafka, self._target, self._folder = Kafka(target), target, folder
        self.pair = (f"a{unique}", f"b{unique}")
        self.topic = f"mm2-control.{self.pair[0]}.internal"

    def line(self, *words: str, file: str = "one", **keys: str) -> list[str]:
        """A command line; the installation of this `file` has these keys, and no source that answers."""
        source, target = self.pair
        keys = {"dialect": "srm", f"{source}.bootstrap.servers": "127.0.0.1:1", "admin.timeout.ms": "10000", **keys}
        clusters = {source: self._target, target: self._target}
        path = write_config(self._folder / f"{file}.properties", clusters, [f"{source}->{target}"], keys)
        return ["--config", str(path), "topics", "--source", source, "--target", target, *words]

    def __call__(self, *words: str, file: str = "one", **keys: str) -> Result:
        return CliRunner().invoke(main, self.line(*words, file=file, **keys))

    def lists(self) -> Sequence[str]:
        """As SRM prints them."""
        return self("--list").stdout.splitlines()

    def allowed(self) -> set[str]:
        """Entries of the allow list."""
        listed = self.lists()
        return set(listed[1 : listed.index("Current blacklist:")])


@pytest.fixture
def steering(secondary: KafkaCluster, unique: str, tmp_path: Path) -> Steering:
    return Steering(secondary, unique, tmp_path)


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return str(result.output)


def interrupt_amid_the_write(running: Running) -> int:
    running.await_clients(3)  # who asks, who reads, and now who writes
    return running.interrupt()


def test_ctrl_c_ends_a_command_and_leaves_whole_lists(steering: Steering) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        bare = ("--bootstrap-servers", f"127.0.0.1:{port}", "topics", "--source", "a", "--target", "b", "--list")
        with srm_control(*bare) as running:
            running.await_connected(port)
            assert (running.interrupt(), "interrupted" in running.said) == (130, True), running.said
    done(steering("--add", "t"))
    steering.kafka.configure(steering.topic, min_insync_replicas="2")
    with srm_control(*steering.line("--add", "u,v", "--reason", "both or none")) as running:
        code = interrupt_amid_the_write(running)
        assert (code, "may" in running.said) == (130, True), running.said
    steering.kafka.configure(steering.topic, min_insync_replicas="1")
    assert steering.allowed() in ({"t"}, {"t", "u", "v"})
    done(steering("--add", "u,v"))
    assert steering.allowed() == {"t", "u", "v"}


def test_garbage_and_a_wrong_cleanup_policy_are_said_and_lists_stay(steering: Steering) -> None:
    done(steering("--add", "t"))
    garbage = [Record(b"x", b"garbage"), Record(b'["act","x"]', b"{"), Record(b'["act","y"]', None)]
    steering.kafka.write(steering.topic, garbage)
    assert "passed over 2 records" in done(steering("--add", "u"))
    assert steering.allowed() == {"t", "u"}
    steering.kafka.configure(steering.topic, cleanup_policy="delete")
    remedy = f"kafka-configs.sh --alter --topic {steering.topic} --add-config cleanup.policy=compact"
    listed = steering("--list")
    assert (listed.exit_code, remedy in listed.output) == (0, True), listed.output
    refused = steering("--add", "v")
    assert (refused.exit_code, remedy in refused.output) == (1, True), refused.output
    assert steering.allowed() == {"t", "u"}
    steering.kafka.delete_records(steering.topic, 0, 1)  # as its policy would have done it one day
    steering.kafka.configure(steering.topic, cleanup_policy="compact")
    assert f"topic {steering.topic} begins at offset 1" in done(steering("--list"))
    done(steering("--add", "t,v"))
    assert steering.allowed() == {"t", "u", "v"}


def test_two_installations_with_other_files_steer_one_flow_and_lose_nothing(steering: Steering) -> None:
    names = [f"t{number}" for number in range(6)]
    lines = [
        steering.line("--add", name, "--reason", f"from {number % 2}", file=str(number % 2), topics=f"file{number % 2}")
        for number, name in enumerate(names)
    ]
    with srm_control(*lines[0]) as one, srm_control(*lines[1]) as two, srm_control(*lines[2]) as three:
        assert [each.end() for each in (one, two, three)] == [0, 0, 0], one.said + two.said + three.said
    with srm_control(*lines[3]) as one, srm_control(*lines[4]) as two, srm_control(*lines[5]) as three:
        assert [each.end() for each in (one, two, three)] == [0, 0, 0], one.said + two.said + three.said
    assert steering.allowed() == set(names)
    history = json.loads(done(steering("--history", "-o", "json")))
    assert {(act["add"][0], act["why"]) for act in history} == {(n, f"from {i % 2}") for i, n in enumerate(names)}
    for file in ("0", "1"):
        listed = steering("--list", file=file, topics=f"file{file}")
        assert {*names} <= set(listed.stdout.splitlines()), "whatever its file says"
        told = done(steering("--add", f"file{file}", file=file, topics=f"file{file}"))
        assert f"file{file}: the file takes it already" in told


def test_a_list_of_a_megabyte_is_taken_whole_or_the_limit_is_named(steering: Steering, tmp_path: Path) -> None:
    entries = [f"shop.team{number % 97}.topic-of-many-{number:06d}" for number in range(32_000)]
    path = tmp_path / "lists.json"
    done(steering("--add", "before"))
    document = json.loads(steering("--export").stdout)
    document["allow"] = entries
    path.write_text(json.dumps(document))
    assert path.stat().st_size > 1_000_000
    steering.kafka.configure(steering.topic, max_message_bytes="100000")
    refused = steering("--import", str(path))
    assert refused.exit_code == 1, refused.output[:1000]
    assert f"raise max.message.bytes of topic {steering.topic}" in refused.output
    assert "before" in steering.allowed()
    steering.kafka.configure(steering.topic, max_message_bytes="1048588")
    done(steering("--import", str(path)))
    assert steering.allowed() == set(entries)
    wrong = steering("--add", "fine,a(b", "--add-blacklist", "[c")
    assert (wrong.exit_code, "at character 2" in wrong.output, "at character 1" in wrong.output) == (2, True, True)
