"""The lease of a flow on a real coordinator: kept while nobody asks for it, known everywhere when it is gone."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import Flow
from srm_spark.errors import LeaseHeld, LeaseLost, TargetUnavailable
from srm_spark.flow.clusters import connect
from srm_spark.flow.owned import owned
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.groups import GroupsClient
from srm_spark.kafka.lease import SESSION_MS, Lease, Permit
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.kafka_io import Kafka


@contextmanager
def lease_of(target: KafkaCluster, unique: str) -> Iterator[Lease]:
    """An acquired lease, dropped by the coordinator where nobody polls for as long as a session lasts."""
    cluster = ClusterClient(ClusterSettings("b", target.bootstrap_servers), TargetUnavailable, timeout=30)
    lease = Lease(Flow(f"a{unique}", "b"), cluster, f"progress-{unique}", poll_ms=SESSION_MS)
    assert lease.other_owner() is None
    assert lease.acquire()
    try:
        yield lease
    finally:
        lease.release()


def ask_elsewhere(permit: Permit) -> str:
    """What a process that never held the lease is told."""
    code = "import pickle, sys; permit = pickle.load(sys.stdin.buffer); permit.require(); print('fine')"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(permit), capture_output=True, timeout=60, check=False
    )
    return (done.stdout or done.stderr).decode()


@pytest.fixture
def target(secondary: KafkaCluster, unique: str) -> KafkaCluster:
    """With the topic that leases are about."""
    Kafka(secondary).create(f"progress-{unique}")
    return secondary


def test_a_lease_is_kept_while_its_owner_has_other_things_to_do(target: KafkaCluster, unique: str) -> None:
    with lease_of(target, unique) as lease:
        begun = time.monotonic()
        while time.monotonic() < begun + SESSION_MS / 1000 + 4:
            time.sleep(0.5)  # a start that takes long; no condition, time itself is what is tried
        lease.require()
        assert lease.is_held()
        cluster = ClusterClient(ClusterSettings("b", target.bootstrap_servers), TargetUnavailable, timeout=30)
        with closing(GroupsClient(cluster, "READ")) as groups:
            assert groups.describe(lease.group).ids == (lease.permit.member,)


def test_a_note_outlives_confirmations_and_owners(target: KafkaCluster, unique: str) -> None:
    with lease_of(target, unique) as lease:
        lease.note("a note")
    with lease_of(target, unique) as lease:
        time.sleep(5)  # two confirmations
        assert lease.is_held()
    consumer = Consumer({"bootstrap.servers": target.bootstrap_servers, "group.id": f"srm-a{unique}->b"})
    with closing(consumer):
        (found,) = consumer.committed([TopicPartition(f"progress-{unique}", 0)], 30)
    assert (found.offset, found.metadata) == (0, "a note")


def test_whoever_writes_elsewhere_is_told_that_the_owner_has_changed(target: KafkaCluster, unique: str) -> None:
    with lease_of(target, unique) as lease:
        permit = lease.permit
        permit.require()
        assert ask_elsewhere(permit).strip() == "fine"
    with lease_of(target, unique) as other:
        assert other.permit.member != permit.member
        assert "LeaseLost" in ask_elsewhere(permit)
        with pytest.raises(LeaseLost):
            permit.require()
        with pytest.raises(LeaseLost):
            lease.require()
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


def test_a_lease_is_released_where_its_coordinator_died_amid_a_confirmation(
    local_kafka: Callable[..., LocalKafka], unique: str
) -> None:
    broker = local_kafka("leases")
    Kafka(broker).create(f"progress-{unique}")
    with lease_of(broker, unique) as lease:
        broker.pause()
        await_until(lambda: not lease.is_held(), 2 * SESSION_MS / 1000, "a confirmation that nobody answers")
        with pytest.raises(LeaseLost):
            lease.note("nobody hears it")
        broker.kill()
        begun = time.monotonic()
        lease.release()
        assert time.monotonic() - begun < SESSION_MS / 1000 + 30, "it would hang for ever"
        broker.start()
    await_until(lambda: lease.other_owner() is None, 2 * SESSION_MS / 1000, "the end of the old session")
    with lease_of(broker, unique) as again:
        again.note("heard")


def test_a_lease_of_before_that_the_coordinator_still_knows_is_named_as_one_s_own(
    local_kafka: Callable[..., LocalKafka], unique: str
) -> None:
    broker = local_kafka("leases")
    Kafka(broker).create(f"progress-{unique}")
    with lease_of(broker, unique) as lease:
        cluster = ClusterClient(ClusterSettings("b", broker.bootstrap_servers), TargetUnavailable, timeout=30)
        second = Lease(Flow(f"a{unique}", "b"), cluster, f"progress-{unique}")
        assert "at /127.0.0.1" in str(second.other_owner())
        assert lease.is_held()
        broker.kill()
        lease.release()  # nobody hears that it leaves
        broker.start()
        # Mostly it is still there. Where the connection comes back at once, the group is left after all.
        named = second.other_owner()
        assert named is None or "this driver's own lease of before, until " in named
        await_until(lambda: second.other_owner() is None, 2 * SESSION_MS / 1000, "the end of the old session")
