"""Two flows into one topic, as policies that keep names allow: mixed where that is wanted.

That one is held where it is not: `tests/unit/test_run.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from srm_spark.driver import Driver
from srm_spark.testing import KafkaCluster
from tests.broker.conftest import Start
from tests.broker.mirror import await_count
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


def _run(start: Start, three: Mapping[str, KafkaCluster], unique: str) -> Driver:
    """a->c and b->c, under the names that the topics have."""
    a, b, c = three
    keys = {"topics": f".*-{unique}", "replication.policy.class": IDENTITY, "foreign.writer.policy": "resume"}
    return start(three, [f"{a}->{c}", f"{b}->{c}"], keys)


def test_records_of_two_sources_are_mixed_where_that_is_wanted(
    start: Start, three: Mapping[str, KafkaCluster], unique: str
) -> None:
    (a, b, c), topic = _fan_in(three, unique), f"t-{unique}"
    driver = _run(start, three, unique)
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
