"""Offset syncs: byte-exact, at least those of MirrorMaker 2's rule, each of them true; on either side, or none."""

from __future__ import annotations

from collections.abc import Iterator

from srm_spark.testing import KafkaCluster
from tests.broker.conftest import Start
from tests.broker.mirror import await_count, await_lag_zero
from tests.broker.sync_reader import Sync, read_syncs
from tests.kafka_io import Kafka, Log, numbered, produce

LAG_MAX = 10


def required(pairs: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What MirrorMaker 2's PartitionState would sync, record by record."""
    last_up = last_down = synced = -1
    for up, down in pairs:
        if synced == -1 or down - (synced + 1) >= LAG_MAX or up - last_up != 1 or down < last_down:
            synced = down
            yield up, down
        last_up, last_down = up, down


def test_syncs_on_the_source_on_the_target_or_not_at_all(
    start: Start, primary: KafkaCluster, secondary: KafkaCluster, unique: str
) -> None:
    source, target = Kafka(primary), Kafka(secondary)
    topic = f"t-{unique}"
    source.create(topic, 2)
    source.write(topic, numbered(150, 2))
    producer = source.producer(transactional_id=f"tx-{unique}")
    producer.init_transactions(30)
    for number in range(5):
        producer.begin_transaction()
        produce(producer, topic, numbered(6, 2, f"tx{number}-"))
        producer.commit_transaction(30)
    kinds = ("s", "t", "n")  # on the source, on the target, none
    clusters: dict[str, KafkaCluster] = {}
    for kind in kinds:
        clusters |= {f"{kind}{unique}": primary, f"{kind}x{unique}": secondary}
    flows = {kind: f"{kind}{unique}->{kind}x{unique}" for kind in kinds}
    keys = {
        "topics": topic,
        "offset.lag.max": str(LAG_MAX),
        f"{flows['t']}.offset-syncs.topic.location": "target",
        f"{flows['n']}.emit.offset-syncs.enabled": "false",
    }
    driver = start(clusters, list(flows.values()), keys)
    for kind in kinds:
        await_count(target, f"{kind}{unique}.{topic}", 180)
    await_lag_zero(driver)
    driver.stop()

    places = {
        "s": (source, f"mm2-offset-syncs.sx{unique}.internal"),
        "t": (target, f"mm2-offset-syncs.t{unique}.internal"),
    }
    for kind, (cluster, name) in places.items():
        assert cluster.configs(name) == {"cleanup.policy": "compact"}
        syncs = read_syncs(cluster, name)
        assert {sync[0] for sync in syncs} == {topic}
        _check(syncs, source.read(topic), target.read(f"{kind}{unique}.{topic}"))
    both = {*source.topics(), *target.topics()}
    assert {name for name in both if "offset-syncs" in name and unique in name} == {name for _, name in places.values()}


def _check(syncs: list[Sync], here: Log, there: Log) -> None:
    for partition, log in here.items():
        found = [(up, down) for _, number, up, down in syncs if number == partition]
        assert [up for up, _ in found] == sorted(up for up, _ in found)
        pairs = [(a.offset, b.offset) for a, b in zip(log, there[partition], strict=True)]
        assert set(required(pairs)) <= set(found)
        upstream = {stored.offset: stored.record for stored in log}
        downstream = {stored.offset: stored.record for stored in there[partition]}
        assert all(upstream[up] == downstream[down] for up, down in found)
        assert found[-1] == pairs[-1]
