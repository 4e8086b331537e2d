"""What the target forbids: held with its reason, never worked round; no topic is made by asking for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from srm_spark.config.settings import Timings
from srm_spark.driver import Driver
from srm_spark.flow import mending
from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_count, await_held, status_of
from tests.kafka_io import Kafka, Record, numbered, records

OPEN = {
    "auto.create.topics.enable": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture
def timings() -> Timings:
    """The minute would only be waited for."""
    return Timings(retry_paused_seconds=15.0)


@pytest.mark.slow
def test_what_the_target_forbids_is_held_and_nothing_is_made_by_asking(
    pair: Pair, local_kafka: Callable[..., LocalKafka]
) -> None:
    """A broker that creates any topic it is asked for, with rules against growing one topic and writing another."""
    cluster = local_kafka("open", overrides=OPEN)
    target = Kafka(cluster)
    for name in ("small", "closed", "fine"):
        pair.source.create(pair.topic(name), 3)
        pair.source.write(pair.topic(name), numbered(9, 3))
    target.create(pair.remote("small"), 1)
    target.create(pair.remote("closed"), 3)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    rules = [
        _acl(pair.remote("small"), AclOperation.ALTER, AclPermissionType.DENY),
        _acl(pair.remote("closed"), AclOperation.WRITE, AclPermissionType.DENY),
        *(_acl(pair.remote(name), AclOperation.ALL, AclPermissionType.ALLOW) for name in ("small", "closed")),
    ]
    for future in admin.create_acls(rules).values():
        future.result(30)
    driver = pair.start(
        {pair.alias: pair.clusters[pair.alias], pair.target_alias: cluster},
        [pair.flow],
        {**pair.keys, f"{pair.target_alias}.producer.delivery.timeout.ms": "5000"},
    )
    assert_copied(pair.source, pair.topic("fine"), target, pair.remote("fine"))
    closed = [f"{pair.topic('closed')}-{number}" for number in range(3)]
    reasons = await_held(driver, [pair.topic("small"), *closed])
    assert "has 1 partition, 3 are needed and it cannot grow" in reasons[pair.topic("small")]
    assert all("TOPIC_AUTHORIZATION_FAILED" in reasons[name] for name in closed)
    assert target.topics()[pair.remote("small")] == 1
    assert target.given(pair.remote("small")) == target.given(pair.remote("closed")) == 0

    for future in admin.delete_acls([_filter(rule) for rule in rules]).values():
        future.result(30)
    for name in ("small", "closed", "fine"):
        assert_copied(pair.source, pair.topic(name), target, pair.remote(name))
    await_held(driver, [])
    driver.stop()
    kept = {name for name in target.topics() if not name.startswith("__") and not name.endswith(".internal")}
    assert kept == {pair.remote(name) for name in ("small", "closed", "fine")}

    # The same broker as a source: a topic that is deleted there must not come back because we ask for it.
    target.create(pair.topic("gone"))
    target.write(pair.topic("gone"), [Record(b"k", b"v")])
    back = pair.start(
        {f"c{pair.unique}": cluster, f"d{pair.unique}": pair.clusters[pair.alias]},
        [f"c{pair.unique}->d{pair.unique}"],
        {"topics": pair.topic("gone"), "refresh.topics.interval.seconds": "4"},
    )
    await_count(pair.source, f"c{pair.unique}.{pair.topic('gone')}", 1)
    target.delete(pair.topic("gone"))
    await_until(lambda: back.status()[0].topics == 0, 40, lambda: f"no topic in {back.status()}")
    assert pair.topic("gone") not in target.topics()


def test_a_topic_that_is_forbidden_holds_itself_and_no_other(
    pair: Pair, local_kafka: Callable[..., LocalKafka]
) -> None:
    """To read on the source, and to write on the target where all topics share a transaction."""
    cluster = local_kafka("rules", overrides=OPEN)
    ruled = Kafka(cluster)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    out, back = f"c{pair.unique}->b{pair.unique}", f"a{pair.unique}->c{pair.unique}"
    remote = {name: f"a{pair.unique}.{pair.topic(name)}" for name in ("closed", "fine")}
    for kafka in (ruled, pair.source):
        for name in ("closed", "fine"):
            kafka.create(pair.topic(name), 2)
            kafka.write(pair.topic(name), numbered(6, 2))
    ruled.create(remote["closed"], 2)
    denied, allowed = AclPermissionType.DENY, AclPermissionType.ALLOW
    rules = [
        _acl(pair.topic("closed"), AclOperation.READ, denied),
        _acl(pair.topic("closed"), AclOperation.ALL, allowed),
        _acl(remote["closed"], AclOperation.WRITE, denied),
        _acl(remote["closed"], AclOperation.ALL, allowed),
    ]
    for future in admin.create_acls(rules).values():
        future.result(30)
    topics = f"{pair.topic('closed')}, {pair.topic('fine')}"
    driver = pair.start(
        {**pair.clusters, f"c{pair.unique}": cluster},
        [out, back],
        {"topics": topics, f"c{pair.unique}.exactly.once.source.support": "enabled"},
    )
    closed = {f"{pair.topic('closed')}-{number}" for number in range(2)}
    _await_forbidden(driver, out, closed, f"allow READ on topic {pair.topic('closed')}")
    _await_forbidden(driver, back, {pair.topic("closed")}, f"allow WRITE on topic {remote['closed']}")
    assert_copied(ruled, pair.topic("fine"), pair.target, f"c{pair.unique}.{pair.topic('fine')}")
    await_count(ruled, remote["fine"], 6)
    there = records(ruled.read(remote["fine"], committed=True))
    assert there == records(pair.source.read(pair.topic("fine")))
    for cluster_of, topic in ((pair.source, "fine"), (ruled, "fine")):
        cluster_of.write(pair.topic(topic), numbered(2, 2, "later"))
    assert_copied(ruled, pair.topic("fine"), pair.target, f"c{pair.unique}.{pair.topic('fine')}")


def test_a_right_that_is_withdrawn_costs_who_shares_the_transaction_no_restart(
    pair: Pair, local_kafka: Callable[..., LocalKafka], caplog: pytest.LogCaptureFixture
) -> None:
    cluster = local_kafka("rules", overrides=OPEN)
    ruled, flow = Kafka(cluster), f"a{pair.unique}->c{pair.unique}"
    remote = {name: f"a{pair.unique}.{pair.topic(name)}" for name in ("closed", "fine")}
    for name in remote:
        pair.source.create(pair.topic(name))
        pair.source.write(pair.topic(name), numbered(3, 1))
    topics = f"{pair.topic('closed')}, {pair.topic('fine')}"
    clusters = {**pair.clusters, f"c{pair.unique}": cluster}
    driver = pair.start(clusters, [flow], {"topics": topics, f"{flow}.exactly.once.support": "required"})
    for name, topic in remote.items():
        assert_copied(pair.source, pair.topic(name), ruled, topic)

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    denied, allowed = AclPermissionType.DENY, AclPermissionType.ALLOW
    rules = [(AclOperation.WRITE, denied), (AclOperation.ALL, allowed)]
    for future in admin.create_acls([_acl(remote["closed"], *rule) for rule in rules]).values():
        future.result(30)
    producer = pair.source.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    producer.begin_transaction()  # so that both topics have them at once
    for name in remote:
        for number in range(3):
            producer.produce(pair.topic(name), b"later %d" % number)
    producer.commit_transaction(30)
    partition = f"{pair.topic('closed')}-0"  # beside the topic, once the right is asked for
    await_until(lambda: partition in status_of(driver, flow).held, SOON, lambda: f"{partition} in {driver.status()}")
    wanted = records(pair.source.read(pair.topic("fine")))
    await_until(lambda: records(ruled.read(remote["fine"], committed=True)) == wanted, SOON, "all of the other topic")
    assert not [one.getMessage() for one in caplog.records if one.name == mending.__name__]


def _await_forbidden(driver: Driver, flow: str, held: set[str], words: str) -> None:
    await_until(lambda: set(status_of(driver, flow).held) == held, SOON, lambda: f"{held} in {driver.status()}")
    assert all(words in reason for reason in status_of(driver, flow).held.values())


def _acl(topic: str, operation: AclOperation, permission: AclPermissionType) -> AclBinding:
    kind, literal = ResourceType.TOPIC, ResourcePatternType.LITERAL
    return AclBinding(kind, topic, literal, "User:*", "*", operation, permission)


def _filter(rule: AclBinding) -> AclBindingFilter:
    fields = (rule.restype, rule.name, rule.resource_pattern_type, rule.principal, rule.host)
    return AclBindingFilter(*fields, rule.operation, rule.permission_type)
