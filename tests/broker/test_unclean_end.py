"""A driver dies while a follower of the target hangs: records of its lie behind the end that clients see."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import TopicPartition
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.protocol import Protocol
from srm_spark.testing import KafkaCluster, LocalCluster
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.map_reader import mapped_pairs
from tests.broker.mirror import SOON, await_count, await_held, await_lag_zero, write_config
from tests.broker.process import SRM_DRIVER, kill_all_of
from tests.kafka_io import Kafka, Record, numbered, records
from tests.soak.load import Load, await_all, compare

pytestmark = pytest.mark.slow

PARTITIONS, REPLICAS = 4, [1, 2, 3]
OWN = {
    "__consumer_offsets": 3,
    "mm2-offsets.a.internal": 3,
    "mm2-leases.a.internal": 1,
    "mm2-offset-map.a.internal": 1,
    "mm2-control.a.internal": 1,
    "mm2-srm-status.a.internal": 1,
    "__transaction_state": 3,
}
"""Topics that the flow needs to start, on the one broker that never hangs; with their partitions.

Those of transactions are as many as `LocalKafka` has, or their coordinator would load for ever.
"""


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    """The target. The broker that hangs stays in sync for minutes, and the high watermarks wait for it."""
    long = dict.fromkeys(("replica.lag.time.max.ms", "broker.session.timeout.ms"), "300000")
    overrides = {"min.insync.replicas": "2", **long}
    with LocalCluster("unclean", overrides=overrides) as found:
        yield found


def start(folder: Path, clusters: dict[str, KafkaCluster]) -> subprocess.Popen[bytes]:
    config = write_config(folder / "srm.properties", clusters, ["a->b"], {"topics": "load"})
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [str(SRM_DRIVER), "--config", str(config)], stdout=log, stderr=log, env=dict(os.environ)
        )


def hidden(protocol: Protocol, there: Kafka) -> int:
    """Copies that the leaders have, and that no client sees yet; 0 where the broker that hangs was asked."""
    remotes = [TopicPartition("a.load", partition) for partition in range(PARTITIONS)]
    try:
        logs, seen = protocol.leader_log_ends(remotes), there.ends("a.load")
    except (ProtocolUnavailable, KafkaException):
        return 0
    return sum(max(0, end - seen.get(remote.partition, end)) for remote, end in logs.items())


def test_records_behind_the_high_watermark_are_not_written_again(
    primary: KafkaCluster, cluster: LocalCluster, tmp_path: Path
) -> None:
    here, there = Kafka(primary), Kafka(cluster)
    here.create("load", PARTITIONS)
    there.place("a.load", [REPLICAS] * PARTITIONS)
    for topic, count in OWN.items():
        there.place(topic, [[1]] * count, cleanup_policy="compact", min_insync_replicas="1")
    clusters: dict[str, KafkaCluster] = {"a": primary, "b": cluster}
    settings = ClusterSettings("b", cluster.bootstrap_servers)
    driver = start(tmp_path, clusters)
    try:
        with Load(here, "load", PARTITIONS) as load, Protocol(settings, {}, "test", 10) as protocol:
            # Behind the first commit every client of the driver has the id that a broker gives: to ask the broker
            # that hangs would take a minute.
            await_until(lambda: any(mapped_pairs(there, "mm2-offset-map.a.internal").values()), 2 * SOON, "a commit")
            hidden(protocol, there)  # its connections are made
            cluster.broker(3).pause()
            stuck, ahead = there.count("a.load"), here.count("load") + 600
            await_until(lambda: hidden(protocol, there) > 0, SOON, "a copy to be sent that nobody sees")
            await_count(here, "load", ahead)
            kill_all_of(driver)
            driver = start(tmp_path, clusters)
            log = tmp_path / "driver.log"
            await_until(lambda: "not all in-sync replicas" in log.read_text(), 3 * SOON, log.read_text)
            assert there.count("a.load") <= stuck + PARTITIONS * 200
            cluster.broker(3).resume()
            await_count(there, "a.load", ahead, 2 * SOON)
            load.end()
        await_all(here, "load", there, "a.load", SOON)
    finally:
        cluster.broker(3).resume()
        driver.terminate()
        driver.wait(SOON)
    verdict = compare(here.read("load"), there.read("a.load"))
    assert verdict.is_good, str(verdict)


def test_a_foreign_record_between_two_batches_stops_the_partition(pair: Pair) -> None:
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    pair.target.write(pair.remote(), [Record(b"k", b"somebody else's")])
    pair.source.write(pair.topic(), numbered(5, prefix="later "))
    held = await_held(driver, [f"{pair.topic()}-0"])
    assert "foreign writer" in held[f"{pair.topic()}-0"]
    driver.stop()
    (log,) = records(pair.target.read(pair.remote())).values()
    assert [record.value for record in log[:11]] == [b"v%d" % n for n in range(10)] + [b"somebody else's"]


def test_what_was_copied_behind_a_foreign_record_is_found_where_such_are_passed_over(pair: Pair) -> None:
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    driver = pair.replicate({"foreign.writer.policy": "resume"})
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    pair.target.write(pair.remote(), [Record(b"k", b"somebody else's")])
    pair.source.write(pair.topic(), numbered(5, prefix="later "))
    await_count(pair.target, pair.remote(), 16)
    await_lag_zero(driver)
    driver.stop()
    (log,) = records(pair.target.read(pair.remote())).values()
    (source,) = records(pair.source.read(pair.topic())).values()
    assert [*log[:10], *log[11:]] == source
