"""What several tests await of the usual flow, and the settings that they share."""

from __future__ import annotations

from collections.abc import Mapping

from srm_spark.config.settings import ClusterSettings
from srm_spark.driver import Driver
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_lag_zero
from tests.kafka_io import Kafka, numbered, produce


def await_committed(pair: Pair, count: int, name: str = "t", seconds: float = SOON) -> None:
    """Wait until so many records of a remote topic are committed; its markers may come later than those of progress."""
    remote = pair.remote(name)

    def seen() -> int:
        log = pair.target.read(remote, committed=True) if remote in pair.target.topics() else {}
        return sum(map(len, log.values()))

    await_until(lambda: seen() >= count, seconds, lambda: f"{count} records, there are {seen()}")


EXACTLY_ONCE = {"exactly.once.support": "required"}


HOUR = 3_600_000


ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}


NANOSECONDS = 1_700_000_000_000_000_000


OWN_CONFIGS = {"sync.topic.configs.enabled": "false"}
"""Remote topics keep what the test has set, whatever their source topics have."""
BY_SPARK = {"compiled.loop.enabled": "false"}
"""Records are read by Spark's own source."""


FAST = {
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
}


def transactions(pair: Pair, topic: str, partitions: int, count: int) -> None:
    """Every second transaction is aborted; records lie between markers."""
    producer = pair.source.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    for number in range(count):
        producer.begin_transaction()
        produce(producer, topic, numbered(4 * partitions, partitions, f"{number}-"))
        assert producer.flush(30) == 0
        producer.abort_transaction(30) if number % 2 else producer.commit_transaction(30)


def settle(driver: Driver, kafkas: Mapping[str, Kafka], unique: str) -> dict[str, set[str]]:
    """Let every flow look for topics a few times more; then the topics of this test on each cluster."""
    for _ in range(2):
        await_lag_zero(driver)  # two looks each
    wanted = f"-{unique}"
    return {alias: {t for t in kafka.topics() if t.endswith(wanted)} for alias, kafka in kafkas.items()}


def settings(cluster: KafkaCluster) -> ClusterSettings:
    return ClusterSettings(cluster.name, cluster.bootstrap_servers)
