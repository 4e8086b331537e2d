"""The claim of a flow on a real coordinator: kept while nobody asks for it, known everywhere when it is gone."""

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
from srm_spark.errors import ClaimHeld, ClaimLost, TargetUnavailable
from srm_spark.flow.clusters import connect
from srm_spark.flow.owned import owned
from srm_spark.kafka.claim import SESSION_MS, Claim, Permit
from srm_spark.kafka.cluster import Cluster
from srm_spark.kafka.groups import Groups
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.kafka_io import Kafka


@contextmanager
def claim_of(target: KafkaCluster, unique: str) -> Iterator[Claim]:
    """An acquired claim, dropped by the coordinator where nobody polls for as long as a session lasts."""
    cluster = Cluster(ClusterSettings("b", target.bootstrap_servers), TargetUnavailable, timeout=30)
    claim = Claim(Flow(f"a{unique}", "b"), cluster, f"progress-{unique}", poll_ms=SESSION_MS)
    assert claim.other_owner() is None
    assert claim.acquire()
    try:
        yield claim
    finally:
        claim.release()


def ask_elsewhere(permit: Permit) -> str:
    """What a process that never held the claim is told."""
    code = "import pickle, sys; permit = pickle.load(sys.stdin.buffer); permit.require(); print('fine')"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(permit), capture_output=True, timeout=60, check=False
    )
    return (done.stdout or done.stderr).decode()


@pytest.fixture
def target(secondary: KafkaCluster, unique: str) -> KafkaCluster:
    """With the topic that claims are about."""
    Kafka(secondary).create(f"progress-{unique}")
    return secondary


def test_a_claim_is_kept_while_its_owner_has_other_things_to_do(target: KafkaCluster, unique: str) -> None:
    with claim_of(target, unique) as claim:
        begun = time.monotonic()
        while time.monotonic() < begun + SESSION_MS / 1000 + 4:
            time.sleep(0.5)  # a start that takes long; no condition, time itself is what is tried
        claim.require()
        assert claim.is_held()
        cluster = Cluster(ClusterSettings("b", target.bootstrap_servers), TargetUnavailable, timeout=30)
        with closing(Groups(cluster, "READ")) as groups:
            assert groups.describe(claim.group).ids == (claim.permit.member,)


def test_a_note_outlives_confirmations_and_owners(target: KafkaCluster, unique: str) -> None:
    with claim_of(target, unique) as claim:
        claim.mark("a note")
    with claim_of(target, unique) as claim:
        time.sleep(5)  # two confirmations
        assert claim.is_held()
    consumer = Consumer({"bootstrap.servers": target.bootstrap_servers, "group.id": f"srm-a{unique}->b"})
    with closing(consumer):
        (found,) = consumer.committed([TopicPartition(f"progress-{unique}", 0)], 30)
    assert (found.offset, found.metadata) == (0, "a note")


def test_whoever_writes_elsewhere_is_told_that_the_owner_has_changed(target: KafkaCluster, unique: str) -> None:
    with claim_of(target, unique) as claim:
        permit = claim.permit
        permit.require()
        assert ask_elsewhere(permit).strip() == "fine"
    with claim_of(target, unique) as other:
        assert other.permit.member != permit.member
        assert "ClaimLost" in ask_elsewhere(permit)
        with pytest.raises(ClaimLost):
            permit.require()
        with pytest.raises(ClaimLost):
            claim.require()
        other.require()


def test_a_command_owns_the_flow_while_it_changes_something(pair: Pair, tmp_path: Path) -> None:
    pair.target.create(pair.progress_topic)
    settings = pair.settings(tmp_path)
    with owned(connect(settings)) as (clusters, _):
        clusters.require_claim()
        with pytest.raises(ClaimHeld, match="a driver runs it: "), owned(connect(settings)):
            pass
    with pytest.raises(ClaimLost):
        clusters.require_claim()
    with owned(connect(settings)) as (again, _):
        again.require_claim()


def test_a_claim_of_before_that_the_coordinator_still_knows_is_named_as_one_s_own(
    local_kafka: Callable[..., LocalKafka], unique: str
) -> None:
    broker = local_kafka("claims")
    Kafka(broker).create(f"progress-{unique}")
    with claim_of(broker, unique) as claim:
        cluster = Cluster(ClusterSettings("b", broker.bootstrap_servers), TargetUnavailable, timeout=30)
        second = Claim(Flow(f"a{unique}", "b"), cluster, f"progress-{unique}")
        assert "at /127.0.0.1" in str(second.other_owner())
        assert claim.is_held()
        broker.kill()
        claim.release()  # nobody hears that it leaves
        broker.start()
        assert "this driver's own claim of before, until " in str(second.other_owner())
        await_until(lambda: second.other_owner() is None, 2 * SESSION_MS / 1000, "the end of the old session")
