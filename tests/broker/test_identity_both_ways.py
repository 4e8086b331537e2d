"""Topics that keep their names in both directions and in a ring: no record comes back, and groups skip nothing."""

from __future__ import annotations

import itertools
import struct
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from srm_spark.flow.status import FlowState
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Pair, Start
from tests.broker.map_reader import Part, read_map
from tests.broker.mirror import SOON, await_count, await_lag_zero, await_state
from tests.broker.pair_io import settle
from tests.group_io import commit, committed, member, next_record, read_checkpoints
from tests.kafka_io import Kafka, Log, Record, numbered

pytestmark = pytest.mark.slow

KEYS = {
    "replication.policy.class": "IdentityReplicationPolicy",
    "provenance.header.enabled": "true",
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
}
HEADER = "srm-provenance"


def header(alias: str, topic: str, partition: int, offset: int, *via: str) -> bytes:
    """The header as it is documented, taken together by hand."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    way = struct.pack(">h", len(via)) + b"".join(map(text, via))
    return struct.pack(">h", 0) + text(alias) + text(topic) + way + struct.pack(">iq", partition, offset)


def both(pair: Pair) -> tuple[list[str], dict[str, str]]:
    """Both flows, and their keys."""
    keys = {**pair.keys, **KEYS, "groups": f"g{pair.unique}.*"}
    return [pair.flow, f"{pair.target_alias}->{pair.alias}"], keys


def values(log: Log) -> dict[int, list[bytes | None]]:
    return {partition: [stored.record.value for stored in found] for partition, found in log.items()}


def assert_merged(pair: Pair, topic: str) -> None:
    """Each record is once on each side, the source's own in its order, and the copies say where they came from."""
    here, there = pair.source.read(topic), pair.target.read(topic)
    for partition, found in here.items():
        first, second = values(here)[partition], values(there)[partition]
        assert len(set(first)) == len(first)
        assert sorted(map(repr, first)) == sorted(map(repr, second))
        places = {alias: {s.record.value: s.offset for s in log[partition]} for alias, log in
                  ((pair.alias, here), (pair.target_alias, there))}  # fmt: skip
        for alias, log in ((pair.alias, there), (pair.target_alias, here)):
            copies = [s for s in log[partition] if s.record.headers]
            assert [s.record.headers for s in copies] == [
                ((HEADER, header(alias, topic, partition, places[alias][s.record.value])),) for s in copies
            ]
            offsets = [places[alias][s.record.value] for s in copies]
            assert offsets == sorted(offsets)
        assert sum(1 for s in found if not s.record.headers) == sum(1 for s in there[partition] if s.record.headers)


def assert_map_is_exact(found: dict[int, Part], source: Log, remote: Log, partition: int) -> None:
    """Each record of the source's own is paired with its copy; what came from the target is known not to be copied."""
    parts = [found[start] for start in sorted(found)]
    ranges = [part[0] for part in parts]
    assert [r[1] for r in ranges[:-1]] == [r[0] for r in ranges[1:]]
    assert (ranges[0][0], ranges[-1][1]) == (0, len(source[partition]))
    pairs = {up + n: down + n for _, intervals in parts for up, down, count in intervals for n in range(count)}
    there = {stored.record.value: stored.offset for stored in remote[partition]}
    assert pairs == {s.offset: there[s.record.value] for s in source[partition] if not s.record.headers}


def test_producers_on_both_sides_and_restarts(pair: Pair) -> None:
    """With small batches on the wire, so that the records of others come in between."""
    flows, keys = both(pair)
    keys |= {f"{alias}.producer.batch.size": "300" for alias in pair.clusters}
    topic, sides = pair.topic(), (pair.source, pair.target)
    pair.source.create(topic, 2)
    pair.target.create(topic, 2)
    pair.target.write(topic, numbered(6, 2, "before "))

    def produce(cluster: Kafka, name: str) -> None:
        for number in range(15):
            cluster.write(topic, numbered(80, 2, f"{name}-{number}-"))

    total = 6
    for batch in range(3):
        driver = pair.start(pair.clusters, flows, keys)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(produce, sides, (f"a{batch}", f"b{batch}")))
        total += 2 * 15 * 80
        if batch == 2:
            for cluster in sides:
                await_count(cluster, topic, total)
            settle(driver, {"a": pair.source, "b": pair.target}, pair.unique)
        driver.stop()  # in the middle of things, but for the last time
    assert [cluster.given(topic) for cluster in sides] == [total, total]
    assert_merged(pair, topic)
    here, there = pair.source.read(topic), pair.target.read(topic)
    forward = read_map(pair.target, f"mm2-offset-map.{pair.alias}.internal")
    back = read_map(pair.source, f"mm2-offset-map.{pair.target_alias}.internal")
    for partition in (0, 1):
        assert_map_is_exact(forward[topic, partition], here, there, partition)
        assert_map_is_exact(back[topic, partition], there, here, partition)


def test_copies_of_a_batch_that_died_are_found_among_records_of_others(pair: Pair) -> None:
    flows, keys = both(pair)
    topic = pair.topic()
    for cluster in (pair.source, pair.target):
        cluster.create(topic)
    pair.source.write(topic, numbered(4, prefix="a"))
    driver = pair.start(pair.clusters, flows, keys)
    await_count(pair.target, topic, 4)
    await_lag_zero(driver)
    driver.stop()
    pair.source.write(topic, numbered(3, prefix="more"))
    pair.target.write(topic, numbered(2, prefix="b"))
    log = pair.source.read(topic)[0]
    for stored in log[4:6]:  # the third one is still to be copied
        copy = stored.record._replace(headers=((HEADER, header(pair.alias, topic, 0, stored.offset)),))
        pair.target.write(topic, [copy, Record(None, f"b between {stored.offset}".encode())])
    with written_all_the_time(pair.target, topic) as number:
        driver = pair.start(pair.clusters, flows, keys)
        await_state(driver, pair.flow, FlowState.RUNNING)
    everything = 11 + next(number)
    for cluster in (pair.source, pair.target):
        await_count(cluster, topic, everything)
    settle(driver, {"a": pair.source, "b": pair.target}, pair.unique)
    driver.stop()
    assert_merged(pair, topic)
    here, there = pair.source.read(topic), pair.target.read(topic)
    assert_map_is_exact(read_map(pair.target, pair.map_topic)[topic, 0], here, there, 0)


@contextmanager
def written_all_the_time(cluster: Kafka, topic: str) -> Iterator[Iterator[int]]:
    """The end of the topic never stands still; gives the number of records behind it."""
    numbers, is_over = itertools.count(), threading.Event()

    def write() -> None:
        while not is_over.wait(0.2):
            cluster.write(topic, [Record(None, f"meanwhile {next(numbers)}".encode())])

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(write)
        try:
            yield numbers
        finally:
            is_over.set()
            done.result()


def first_unread(here: Log, there: Log, offset: int) -> int:
    """The first record over there that a group at `offset` over here has not read."""
    read = {stored.record.value for stored in here[0] if stored.offset < offset}
    return next((s.offset for s in there[0] if s.record.value not in read), len(there[0]))


@pytest.mark.parametrize("way", ["forward", "back"])
def test_every_position_goes_to_the_first_unread_record(pair: Pair, way: str) -> None:
    flows, keys = both(pair)
    topic = pair.topic()
    for cluster, name in ((pair.source, "a"), (pair.target, "b")):
        cluster.create(topic)
        cluster.write(topic, numbered(5, prefix=name))
    driver = pair.start(pair.clusters, flows, keys)
    for number in range(4):
        pair.source.write(topic, numbered(3, prefix=f"a{number}-"))
        pair.target.write(topic, numbered(2, prefix=f"b{number}-"))
    for cluster in (pair.source, pair.target):
        await_count(cluster, topic, 30)
    await_lag_zero(driver)
    here, there, alias = pair.source, pair.target, pair.alias
    if way == "back":
        here, there, alias = there, here, pair.target_alias
    left, right = here.read(topic), there.read(topic)
    wanted = {}
    for offset in range(31):
        commit(here, f"g{pair.unique}-{offset}", {(topic, 0): offset})
        wanted[f"g{pair.unique}-{offset}", topic, 0] = (offset, first_unread(left, right, offset))
    name = f"{alias}.checkpoints.internal"

    def found() -> dict[tuple[str, str, int], tuple[int, int]]:
        newest = read_checkpoints(there, name) if name in there.topics() else {}
        return {key: (history[-1].upstream, history[-1].downstream) for key, history in newest.items()}

    await_until(lambda: found() == wanted, SOON, lambda: f"{wanted}, but it is {found()}")
    places = {}
    for group, _, _ in wanted:
        await_until(lambda: committed(there, group, topic), SOON, f"{group} on the other side")  # noqa: B023
        places[group, topic, 0] = committed(there, group, topic)[topic, 0][0]
    assert places == {key: downstream for key, (_, downstream) in wanted.items()}
    for key, (offset, _) in wanted.items():  # and nothing goes back and forth
        assert committed(here, key[0], topic)[topic, 0][0] == offset


def test_a_group_goes_there_and_back(pair: Pair) -> None:
    flows, keys = both(pair)
    topic, group = pair.topic(), f"g{pair.unique}"
    for cluster, name in ((pair.source, "a"), (pair.target, "b")):
        cluster.create(topic)
        cluster.write(topic, numbered(5, prefix=name))
    driver = pair.start(pair.clusters, flows, keys)
    for cluster in (pair.source, pair.target):
        await_count(cluster, topic, 10)
    await_lag_zero(driver)
    read: list[bytes | None] = []

    def consume(cluster: Kafka, count: int) -> None:
        reader = member(cluster, group, topic)
        for _ in range(count):
            message = next_record(reader)
            reader.commit(message=message, asynchronous=False)
            read.append(message.value())
        reader.close()

    def moved(here: Kafka, there: Kafka) -> None:
        at = committed(here, group, topic)[topic, 0][0]
        wanted = first_unread(here.read(topic), there.read(topic), at)
        await_until(lambda: committed(there, group, topic).get((topic, 0), (-1, ""))[0] == wanted, SOON, f"at {wanted}")

    consume(pair.source, 7)
    moved(pair.source, pair.target)
    left = pair.target.count(topic) - committed(pair.target, group, topic)[topic, 0][0]
    consume(pair.target, left)
    everything = {stored.record.value for stored in pair.target.read(topic)[0]}
    assert set(read) == everything  # nothing skipped
    moved(pair.target, pair.source)
    assert committed(pair.source, group, topic)[topic, 0][0] == 10
    pair.target.write(topic, [Record(None, b"new")])
    read.clear()
    consume(pair.source, 1)
    assert read == [b"new"]


def test_a_ring_of_three(start: Start, three: Mapping[str, KafkaCluster], unique: str) -> None:
    a, b, c = three
    kafkas = {alias: Kafka(cluster) for alias, cluster in three.items()}
    topic = f"t-{unique}"
    for alias, kafka in kafkas.items():
        kafka.create(topic)
        kafka.write(topic, numbered(10, prefix=f"{alias} "))
    keys = {"topics": f".*-{unique}", **KEYS, "groups": f"g{unique}"}
    driver = start(three, [f"{a}->{b}", f"{b}->{c}", f"{c}->{a}"], keys)
    for kafka in kafkas.values():
        await_count(kafka, topic, 30)
    settle(driver, kafkas, unique)
    driver.stop()
    wanted = sorted(f"{alias} {number}".encode() for alias in three for number in range(10))
    for before, between, at in ((a, b, c), (b, c, a), (c, a, b)):
        log = kafkas[at].read(topic)[0]
        assert sorted(stored.record.value or b"" for stored in log) == wanted
        came = {stored.record.value: stored.record.headers for stored in log}
        for number in range(10):
            assert came[f"{at} {number}".encode()] == ()
            assert came[f"{between} {number}".encode()] == ((HEADER, header(between, topic, 0, number)),)
            assert came[f"{before} {number}".encode()] == ((HEADER, header(before, topic, 0, number, between)),)
