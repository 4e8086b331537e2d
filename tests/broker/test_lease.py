"""The lease of a flow on real brokers: kept while nobody asks for it, taken when its owner is not heard, and known
everywhere when it is gone."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.leases import BEAT_SECONDS, HELD_SECONDS, PATIENCE_SECONDS, SURE_SECONDS
from srm_spark.core.model import Flow
from srm_spark.errors import LeaseHeld, LeaseLost, TargetUnavailable
from srm_spark.flow.clusters import connect
from srm_spark.flow.owned import owned
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.fencing import TokenNote
from srm_spark.kafka.groups import GroupsClient
from srm_spark.kafka.lease import Lease, Permit
from srm_spark.kafka.older_drivers import OlderDrivers
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.group_io import commit, committed, member
from tests.kafka_io import Kafka
from tests.lease_io import standing_in

HERE = f"{socket.gethostname()} pid {os.getpid()}"


def client(target: KafkaCluster) -> ClusterClient:
    return ClusterClient(ClusterSettings("b", target.bootstrap_servers), TargetUnavailable, timeout=15)


def lease_at(target: KafkaCluster, unique: str, older: OlderDrivers | None = None) -> Lease:
    return Lease(Flow(f"a{unique}", "b"), client(target), f"leases-{unique}", older)


def members(target: KafkaCluster, group: str) -> tuple[str, ...]:
    """Who is in a group."""
    with closing(GroupsClient(client(target), "READ")) as groups:
        return groups.describe(group).members


@contextmanager
def held(target: KafkaCluster, unique: str) -> Iterator[Lease]:
    """An acquired lease."""
    lease = lease_at(target, unique)
    try:
        assert lease.other_owner() is None
        assert lease.acquire()
        yield lease
    finally:
        lease.release()


@contextmanager
def held_elsewhere(target: KafkaCluster, unique: str) -> Iterator[subprocess.Popen[str]]:
    """One of another process, which is killed with the block."""
    code = (
        "import sys, time; from tests.broker.test_lease import lease_at; from srm_spark.testing import KafkaCluster\n"
        "class There:\n    bootstrap_servers = sys.argv[1]\n"
        "lease = lease_at(There, sys.argv[2]); assert lease.other_owner() is None and lease.acquire()\n"
        "print('mine', flush=True); sys.stdin.readline(); print(lease.is_held(), flush=True)\n"
        "try:\n    lease.require(); print('fine', flush=True)\n"
        "except Exception as error: print(type(error).__name__, flush=True)\n"
    )
    command = [sys.executable, "-c", code, target.bootstrap_servers, unique]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "mine"
        yield process
    finally:
        process.kill()
        process.communicate()


def ask_elsewhere(permit: Permit) -> str:
    """What a process that never held the lease is told."""
    code = "import pickle, sys; permit = pickle.load(sys.stdin.buffer); permit.require(); print('fine')"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(permit), capture_output=True, timeout=60, check=False
    )
    return (done.stdout or done.stderr).decode()


@pytest.fixture
def target(secondary: KafkaCluster, unique: str) -> KafkaCluster:
    """With the topic of the leases."""
    Kafka(secondary).create(f"leases-{unique}")
    return secondary


def test_who_waits_goes_on_as_soon_as_it_may(target: KafkaCluster, unique: str) -> None:
    with closing(_Released(lease_at(target, unique))) as other, closing(_Released(lease_at(target, unique))) as mine:
        assert mine.lease.other_owner() is None
        assert mine.lease.acquire()
        assert other.lease.other_owner() == HERE
        leaves = threading.Timer(2.0, mine.lease.release)
        leaves.start()
        begun = time.monotonic()
        other.lease.await_free(threading.Event(), 1.0)
        assert 1.0 <= time.monotonic() - begun < 1.5, "as long as it may wait"
        other.lease.await_free(threading.Event(), 30.0)
        assert 2.0 <= time.monotonic() - begun < 10.0
        assert other.lease.acquire()
        leaves.join()


def test_one_has_it_and_the_other_one_is_told_who(target: KafkaCluster, unique: str) -> None:
    with held(target, unique) as lease, closing(_Released(lease_at(target, unique))) as other:
        begun = time.monotonic()
        while time.monotonic() < begun + PATIENCE_SECONDS + 2:
            assert other.lease.other_owner() == HERE
            time.sleep(BEAT_SECONDS)  # time itself is what is tried
        lease.require()
        assert other.lease.acquire() is False
        lease.release()
        begun = time.monotonic()
        assert other.lease.other_owner() is None
        assert other.lease.acquire()
        assert time.monotonic() - begun < PATIENCE_SECONDS, "it was given up: nobody waits"
        with pytest.raises(LeaseLost):
            lease.require()


def test_of_several_that_claim_at_a_time_one_gets_it(target: KafkaCluster, unique: str) -> None:
    leases = [lease_at(target, unique) for _ in range(3)]
    try:
        assert [lease.other_owner() for lease in leases] == [None] * 3
        assert sorted(lease.acquire() for lease in leases) == [False, False, True]
    finally:
        for lease in leases:
            lease.release()


def test_the_lease_of_a_process_that_was_killed_is_free_in_seconds(target: KafkaCluster, unique: str) -> None:
    with held_elsewhere(target, unique) as owner, closing(_Released(lease_at(target, unique))) as heir:
        await_until(lambda: f"pid {owner.pid}" in str(heir.lease.other_owner()), 10, "the owner is heard")
        owner.kill()
        begun = time.monotonic()
        await_until(lambda: heir.lease.other_owner() is None, 20, "the end of its lease")
        assert heir.lease.acquire()
        assert time.monotonic() - begun > PATIENCE_SECONDS - BEAT_SECONDS - 0.1


def test_a_process_that_was_stopped_finds_out_when_it_goes_on(target: KafkaCluster, unique: str) -> None:
    with held_elsewhere(target, unique) as owner, closing(_Released(lease_at(target, unique))) as heir:
        os.kill(owner.pid, signal.SIGSTOP)
        await_until(lambda: heir.lease.other_owner() is None, 20, "the end of its lease")
        assert heir.lease.acquire()
        time.sleep(HELD_SECONDS)  # so long it may hope
        os.kill(owner.pid, signal.SIGCONT)
        said, _ = owner.communicate("\n", timeout=30)
        assert said.split() == ["False", "LeaseLost"]
        heir.lease.require()


def test_a_process_that_was_stopped_for_a_moment_has_it_still_where_nobody_wanted_it(
    target: KafkaCluster, unique: str
) -> None:
    with held_elsewhere(target, unique) as owner:
        os.kill(owner.pid, signal.SIGSTOP)
        time.sleep(SURE_SECONDS + 1)
        os.kill(owner.pid, signal.SIGCONT)
        said, _ = owner.communicate("\n", timeout=30)
        assert said.split() == ["True", "fine"]


def test_a_note_outlives_beats_and_owners(target: KafkaCluster, unique: str) -> None:
    with held(target, unique) as lease:
        lease.note("a note")
    with held(target, unique) as lease:
        time.sleep(3 * BEAT_SECONDS)
        assert lease.noted == "a note"
        lease.require()
    assert standing_in(Kafka(target), f"leases-{unique}", f"srm-a{unique}->b").note == "a note"


def test_whoever_writes_elsewhere_is_told_that_the_owner_has_changed(target: KafkaCluster, unique: str) -> None:
    with held(target, unique) as lease:
        permit = lease.permit
        permit.require()
        assert ask_elsewhere(permit).strip() == "fine"
    with held(target, unique) as other:
        assert other.permit.holder != permit.holder
        assert "LeaseLost" in ask_elsewhere(permit)
        with pytest.raises(LeaseLost):
            permit.require()
        other.require()


def test_a_command_owns_the_flow_while_it_changes_something(pair: Pair, tmp_path: Path) -> None:
    pair.target.create(pair.progress_topic)
    settings = pair.settings(tmp_path)
    with owned(connect(settings)) as (clusters, _):
        clusters.require_lease()
        with pytest.raises(LeaseHeld, match="a driver runs it: "), owned(connect(settings)):
            pass
    with pytest.raises(LeaseLost):
        clusters.require_lease()
    with owned(connect(settings)) as (again, _):
        again.require_lease()


def test_an_owner_whose_target_hangs_is_not_sure_and_goes_on_with_it(
    local_kafka: Callable[..., LocalKafka], unique: str
) -> None:
    """Nobody else can claim it meanwhile; where it lasts, he gives up."""
    broker = local_kafka("leases")
    Kafka(broker).create(f"leases-{unique}")
    with held(broker, unique) as lease:
        holder = lease.permit.holder
        broker.pause()
        time.sleep(SURE_SECONDS + 1)
        assert lease.is_held()
        broker.resume()
        lease.require()
        assert standing_in(Kafka(broker), f"leases-{unique}", lease.group).holder == holder
        broker.pause()
        begun = time.monotonic()
        await_until(lambda: not lease.is_held(), 3 * HELD_SECONDS, "beats that nobody answers")
        assert time.monotonic() - begun > HELD_SECONDS / 2
        with pytest.raises(LeaseLost):
            lease.note("nobody hears it")
        broker.kill()
        lease.release()
        broker.start()
    with held(broker, unique) as again:
        again.note("heard")


def test_drivers_that_know_no_log_are_waited_for_and_kept_out(target: KafkaCluster, unique: str) -> None:
    """They own a flow as members of its group, and do not join while another one is there."""
    kafka, topic, group = Kafka(target), f"progress-{unique}", f"srm-a{unique}->b"
    kafka.create(topic)
    note = TokenNote("of an older one", 3)
    commit(kafka, group, {(topic, 0): 0}, note.encode())
    owner = member(kafka, group, topic)
    lease = lease_at(target, unique, OlderDrivers(client(target), group, topic))
    try:
        assert "127.0.0.1" in str(lease.other_owner())
        owner.close()
        await_until(lambda: lease.other_owner() is None, 20, "that he has left")
        assert lease.acquire()
        assert lease.older_token == note
        left = TokenNote.decode(committed(kafka, group, topic)[topic, 0][1])
        assert left is not None
        assert (left.slots, left.token == note.token) == (3, False), "his writers find another token"
        await_until(lambda: len(members(target, group)) == 1, 20, "a member of ours keeps others out")
        other = lease_at(target, unique, OlderDrivers(client(target), group, topic))
        assert other.other_owner() == HERE, "which is no older driver"
        other.release()
    finally:
        lease.release()
    await_until(lambda: not members(target, group), 20, "that it has left")


def test_a_driver_that_knows_no_log_and_came_at_the_same_time_has_the_flow(target: KafkaCluster, unique: str) -> None:
    kafka, topic, group = Kafka(target), f"progress-{unique}", f"srm-a{unique}->b"
    kafka.create(topic)
    lease = lease_at(target, unique, OlderDrivers(client(target), group, topic))
    try:
        assert lease.other_owner() is None
        owner = member(kafka, group, topic, partition_assignment_strategy="cooperative-sticky")
        await_until(lambda: owner.poll(0.1) is None and owner.assignment(), 20, "that he has joined")
        assert lease.acquire()
        await_until(lambda: owner.poll(0.1) is None and not lease.is_held(), 30, "that he is found")
        assert lease.why_lost == "a driver of an older version has it"
        with pytest.raises(LeaseLost, match="of an older version"):
            lease.require()
        owner.close()
    finally:
        lease.release()


def test_a_topic_that_is_made_anew_costs_the_lease_of_nobody(secondary: KafkaCluster, unique: str) -> None:
    kafka, topic = Kafka(secondary), f"leases-{unique}"
    kafka.create(topic)
    with held(secondary, unique) as lease:
        permit = lease.permit
        assert ask_elsewhere(permit).strip() == "fine"
        kafka.delete(topic)
        kafka.create(topic)
        await_until(lambda: standing_in(kafka, topic, lease.group).holder == permit.holder, 30, "it is heard again")
        lease.require()
        assert ask_elsewhere(permit).strip() == "fine"


def test_a_topic_that_cannot_be_written_says_so(secondary: KafkaCluster, unique: str) -> None:
    Kafka(secondary).create(f"leases-{unique}", configs={"max.message.bytes": "10"})
    lease = lease_at(secondary, unique)
    try:
        assert lease.other_owner() is None
        with pytest.raises(TargetUnavailable, match=f"topic leases-{unique} does not answer in time"):
            lease.acquire()
    finally:
        lease.release()


class _Released:
    """A lease that is given up with a block."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease

    def close(self) -> None:
        self.lease.release()
