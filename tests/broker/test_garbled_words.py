"""Words decide nothing: with the sentence of every failure made unreadable, flows do the same as ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from srm_spark.config.settings import Timings
from srm_spark.failure import FailureKind
from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_count, await_held, await_lag_zero
from tests.garbled import GARBAGE, garble
from tests.kafka_io import Kafka, Record, numbered, records

pytestmark = pytest.mark.slow

RULES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture
def timings() -> Timings:
    """The minute would only be waited for."""
    return Timings(retry_paused_seconds=5.0)


@pytest.fixture(autouse=True)
def garbled(monkeypatch: pytest.MonkeyPatch) -> set[FailureKind]:
    """The kinds of failure that there were."""
    return garble(monkeypatch)


def test_a_refused_record_is_held_recorded_and_goes_into_quarantine(pair: Pair, garbled: set[FailureKind]) -> None:
    pair.source.create(pair.topic())
    pair.target.create(pair.remote(), 1, {"cleanup.policy": "compact"})
    pair.source.write(pair.topic(), [Record(b"k", b"a"), Record(None, b"b"), Record(b"k", b"c")])
    driver = pair.replicate()
    held = await_held(driver, [f"{pair.topic()}-0"])
    assert held == {f"{pair.topic()}-0": f"held at offset 1: {GARBAGE}"}
    driver.stop()
    quarantining = pair.replicate({"refused.record.policy": "park"})
    await_count(pair.target, pair.remote(), 2)
    await_until(
        lambda: quarantining.status()[0].parked == {pair.topic(): f"1 in quarantine: {GARBAGE}"},
        SOON,
        lambda: f"{quarantining.status()}",
    )
    assert FailureKind.NO_KEY in garbled


def test_a_foreign_record_holds_its_partition_until_the_policy_is_another(
    pair: Pair, garbled: set[FailureKind]
) -> None:
    """The hold is read back by the next driver; it must be let go of by that one only, and not every few seconds."""
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    pair.target.write(pair.remote(), [Record(b"k", b"somebody else's")])
    pair.source.write(pair.topic(), numbered(5, prefix="later "))
    await_held(driver, [f"{pair.topic()}-0"])
    driver.stop()
    assert FailureKind.FOREIGN_WRITER in garbled
    assert FailureKind.TARGET_CHANGED in garbled, "a report said so, and both sides were compared"
    pair.replicate({"foreign.writer.policy": "resume"})
    await_until(lambda: pair.target.count(pair.remote()) >= 16, SOON, "it goes on")


def test_a_topic_created_anew_starts_the_query_anew(pair: Pair, garbled: set[FailureKind]) -> None:
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(3))
    driver = pair.replicate({"refresh.topics.interval.seconds": "600"})
    await_count(pair.target, pair.remote(), 3)
    before = 3
    for again in range(5):
        pair.source.delete(pair.topic())
        pair.source.create(pair.topic())
        pair.source.write(pair.topic(), numbered(20, prefix=f"new {again} "))
        await_count(pair.target, pair.remote(), before + 20)
        copied, anew = records(pair.target.read(pair.remote()))[0], records(pair.source.read(pair.topic()))[0]
        assert copied[before:] == anew
        before += 20
        if FailureKind.SOURCE_CHANGED in garbled:
            break  # else the flow asked for the lag while there was no topic, and began again before the query saw it
    assert driver.status()[0].state.value == "running"
    assert FailureKind.SOURCE_CHANGED in garbled


@pytest.mark.parametrize("in_loop", ["true", "false"])
def test_a_topic_that_may_not_be_read_or_written_holds_itself_alone(
    pair: Pair, local_kafka: Callable[..., LocalKafka], garbled: set[FailureKind], in_loop: str
) -> None:
    """Told by librdkafka, and by Java's client in Spark's source, which does not say of which topic it speaks."""
    cluster = local_kafka("rules", overrides=RULES)
    ruled = Kafka(cluster)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    alias = f"c{pair.unique}"
    remote = f"{pair.alias}.{pair.topic('unwritten')}"
    ruled.create(remote)
    for kafka, name in ((ruled, "unread"), (ruled, "fine"), (pair.source, "unwritten")):
        kafka.create(pair.topic(name))
        kafka.write(pair.topic(name), numbered(4))
    for rule in (
        _acl(pair.topic("unread"), AclOperation.READ, AclPermissionType.DENY),
        _acl(pair.topic("unread"), AclOperation.ALL, AclPermissionType.ALLOW),
        _acl(remote, AclOperation.WRITE, AclPermissionType.DENY),
        _acl(remote, AclOperation.ALL, AclPermissionType.ALLOW),
    ):
        for future in admin.create_acls([rule]).values():
            future.result(30)
    keys = {"topics": f"(unread|fine|unwritten)-{pair.unique}", "compiled.loop.enabled": in_loop}
    out, back = f"{alias}->{pair.target_alias}", f"{pair.alias}->{alias}"
    driver = pair.start({**pair.clusters, alias: cluster}, [out, back], keys)
    assert_copied(ruled, pair.topic("fine"), pair.target, f"{alias}.{pair.topic('fine')}")
    wanted = {out: {f"{pair.topic('unread')}-0"}, back: {f"{pair.topic('unwritten')}-0"}}
    await_until(
        lambda: {str(status.flow): set(status.held) for status in driver.status()} == wanted,
        SOON,
        lambda: f"{wanted}: {driver.status()}",
    )
    assert {FailureKind.SOURCE_DENIED, FailureKind.TARGET_DENIED} <= garbled


def _acl(topic: str, operation: AclOperation, permission: AclPermissionType) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:*", "*", operation, permission)
