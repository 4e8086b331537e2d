"""What a cluster behind the port does, whichever it is: run against real brokers and against the one in memory."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from srm_spark.core.cluster import Cluster, Committed, ConfigChange, ControlRecord, TopicSpec
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.pieces import Cursor, Piece
from srm_spark.core.quotas import Quota
from srm_spark.core.tail import TailRecord
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from tests.awaiting import await_until

SOON = 30.0


def taken(pieces: Iterable[Piece]) -> list[TailRecord]:
    """Every record, whatever it came in."""
    cursor, found = Cursor(pieces), []
    while not cursor.is_over:
        offset = cursor.offset
        found.append(cursor.take())
        assert found[-1].offset == offset
    return found


class ClusterContract(ABC):
    """Inherited by the tests of each implementation."""

    @pytest.fixture
    @abstractmethod
    def cluster(self) -> Cluster:
        """The cluster; its errors are SourceUnavailable."""

    @pytest.fixture
    @abstractmethod
    def topic(self) -> str:
        """A name that no other test uses."""

    @abstractmethod
    def delete(self, cluster: Cluster, topic: str) -> None:
        """Delete a topic."""

    @abstractmethod
    def delete_before(self, cluster: Cluster, partition: TopicPartition, offset: int) -> None:
        """Delete records."""

    @abstractmethod
    def transaction(
        self, cluster: Cluster, partition: TopicPartition, values: list[bytes], end: str
    ) -> Callable[[], None]:
        """Write `values` in a transaction, and `commit` or `abort` it, or leave it `open`; returns what ends it."""

    def test_topics_are_made_once_and_grow(self, cluster: Cluster, topic: str) -> None:
        assert cluster.create([TopicSpec(topic, 2, 1, {"cleanup.policy": "compact"})]) == {topic: None}
        await_until(lambda: cluster.topics().get(topic) == 2, SOON, "the topic is shown")
        assert cluster.create([TopicSpec(topic, 5, 1, {})]) == {topic: None}, "it is there already"
        assert cluster.topics()[topic] == 2
        assert cluster.configs([topic, f"{topic}-no"])[topic]["cleanup.policy"].value == "compact"
        assert f"{topic}-no" not in cluster.configs([topic, f"{topic}-no"])
        assert cluster.grow({topic: 3}) == {topic: None}
        await_until(lambda: cluster.topics()[topic] == 3, SOON, "it has grown")
        refused = cluster.create([TopicSpec(f"{topic}-wide", 1, 9, {})])[f"{topic}-wide"]
        assert "replication factor" in (refused or "").lower()
        assert cluster.broker_count() == 1
        assert cluster.cluster_id()

    def test_configs_are_changed_one_by_one(self, cluster: Cluster, topic: str) -> None:
        cluster.create([TopicSpec(topic, 1, 1, {"retention.ms": "1000", "cleanup.policy": "compact"})])

        def own() -> dict[str, str | None]:
            found = cluster.configs([topic]).get(topic, {})
            return {key: config.value for key, config in found.items() if config.is_own}

        made = {"retention.ms": "1000", "cleanup.policy": "compact"}
        await_until(lambda: own() == made, SOON, lambda: str(own()))
        changes = [ConfigChange("retention.ms", None), ConfigChange("segment.bytes", "20000000")]
        assert cluster.alter({topic: changes}) == {topic: None}
        changed = {"segment.bytes": "20000000", "cleanup.policy": "compact"}
        await_until(lambda: own() == changed, SOON, lambda: str(own()))

    def test_a_cluster_without_an_authorizer_has_no_acls(self, cluster: Cluster) -> None:
        assert cluster.acls(["TOPIC", "GROUP"]) is None

    def test_quotas_of_users_are_set_and_taken_back_one_by_one(self, cluster: Cluster, topic: str) -> None:
        """Not of those who write: the smallest of these says how long others wait."""
        alone, of_client = (("user", topic),), (("client-id", "c"), ("user", topic))
        reads, asks = Quota(alone, "consumer_byte_rate"), Quota(alone, "request_percentage")
        of_both = Quota(of_client, "consumer_byte_rate")

        def ours() -> dict[Quota, float]:
            return {quota: value for quota, value in cluster.quotas().items() if ("user", topic) in quota.entity}

        assert cluster.alter_quotas({reads: 1000.0, asks: 7.0, of_both: 3.0}) == dict.fromkeys([reads, asks, of_both])
        await_until(lambda: ours() == {reads: 1000.0, asks: 7.0, of_both: 3.0}, SOON, lambda: str(ours()))
        assert cluster.alter_quotas({reads: None, of_both: 4.0}) == {reads: None, of_both: None}
        await_until(lambda: ours() == {asks: 7.0, of_both: 4.0}, SOON, lambda: str(ours()))
        cluster.alter_quotas({asks: None, of_both: None})
        await_until(lambda: not ours(), SOON, lambda: str(ours()))

    def test_a_topic_made_anew_has_another_id(self, cluster: Cluster, topic: str) -> None:
        self._make(cluster, topic)
        before = cluster.topic_ids([topic, f"{topic}-no"])
        self.delete(cluster, topic)
        await_until(lambda: not cluster.topic_ids([topic]), SOON, "it is gone")
        assert cluster.end_offsets([TopicPartition(topic, 0)], waits=False) == {}
        self._make(cluster, topic)
        now = cluster.topic_ids([topic])
        assert before.keys() == now.keys() == {topic}
        assert before != now

    def test_offsets(self, cluster: Cluster, topic: str) -> None:
        here, gone = TopicPartition(topic, 0), TopicPartition(topic, 7)
        self._make(cluster, topic)
        assert cluster.first_offsets([here]) == cluster.end_offsets([here]) == {here: 0}
        self._write(cluster, here, 5)
        assert cluster.end_offsets([here, gone], waits=False) == {here: 5}
        end = cluster.log_ends([here])[here]
        assert (end.offset, end.epoch) == (5, 0)
        self.delete_before(cluster, here, 2)
        assert cluster.first_offsets([here]) == {here: 2}
        assert cluster.offsets_since([here], 1003) == {here: 3}
        assert cluster.offsets_since([here], 2000) == {}
        assert cluster.newest_timestamps([here]) == {here: 1004}

    def test_records_are_read_within_a_range(self, cluster: Cluster, topic: str) -> None:
        here, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
        self._make(cluster, topic, 2)
        self._write(cluster, here, 5)
        found = list(cluster.records(here, OffsetRange(1, 4)))
        assert [one.offset for one in found] == [1, 2, 3]
        assert [one.value for one in found] == [b"v1", None, b"v3"], "a deletion has no value"
        assert (found[0].key, found[0].timestamp, found[0].headers) == (b"k1", 1001, (("h", b"x"),))
        assert taken(cluster.pieces(here, OffsetRange(1, 4))) == found
        assert taken(cluster.pieces(here, OffsetRange(0, 5)))[1:4] == found
        first = cluster.first_records({here: OffsetRange(3, 5), other: OffsetRange(0, 0)})
        assert {p: None if one is None else one.offset for p, one in first.items()} == {here: 3, other: None}

    @pytest.mark.parametrize("end", ["commit", "abort"])
    def test_a_transaction_leaves_a_marker(self, cluster: Cluster, topic: str, end: str) -> None:
        here = TopicPartition(topic, 0)
        self._make(cluster, topic)
        self.transaction(cluster, here, [b"a", b"b"], end)
        await_until(lambda: cluster.end_offsets([here], committed=True) == {here: 3}, SOON, "the marker")
        assert cluster.end_offsets([here]) == {here: 3}
        everything = OffsetRange(0, 3)
        assert [one.value for one in cluster.records(here, everything, committed=False)] == [b"a", b"b"]
        assert [one.value for one in taken(cluster.pieces(here, everything, committed=False))] == [b"a", b"b"]
        committed = [one.value for one in cluster.records(here, everything, committed=True)]
        assert [one.value for one in taken(cluster.pieces(here, everything, committed=True))] == committed
        assert committed == ([b"a", b"b"] if end == "commit" else [])
        first = cluster.first_records({here: everything}, committed=True)[here]
        assert (first is None) == (end == "abort")
        assert cluster.first_records({here: OffsetRange(2, 3)}) == {here: None}, "a marker is no record"

    def test_an_open_transaction_ends_what_is_committed(self, cluster: Cluster, topic: str) -> None:
        here = TopicPartition(topic, 0)
        self._make(cluster, topic)
        self._write(cluster, here, 2)
        finish = self.transaction(cluster, here, [b"a"], "open")
        assert cluster.end_offsets([here]) == {here: 3}
        assert cluster.end_offsets([here], committed=True) == {here: 2}
        finish()

    def test_a_control_topic_is_followed(self, cluster: Cluster, topic: str) -> None:
        self._make(cluster, topic, 2)
        with closing(cluster.follow(topic, [0, 1], "contract")) as reader:
            assert list(reader.read({0: 0, 1: 0}, SOON)) == []
            self._write(cluster, TopicPartition(topic, 1), 2)
            assert [(one.partition, one.offset, one.key) for one in reader.read({1: 2}, SOON)] == [
                (1, 0, b"k0"),
                (1, 1, b"k1"),
            ]
            self.transaction(cluster, TopicPartition(topic, 0), [b"a"], "abort")
            await_until(
                lambda: cluster.end_offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 2}, SOON, "marker"
            )
            self._write(cluster, TopicPartition(topic, 0), 1)
            assert [(one.offset, dict(one.headers)) for one in reader.read({0: 3, 1: 2}, SOON)] == [(2, {"h": b"x"})]
            assert dict(reader.next_offsets) == {0: 3, 1: 2}

    def test_a_partition_that_ends_with_a_marker_is_read_while_another_one_is_written(
        self, cluster: Cluster, topic: str
    ) -> None:
        self._make(cluster, topic, 2)
        marked, busy, is_over = TopicPartition(topic, 0), TopicPartition(topic, 1), threading.Event()

        def write() -> None:
            writer = cluster.writer("contract", TargetUnavailable)
            while not is_over.wait(0.05):
                writer.write([ControlRecord(topic, b"k", b"v", {}, 1)])

        self.transaction(cluster, marked, [b"a"], "abort")
        await_until(lambda: cluster.end_offsets([marked]) == {marked: 2}, SOON, "marker")
        with ThreadPoolExecutor(1) as pool, closing(cluster.follow(topic, [0, 1], "contract")) as reader:
            writing = pool.submit(write)
            try:
                await_until(lambda: cluster.end_offsets([busy])[busy], SOON, "it is written")
                assert all(one.partition == 1 for one in reader.read({0: 2}, 10.0))
            finally:
                is_over.set()
            writing.result()
            assert reader.next_offsets[0] == 2

    def test_the_same_key_goes_to_the_same_partition(self, cluster: Cluster, topic: str) -> None:
        self._make(cluster, topic, 3)
        writer = cluster.writer("contract", TargetUnavailable)
        writer.write([ControlRecord(topic, b"one", b"1"), ControlRecord(topic, b"one", b"2")])
        ends = cluster.end_offsets([TopicPartition(topic, number) for number in range(3)])
        assert sorted(ends.values()) == [0, 0, 2]

    def test_what_cannot_be_written_raises_the_writer_s_error(self, cluster: Cluster, topic: str) -> None:
        writer = cluster.writer("contract", TargetUnavailable, seconds=5)
        with pytest.raises(TargetUnavailable, match=topic):
            writer.write([ControlRecord(topic, b"k", b"v")])

    def test_groups(self, cluster: Cluster, topic: str) -> None:
        here = TopicPartition(topic, 0)
        self._make(cluster, topic)
        with closing(cluster.groups("READ")) as groups:
            stands = {here: Committed(3, "note")}
            # The group's coordinator may be moving in yet.
            await_until(lambda: groups.commit(topic, stands) == {here: None}, SOON, "committed")
            assert topic in groups.names()
            assert groups.offsets([topic])[topic].committed == stands
            assert groups.active([topic]) == {topic: False}
            assert groups.offsets([f"{topic}-no"])[f"{topic}-no"].committed == {}

    def test_errors_are_those_of_its_side(self, cluster: Cluster) -> None:
        error = cluster.refused("do this", "for a reason")
        assert isinstance(error, SourceUnavailable)
        assert all(word in str(error) for word in (cluster.alias, cluster.bootstrap_servers, "do this", "for a reason"))
        cluster.ping()

    def _make(self, cluster: Cluster, topic: str, partitions: int = 1) -> None:
        await_until(lambda: cluster.create([TopicSpec(topic, partitions, 1, {})]) == {topic: None}, SOON, "created")
        await_until(lambda: cluster.topics().get(topic) == partitions, SOON, "the topic is shown")
        cluster.end_offsets([TopicPartition(topic, number) for number in range(partitions)])  # waits for leaders

    def _write(self, cluster: Cluster, partition: TopicPartition, count: int) -> None:
        cluster.writer("contract", TargetUnavailable).write(
            ControlRecord(
                partition.topic,
                b"k%d" % number,
                None if number == 2 else b"v%d" % number,
                {"h": b"x"},
                partition.partition,
                1000 + number,
            )
            for number in range(count)
        )
