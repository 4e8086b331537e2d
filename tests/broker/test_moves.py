"""`srm-control failover` and `failback` on real brokers: nothing is skipped, nothing read twice, nobody disturbed."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from srm_spark.cli.control import main
from srm_spark.plan import Stage
from srm_spark.statements import check_statement, make_keys, read_public_key
from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Pair, Start
from tests.broker.control import SRM_CONTROL
from tests.broker.mirror import SOON, await_lag_zero, write_config
from tests.group_io import commit, committed, member, next_record, read_checkpoints, take
from tests.kafka_io import Kafka, Record, numbered, produce

pytestmark = pytest.mark.slow

FAST = {
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "admin.timeout.ms": "5000",
}


def run(path: Path, command: str, flow: str, *arguments: str, typed: str | None = None) -> Result:
    """A move with its state file next to the configuration; `typed` None does not let it ask."""
    state = ("--state", str(path.with_name("move.json")))
    ask = ("--yes",) if typed is None else ()
    line = [command, "--config", str(path), "--flow", flow, *state, *ask, *arguments]
    return CliRunner().invoke(main, line, input=typed)


def statement(path: Path) -> dict[str, Any]:
    """The newest statement."""
    found: dict[str, Any] = json.loads(sorted(path.parent.glob("move-*.json"))[-1].read_text())
    return found


def signed_in(folder: Path, public: Ed25519PublicKey) -> dict[str, Any]:
    """What the signed statement in a folder says."""
    (path,) = folder.glob("*.intoto.jsonl")
    found: dict[str, Any] = check_statement(path, public)[1]["predicate"]
    return found


def write_transactions(cluster: Kafka, topic: str, count: int, name: str) -> list[bytes]:
    """Transactions of five records, the second one aborted: offsets with markers, unlike those of the copy."""
    producer = cluster.producer(transactional_id=f"tx-{name}")
    producer.init_transactions(30)
    for number in range(count):
        producer.begin_transaction()
        produce(producer, topic, numbered(5, 1, f"{name}{number}-"))
        assert producer.flush(30) == 0
        producer.abort_transaction(30) if number == 1 else producer.commit_transaction(30)
    return [f"{name}{number}-{n}".encode() for number in range(count) if number != 1 for n in range(5)]


def rest_of(cluster: Kafka, group: str, topic: str, count: int) -> list[bytes]:
    """What a group reads that goes on here; exactly `count` records, and then nothing."""
    reader = member(cluster, group, topic, auto_offset_reset="error")
    try:
        found = take(reader, count)
        assert reader.poll(2) is None
    finally:
        reader.close()
    return found


def test_groups_move_when_the_source_is_killed(
    secondary: Any, start: Start, unique: str, tmp_path: Path, local_kafka: Callable[..., LocalKafka]
) -> None:
    dying = local_kafka(f"dying-{unique}")
    a, b, topic, group = f"a{unique}", f"b{unique}", f"t-{unique}", f"g{unique}"
    here, there, remote = Kafka(dying), Kafka(secondary), f"{a}.{topic}"
    here.create(topic)
    written = write_transactions(here, topic, 4, unique)
    keys = {**FAST, "topics": f".*{topic}", f"{a}.consumer.isolation.level": "read_committed"}
    driver = start({a: dying, b: secondary}, [f"{a}->{b}"], keys)
    path = write_config(tmp_path / "srm.properties", {a: dying, b: secondary}, [f"{a}->{b}"], keys)
    commit(here, group, {(topic, 0): 14}, "from upstream")  # five, a marker, five aborted, a marker, two: 7 were read
    checkpoints = f"{a}.checkpoints.internal"
    await_until(lambda: checkpoints in there.topics(), SOON, checkpoints)
    await_until(lambda: (group, remote, 0) in read_checkpoints(there, checkpoints), SOON, "a checkpoint")
    await_lag_zero(driver)
    dying.kill()

    answer = run(path, "failover", f"{a}->{b}", "--dry-run")
    assert answer.exit_code == 0, answer.output
    assert f"since {a} cannot be asked. Progress was recorded last" in answer.stdout
    assert "1 moves" in answer.stdout
    answer = run(path, "failover", f"{a}->{b}", typed="yes\n")
    assert answer.exit_code == 1
    assert "nothing was changed" in answer.stderr
    assert committed(there, group, remote) == {}
    assert [found.name for found in tmp_path.glob("move*")] == []

    answer = run(path, "failover", f"{a}->{b}", "-o", "json", typed=f"{a}->{b}\n")
    assert answer.exit_code == 0, answer.output
    said = json.loads(answer.stdout)
    assert said == statement(path)
    assert (said["loss"]["records"], said["loss"]["seconds"], said["unsafe"]) == (None, None, [])
    assert [said["groups"][0][key] for key in ("on_source", "before", "after", "outcome")] == [14, None, 7, "moved"]
    assert (said["ranges"][0]["replicated_to"], said["ranges"][0]["target_end"]) == (24, 15)
    assert f"start the consumers of {group} on {b}; their topics there are {remote}" in said["next_steps"]
    assert committed(there, group, remote) == {(remote, 0): (7, "from upstream")}
    assert sorted(found.suffix for found in tmp_path.glob("move*")) == [
        ".json",
        ".txt",
    ]  # the state is no longer needed
    assert rest_of(there, group, remote, 8) == written[7:]


@contextmanager
def writing(cluster: Kafka, topic: str, until: Path) -> Iterator[list[bytes]]:
    """A producer that writes until a file is there; the values that were acknowledged."""
    written: list[bytes] = []
    stop = threading.Event()

    def write() -> None:
        while not until.exists() and not stop.is_set():
            value = f"live-{len(written)}".encode()
            cluster.write(topic, [Record(None, value)])
            written.append(value)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield written
    finally:
        stop.set()
        thread.join()


def test_a_planned_move_drains_the_source_behind_the_fence(pair: Pair, tmp_path: Path) -> None:
    group, fenced = f"g{pair.unique}", tmp_path / "fenced"
    pair.source.create(pair.topic())
    driver = pair.replicate(FAST)
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], {**pair.keys, **FAST})
    read: list[bytes] = []

    def consume() -> None:
        reader = member(pair.source, group, pair.topic())
        while not fenced.exists():
            if (message := reader.poll(0.1)) is not None:
                reader.commit(message=message, asynchronous=False)
                read.append(message.value() or b"")
        reader.close()

    with writing(pair.source, pair.topic(), fenced) as written:
        consumer = threading.Thread(target=consume)
        consumer.start()
        try:
            await_until(lambda: len(read) > 5, SOON, "the group reads")
            await_until(lambda: sum(status.records for status in driver.status()) > 0, SOON, "the flow copies")
            fence = f"echo stopping it all; touch {shlex.quote(str(fenced))}"
            answer = run(path, "failover", pair.flow, "--planned", "--fence", fence)
        finally:
            fenced.touch()
            consumer.join()
    assert answer.exit_code == 0, answer.output
    assert "fence: stopping it all" in answer.stderr
    said = statement(path)
    assert (said["move"], said["loss"]["records"], said["loss"]["seconds"]) == ("planned failover", 0, 0.0)
    assert said["groups"][0]["outcome"] == "moved"
    assert read + rest_of(pair.target, group, pair.remote(), len(written) - len(read)) == written


def test_a_fence_that_fails_stops_the_move(pair: Pair, tmp_path: Path) -> None:
    group = f"g{pair.unique}"
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(3))
    commit(pair.source, group, {(pair.topic(), 0): 1})
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], {**pair.keys, **FAST})
    driver = pair.replicate(FAST)
    await_lag_zero(driver)
    fence = "echo no right to do that; exit 7 # password"
    answer = run(path, "failover", pair.flow, "--planned", "--fence", fence)
    assert answer.exit_code == 3, answer.output
    assert "fence: no right to do that" in answer.stderr
    assert statement(path)["unsafe"] == ["the fence command ended with exit code 7; nothing was moved"]
    assert committed(pair.target, group, pair.remote()) == {}
    assert not [found for found in tmp_path.glob("move*") if "password" in found.read_text()]
    driver.stop()
    answer = run(path, "failover", pair.flow, "--planned")
    assert answer.exit_code == 3
    assert f"nobody runs the flow {pair.flow}" in answer.stdout


def test_a_group_with_members_on_the_target_stays_until_they_are_gone(pair: Pair, tmp_path: Path) -> None:
    busy, idle, ahead = (f"{name}{pair.unique}" for name in ("busy", "idle", "ahead"))
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    for group in (busy, idle, ahead):
        commit(pair.source, group, {(pair.topic(), 0): 6})
    await_lag_zero(pair.replicate(FAST))
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], {**pair.keys, **FAST})
    commit(pair.target, idle, {(pair.remote(), 0): 2})
    reader = member(pair.target, busy, pair.remote())
    take(reader, 1)
    answer = run(path, "failover", pair.flow, "--group", f"{busy},{idle}")
    assert answer.exit_code == 3, answer.output
    rows = {row["group"]: row for row in statement(path)["groups"]}
    assert (rows[busy]["outcome"], rows[idle]["outcome"]) == ("not moved", "moved")
    assert f"has members on {pair.target_alias}" in rows[busy]["reason"]
    assert committed(pair.target, busy, pair.remote())[pair.remote(), 0][0] == 1
    state = json.loads((tmp_path / "move.json").read_text())
    assert {row["group"]: (row["before"], row["moved_to"]) for row in state["groups"]} == {
        busy: (1, None),
        idle: (2, 6),
    }
    reader.close()

    answer = run(path, "failover", pair.flow)
    assert answer.exit_code == 1
    assert "belongs to another move" in answer.stderr  # of all groups
    answer = run(path, "failover", pair.flow, "--group", f"{busy},{idle}")
    assert answer.exit_code == 0, answer.output
    rows = {row["group"]: (row["before"], row["after"], row["outcome"]) for row in statement(path)["groups"]}
    assert rows == {busy: (1, 6, "moved"), idle: (2, 6, "moved")}
    assert not (tmp_path / "move.json").exists()

    commit(pair.target, ahead, {(pair.remote(), 0): 9})
    answer = run(path, "failover", pair.flow, "--group", f"{ahead},nobody")
    assert answer.exit_code == 3, answer.output
    assert "it would skip what lies between" in statement(path)["groups"][0]["reason"]
    assert any(text.startswith("group nobody: no offset of it") for text in statement(path)["unsafe"])
    assert committed(pair.target, ahead, pair.remote())[pair.remote(), 0][0] == 9


def test_a_move_that_was_killed_goes_on_where_it_stopped(pair: Pair, tmp_path: Path) -> None:
    """And its signed statement says so, until the move has ended."""
    make_keys(tmp_path / "k", tmp_path / "k.pub")
    public, signed = read_public_key(tmp_path / "k.pub"), {"statement.key": str(tmp_path / "k")}
    group, state, stop = f"g{pair.unique}", tmp_path / "move.json", tmp_path / "stop"
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(4))
    commit(pair.source, group, {(pair.topic(), 0): 3})
    pair.replicate(FAST)
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], {**pair.keys, **FAST, **signed})
    fence = f"echo once >> {shlex.quote(str(tmp_path / 'fences'))}"
    await_until(lambda: pair.remote() in pair.target.topics(), SOON, "the remote topic")
    commit(pair.target, group, {(pair.remote(), 0): 1})
    arguments = ["failover", "--config", str(path), "--flow", pair.flow, "--planned", "--fence", fence, "--yes"]
    with writing(pair.source, pair.topic(), stop):  # the fence does not hold: it never gets drained
        process = subprocess.Popen([str(SRM_CONTROL), *arguments, "--state", str(state)], stderr=subprocess.DEVNULL)
        try:
            await_until(lambda: state.exists() and '"stage": "DRAIN"' in state.read_text(), SOON, "the second stage")
            await_until(lambda: Stage.DRAIN.value in str(signed_in(tmp_path, public)), SOON, "its statement")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(30)
    assert committed(pair.target, group, pair.remote()) == {(pair.remote(), 0): (1, "")}
    said = signed_in(tmp_path, public)
    assert said["unsafe"] == [f"the move has not ended: {Stage.DRAIN.value}"]
    assert [(one["stage"], one["ended"] is None) for one in said["phases"]] == [("fence", False), ("drain", True)]
    answer = run(path, "failover", pair.flow, "--planned", "--fence", fence)
    assert answer.exit_code == 0, answer.output
    assert "done by an earlier call: run the fence command" in answer.stderr
    assert (tmp_path / "fences").read_text() == "once\n"
    row = statement(path)["groups"][0]
    assert (row["before"], row["after"], row["outcome"]) == (1, 3, "moved")
    assert committed(pair.target, group, pair.remote()) == {(pair.remote(), 0): (3, "")}
    said = signed_in(tmp_path, public)
    assert (said["unsafe"], said["groups"][0]["after"], said["verified"]) == ([], 3, None)
    stages = [(one["stage"], one["ended"] is None) for one in said["phases"]]
    assert stages[:3] == [("fence", False), ("drain", True), ("drain", False)]
    assert all(not is_open for _, is_open in stages[2:])


def test_a_move_that_was_given_up_leaves_groups_where_they_stood(pair: Pair, tmp_path: Path) -> None:
    new, old, busy = (f"{name}{pair.unique}" for name in ("new", "old", "busy"))
    names, remote = ("--group", f"{new},{old},{busy}"), pair.remote()
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    for group in (new, old, busy):
        commit(pair.source, group, {(pair.topic(), 0): 6})
    await_lag_zero(pair.replicate(FAST))
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], {**pair.keys, **FAST})
    commit(pair.target, old, {(remote, 0): 2})
    reader = member(pair.target, busy, remote)
    take(reader, 1)  # it keeps the move from its end
    answer = run(path, "failover", pair.flow, *names, "--undo")
    assert (answer.exit_code, "is under way" in answer.stderr) == (1, True)
    assert run(path, "failover", pair.flow, *names).exit_code == 3
    assert [committed(pair.target, group, remote)[remote, 0][0] for group in (new, old)] == [6, 6]
    told = run(path, "failover", pair.flow, *names, "--undo", "--dry-run")
    assert told.exit_code == 0, told.output
    assert f"group {old} on {remote}-0: would stand at 2 again; the move had set it to 6" in told.stdout
    came = member(pair.target, new, remote)
    assert next_record(came).offset() == 6  # it commits nothing
    left = run(path, "failover", pair.flow, *names, "--undo")
    assert (left.exit_code, f"group {new} on {remote}-0: left: it has members" in left.stdout) == (3, True), left.output
    came.close()
    done = run(path, "failover", pair.flow, *names, "--undo", "-o", "json")
    reader.close()
    assert done.exit_code == 0, done.output
    (undo,) = json.loads(done.stdout)
    assert [(one["group"], one["before"], one["left"]) for one in undo["groups"]] == [(new, None, None), (old, 2, None)]
    assert committed(pair.target, new, remote) == {}
    assert committed(pair.target, old, remote)[remote, 0][0] == 2
    assert not path.with_name("move.json").exists()
    assert statement(path)["unsafe"] == ["the move was given up before it ended"]


def test_a_source_that_is_still_written_is_not_drained(pair: Pair, tmp_path: Path) -> None:
    group, stop = f"g{pair.unique}", tmp_path / "stop"
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(4))
    commit(pair.source, group, {(pair.topic(), 0): 3})
    await_lag_zero(pair.replicate(FAST))
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], {**pair.keys, **FAST})
    with writing(pair.source, pair.topic(), stop):
        answer = run(path, "failover", pair.flow, "--planned", "--wait", "8")
    assert answer.exit_code == 3, answer.output
    assert f"the source is still written ({pair.topic()}-0 from" in statement(path)["unsafe"][0]
    assert committed(pair.target, group, pair.remote()) == {}


def test_a_planned_move_leaves_a_group_that_still_reads_on_the_source(pair: Pair, tmp_path: Path) -> None:
    reading, gone = f"reading{pair.unique}", f"gone{pair.unique}"
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(4))
    commit(pair.source, gone, {(pair.topic(), 0): 3})
    await_lag_zero(pair.replicate(FAST))
    path = write_config(tmp_path / "srm.properties", pair.clusters, [pair.flow], {**pair.keys, **FAST})
    reader = member(pair.source, reading, pair.topic())
    take(reader, 2)
    answer = run(path, "failover", pair.flow, "--planned", "--wait", "7")
    reader.close()
    assert answer.exit_code == 3, answer.output
    rows = {row["group"]: row for row in statement(path)["groups"]}
    assert (rows[reading]["outcome"], rows[gone]["outcome"]) == ("not moved", "moved")
    assert f"has members on {pair.alias}" in rows[reading]["reason"]
    assert committed(pair.target, reading, pair.remote()) == {}


@pytest.mark.parametrize("reads_everything", [True, False])
def test_a_group_goes_back_with_new_records_on_both_sides(pair: Pair, tmp_path: Path, reads_everything: bool) -> None:
    group, topic = f"g{pair.unique}", pair.topic()
    both = [pair.flow, f"{pair.target_alias}->{pair.alias}"]
    keys = {**FAST, "topics": f"{topic}"}
    pair.source.create(topic)
    pair.target.create(topic)
    everywhere = f"^.*{topic}$"
    written = [record.value for record in numbered(6, 1, "a")] + [record.value for record in numbered(5, 1, "b")]
    pair.source.write(topic, numbered(6, 1, "a"))
    pair.target.write(topic, numbered(5, 1, "b"))
    driver = pair.start(pair.clusters, both, keys)
    path = write_config(tmp_path / "srm.properties", pair.clusters, both, keys)
    await_lag_zero(driver)

    reader = member(pair.source, group, everywhere)
    read = take(reader, 7)
    reader.close()
    answer = run(path, "failover", pair.flow)
    assert answer.exit_code == 0, answer.output
    pair.source.write(topic, numbered(3, 1, "a-new"))
    pair.target.write(topic, numbered(4, 1, "b-new"))
    written += [record.value for record in numbered(3, 1, "a-new")] + [
        record.value for record in numbered(4, 1, "b-new")
    ]
    reader = member(pair.target, group, everywhere)
    read += take(reader, 11 if reads_everything else 6)
    reader.close()

    assert f"srm-control failback --flow '{pair.flow}'" in answer.stdout
    answer = run(path, "failback", pair.flow)
    assert answer.exit_code == 0, answer.output
    assert f"failback of {pair.flow}, over {both[1]}" in answer.stdout
    read += rest_of(pair.source, group, everywhere, 18 - len(read))
    assert sorted(read) == sorted(value or b"" for value in written)
