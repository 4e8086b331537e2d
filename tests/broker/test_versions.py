"""Other releases of Kafka on either side, mixed: 2.8.2 with its ZooKeeper, the last of Kafka 3, and the newest."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.core.record_batch import batches_in
from srm_spark.driver import Driver
from srm_spark.jars import OTHER_KAFKAS, fetch
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Pair, Start
from tests.broker.map_reader import assert_map_is_exact, read_map
from tests.broker.mirror import SOON, await_lag_zero, write_config
from tests.broker.pair_io import EXACTLY_ONCE, FAST, await_committed, transactions
from tests.broker.process import kill_all_of
from tests.broker.quick_driver import quick_driver
from tests.group_io import commit, committed, member, next_unread, take
from tests.kafka_io import Kafka, Log, Record, numbered, records
from tests.raw_records import RawRecord, offer_raw, read_batches
from tests.soak.load import Load, compare

pytestmark = pytest.mark.slow

OLD, LAST_3, NEWEST = "2.8.2", "3.9.2", "4.4.0"
TOPICS = ("lz4", "plain", "tx", "compacted")
LIVE = "live"
PARTITIONS = 2
WHOLE = 1000
"""Records that are written anew once the second driver copies."""
_EPOCH_AT = 51
"""Where the epoch of its producer lies in a batch."""
_FENCED = 47
"""INVALID_PRODUCER_EPOCH."""


@pytest.fixture(scope="module")
def brokers() -> Iterator[Mapping[str, LocalKafka]]:
    """One of each release."""
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        for jar_set in OTHER_KAFKAS:
            fetch(jar_set.name)
        found = {version: LocalKafka(f"kafka-{version}", version=version) for version in (OLD, LAST_3, NEWEST)}
        for broker in found.values():
            stack.callback(broker.close)
        list(pool.map(LocalKafka.start, found.values()))
        yield found


@pytest.fixture
def pair_of(brokers: Mapping[str, LocalKafka], unique: str, start: Start) -> Callable[[str, str], Pair]:
    """A flow from a cluster of one version to one of another."""

    def make(source: str, target: str) -> Pair:
        clusters = {f"a{unique}": brokers[source], f"b{unique}": brokers[target]}
        return Pair(Kafka(brokers[source]), Kafka(brokers[target]), clusters, unique, start)

    return make


def test_new_clusters_take_partitions_into_transactions_by_themselves(brokers: Mapping[str, LocalKafka]) -> None:
    found = {}
    for version, broker in brokers.items():
        with closing(Brokers({"bootstrap.servers": broker.bootstrap_servers}, version)) as asked:
            found[version] = asked.takes_in
    assert found == {OLD: False, LAST_3: False, NEWEST: True}


def write_whole(pair: Pair, name: str, codec: str) -> None:
    """Batches that are large enough to be copied whole."""
    chance = random.Random(codec)
    headers = (("h", b"1"), ("", None))
    found = [
        Record(f"k{n}".encode(), chance.randbytes(900), n % PARTITIONS, 1_700_000_000_000 + n, headers)
        for n in range(WHOLE)
    ]
    pair.source.write(pair.topic(name), found, compression_type=codec, linger_ms=500, batch_size=1_000_000)


def write_compacted(pair: Pair, name: str) -> None:
    """A log with gaps, which is not compacted any more."""
    topic = pair.topic(name)
    compact = {"segment_ms": "300", "min_cleanable_dirty_ratio": "0.01", "max_compaction_lag_ms": "200"}
    pair.source.configure(topic, cleanup_policy="compact", **compact)
    same = [Record(f"k{n % 7}".encode(), f"v{n}".encode(), n % PARTITIONS) for n in range(400)]
    pair.source.write(topic, [*same, *numbered(100, PARTITIONS, "own ")], batch_num_messages=100, linger_ms=100)

    def is_compacted() -> bool:
        pair.source.write(topic, [Record(b"again", b"", number) for number in range(PARTITIONS)])
        return all(len(log) < 200 for log in pair.source.read(topic).values())

    await_until(is_compacted, SOON, "the log has gaps")
    pair.source.configure(topic, cleanup_policy="delete")


def fill(pair: Pair) -> None:
    """Topics of every kind."""
    for name in (*TOPICS, LIVE):
        pair.source.create(pair.topic(name), PARTITIONS, {"max.message.bytes": "2000000"})
    write_whole(pair, "lz4", "lz4")
    write_whole(pair, "plain", "none")
    transactions(pair, pair.topic("tx"), PARTITIONS, 6)
    write_compacted(pair, "compacted")


def copy_with_a_death(pair: Pair, keys: Mapping[str, str], folder: Path) -> Driver:
    """All of it is copied by two drivers, of which the first one is killed while records come in; the second one."""

    def copied() -> int:
        return pair.target.count(pair.remote(LIVE))

    with Load(pair.source, pair.topic(LIVE), PARTITIONS, per_second=1000, size=200) as load:
        with quick_driver(folder / "first", pair.clusters, [pair.flow], {**pair.keys, **keys}) as first:
            await_until(lambda: copied() > 1000, SOON, "it copies")
            kill_all_of(first)
        before = copied()
        driver = pair.replicate(keys)
        await_until(lambda: copied() > before + 1000, SOON, "the next one goes on")
        load.end()
    write_whole(pair, "lz4", "lz4")
    for name in (*TOPICS, LIVE):
        await_committed(pair, sum(map(len, pair.source.read(pair.topic(name), committed=True).values())), name)
    await_lag_zero(driver)
    return driver


def assert_equal(pair: Pair, name: str = "t") -> tuple[Log, Log]:
    """Every record is there once, in its order, where the offset map says: both sides."""
    source = pair.source.read(pair.topic(name), committed=True)
    remote = pair.target.read(pair.remote(name), committed=True)
    assert records(remote) == records(source)
    found = read_map(pair.target, pair.map_topic)
    for partition in range(PARTITIONS):
        assert_map_is_exact(found[pair.topic(name), partition], source, remote, partition)
    return source, remote


def assert_fenced(pair: Pair, target: KafkaCluster, name: str, partition: int) -> None:
    """Both wrote under one producer id, the second one under a later epoch, and the first one is refused now."""
    end = pair.target.ends(pair.remote(name))[partition]
    data = memoryview(read_batches(target, pair.remote(name), partition, end))
    batches = list(batches_in(data))
    epochs = [struct.unpack_from(">h", data, batch.at + _EPOCH_AT)[0] for batch in batches]
    (producer,) = {batch.producer_id for batch in batches}
    assert producer >= 0
    assert epochs == sorted(epochs)
    assert epochs[0] < epochs[-1]
    late = [RawRecord(None, b"late", ())]
    assert offer_raw(target, pair.remote(name), late, partition, (producer, epochs[0])) == _FENCED


def stands_of(pair: Pair, group: str) -> dict[tuple[str, int], int]:
    """Where a group is on the target."""
    return {place: at for place, (at, _) in committed(pair.target, group, pair.remote("tx")).items()}


def move(pair: Pair, keys: Mapping[str, str], folder: Path) -> None:
    """Every group that the keys name fails over, by the real command."""
    path = write_config(folder / "move.properties", pair.clusters, [pair.flow], {**pair.keys, **keys})
    line = ["failover", "--config", str(path), "--flow", pair.flow, "--state", str(folder / "move.json"), "--yes"]
    answer = CliRunner().invoke(main, [*line, "-o", "json"])
    assert answer.exit_code == 0, answer.output
    assert [row["outcome"] for row in json.loads(answer.stdout)["groups"]] == ["moved"] * PARTITIONS


@pytest.mark.parametrize(("source", "target"), [(OLD, NEWEST), (NEWEST, OLD), (LAST_3, NEWEST)])
def test_a_driver_dies_and_nothing_is_lost_or_doubled_and_groups_go_on_where_they_were(
    source: str,
    target: str,
    brokers: Mapping[str, LocalKafka],
    pair_of: Callable[[str, str], Pair],
    tmp_path: Path,
) -> None:
    pair = pair_of(source, target)
    synced, late = f"synced-{pair.unique}", f"late-{pair.unique}"
    keys = {**FAST, "groups": synced, f"{pair.alias}.consumer.isolation.level": "read_committed"}
    fill(pair)
    driver = copy_with_a_death(pair, {**keys, "sync.group.offsets.enabled": "true"}, tmp_path)
    logs = {name: assert_equal(pair, name) for name in (*TOPICS, LIVE)}
    verdict = compare(*logs[LIVE])
    assert verdict.is_good, str(verdict)
    assert driver.status()[0].whole >= WHOLE // 2, driver.status()[0].ways
    assert pair.target.configs(pair.remote("lz4"))["max.message.bytes"] == "2000000"

    here, there = logs["tx"]
    stands = {(pair.topic("tx"), number): here[number][5].offset for number in range(PARTITIONS)}
    wanted = {(pair.remote("tx"), n): next_unread(here, there, n, offset) for (_, n), offset in stands.items()}
    commit(pair.source, synced, stands)
    await_until(lambda: stands_of(pair, synced) == wanted, SOON, lambda: f"{wanted}: {stands_of(pair, synced)}")
    driver.stop()
    commit(pair.source, late, stands)
    move(pair, {**keys, "groups": late}, tmp_path)
    assert stands_of(pair, late) == wanted
    unread = sorted(stored.record.value or b"" for log in here.values() for stored in log[5:])
    reader = member(pair.target, late, pair.remote("tx"), isolation_level="read_committed", auto_offset_reset="error")
    try:
        assert sorted(take(reader, len(unread))) == unread
    finally:
        reader.close()
    for partition in range(PARTITIONS):
        assert_fenced(pair, brokers[target], LIVE, partition)


@pytest.mark.parametrize(("source", "target"), [(NEWEST, OLD), (OLD, LAST_3)])
def test_the_exactly_once_mode_commits_records_with_their_progress(
    source: str, target: str, pair_of: Callable[[str, str], Pair]
) -> None:
    pair = pair_of(source, target)
    pair.source.create(pair.topic(), PARTITIONS)
    transactions(pair, pair.topic(), PARTITIONS, 4)
    driver = pair.replicate(EXACTLY_ONCE)
    await_committed(pair, 16)
    pair.source.write(pair.topic(), numbered(20, PARTITIONS, "late "))
    await_committed(pair, 36)
    await_lag_zero(driver)
    driver.stop()
    source_log, _ = assert_equal(pair)
    assert sum(map(len, source_log.values())) == 36
    assert pair.target.count(pair.remote()) > 36, "every batch is a transaction, so there are markers"
