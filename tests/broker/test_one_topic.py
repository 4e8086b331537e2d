"""Two flows into one topic, as policies that keep names allow: mixed where that is wanted, held where it is not."""

from __future__ import annotations

from collections.abc import Mapping

from srm_spark.driver import Driver
from srm_spark.flow.status import FlowStatus
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Start
from tests.broker.mirror import SOON, assert_copied, await_count
from tests.kafka_io import Kafka, numbered, records

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def _fan_in(three: Mapping[str, KafkaCluster], unique: str) -> list[Kafka]:
    """The clusters, with a topic `t` on both sources and one of its own on each."""
    kafkas = [Kafka(cluster) for cluster in three.values()]
    for alias, kafka in zip("ab", kafkas, strict=False):
        for topic in (f"t-{unique}", f"{alias}-{unique}"):
            kafka.create(topic)
            kafka.write(topic, numbered(20, prefix=alias))
    return kafkas


def _run(start: Start, three: Mapping[str, KafkaCluster], unique: str, policy: str) -> Driver:
    """a->c and b->c, under the names that the topics have."""
    a, b, c = three
    keys = {"topics": f".*-{unique}", "replication.policy.class": IDENTITY, "foreign.writer.policy": policy}
    return start(three, [f"{a}->{c}", f"{b}->{c}"], keys)


def test_records_of_two_sources_are_mixed_where_that_is_wanted(
    start: Start, three: Mapping[str, KafkaCluster], unique: str
) -> None:
    (a, b, c), topic = _fan_in(three, unique), f"t-{unique}"
    driver = _run(start, three, unique, "resume")
    await_count(c, topic, 40)
    for round_ in range(3):
        a.write(topic, numbered(10, prefix=f"a{round_}"))
        b.write(topic, numbered(10, prefix=f"b{round_}"))
        await_count(c, topic, 40 + 20 * (round_ + 1))
    driver.stop()
    (found,) = records(c.read(topic)).values()
    for source in (a, b):
        (sent,) = records(source.read(topic)).values()
        assert [record for record in found if record in sent] == sent
    assert len(found) == 100


def test_a_topic_of_two_sources_is_held_when_its_records_are_read_back(
    start: Start, three: Mapping[str, KafkaCluster], unique: str
) -> None:
    (a, b, c), topic = _fan_in(three, unique), f"t-{unique}"
    driver = _run(start, three, unique, "stop")
    await_count(c, topic, 40)
    driver.stop()
    driver = _run(start, three, unique, "stop")

    def held() -> list[FlowStatus]:
        return [status for status in driver.status() if "foreign writer" in status.held.get(f"{topic}-0", "")]

    await_until(held, SOON, lambda: str(driver.status()))
    a.write(f"a-{unique}", numbered(10, prefix="later"))
    b.write(f"b-{unique}", numbered(10, prefix="later"))
    assert_copied(a, f"a-{unique}", c, f"a-{unique}")
    assert_copied(b, f"b-{unique}", c, f"b-{unique}")
