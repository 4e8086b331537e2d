"""Bytes of control records: vectors made by MirrorMaker 2's own classes, and round trips."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core import codec
from srm_spark.core.codec import ProgressKey
from srm_spark.core.made_here import MadeTopic, topic_record
from srm_spark.core.model import (
    Checkpoint,
    Heartbeat,
    Interval,
    LogIdentity,
    Loss,
    LossCause,
    OffsetRange,
    OffsetSync,
    PausedPartition,
    ProgressDetail,
)
from srm_spark.core.model import TopicPartition as TP
from srm_spark.core.tail import TailRecord
from srm_spark.errors import CodecError
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.recorded import Recorded
from tests.memory_cluster import MemoryLog, MemoryTopic
from tests.unit.memory_flow import MemoryFlow, flow_settings

HEARTBEAT = (Heartbeat("A", "B", 1700000000123), "000141000142", "00000000018bcfe5687b")
CHECKPOINT = (
    Checkpoint("g1", TP("A.t1", 3), 100, 42, "md"),
    "000267310004412e743100000003",
    "00000000000000000064000000000000002a00026d64",
)
UMLAUT = (
    Checkpoint("grüp", TP("A.t1", 0), 1, 0),
    "00056772c3bc700004412e743100000000",
    "0000000000000000000100000000000000000000",
)
SYNC = (OffsetSync(TP("t1", 3), 100, 42), "0002743100000003", "0000000000000064000000000000002a")

CODECS: Any = {
    Heartbeat: (codec.encode_heartbeat, codec.decode_heartbeat),
    Checkpoint: (codec.encode_checkpoint, codec.decode_checkpoint),
    OffsetSync: (codec.encode_offset_sync, codec.decode_offset_sync),
}
strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
int64 = st.integers(-(2**63), 2**63 - 1)
partitions = st.builds(TP, strings, st.integers(-(2**31), 2**31 - 1))
offsets = st.integers(0, 2**63 - 1)


@pytest.mark.parametrize("vector", [HEARTBEAT, CHECKPOINT, UMLAUT, SYNC])
def test_bytes_are_those_of_mirrormaker(vector: tuple[Any, str, str]) -> None:
    record, key, value = vector
    encode, decode = CODECS[type(record)]
    encoded = encode(record)
    assert (encoded.key.hex(), encoded.value.hex()) == (key, value)
    assert decode(encoded.key, encoded.value) == record


@given(
    st.one_of(
        st.builds(Heartbeat, strings, strings, int64),
        st.builds(Checkpoint, strings, partitions, int64, int64, strings),
        st.builds(OffsetSync, partitions, int64, int64),
    ),
    st.binary(max_size=5),
)
def test_every_record_survives_the_round_trip_and_trailing_bytes(record: Any, trailing: bytes) -> None:
    encode, decode = CODECS[type(record)]
    key, value = encode(record)
    assert decode(key + trailing, value + trailing) == record


@pytest.mark.parametrize("vector", [HEARTBEAT, CHECKPOINT, SYNC])
def test_tombstones_null_keys_and_short_records_are_refused(vector: tuple[Any, str, str]) -> None:
    decode = CODECS[type(vector[0])][1]
    key, value = bytes.fromhex(vector[1]), bytes.fromhex(vector[2])
    broken = [(key, None), (None, value), *((key[:n], value) for n in range(len(key)))]
    broken += [(key, value[:n]) for n in range(len(value))]
    for pair in broken:
        with pytest.raises(CodecError):
            decode(*pair)


@pytest.mark.parametrize("vector", [HEARTBEAT, CHECKPOINT])
@pytest.mark.parametrize("version", ["0001", "ffff"])
def test_other_versions_are_refused(vector: tuple[Any, str, str], version: str) -> None:
    with pytest.raises(CodecError, match="version"):
        CODECS[type(vector[0])][1](bytes.fromhex(vector[1]), bytes.fromhex(version + vector[2][4:]))


def test_absent_metadata_is_written_as_empty_string() -> None:
    checkpoint = replace(UMLAUT[0], metadata=cast("str", None))
    assert codec.encode_checkpoint(checkpoint).value.hex() == UMLAUT[2]


def test_null_metadata_and_bad_utf8_are_refused_on_read() -> None:
    key, value = bytes.fromhex(CHECKPOINT[1]), bytes.fromhex(CHECKPOINT[2])
    with pytest.raises(CodecError, match="length -1"):
        codec.decode_checkpoint(key, value[:18] + b"\xff\xff")
    with pytest.raises(CodecError, match="UTF-8"):
        codec.decode_checkpoint(key, value[:18] + b"\x00\x01\xff")


@pytest.mark.parametrize(
    "heartbeat", [Heartbeat("x" * 32768, "B", 1), Heartbeat("A", "\ud800", 1), Heartbeat("A", "B", 2**63)]
)
def test_values_that_do_not_fit_are_refused(heartbeat: Heartbeat) -> None:
    with pytest.raises(CodecError):
        codec.encode_heartbeat(heartbeat)


def test_longest_string_fits() -> None:
    heartbeat = Heartbeat("ü" * 16383, "B", 1)
    assert codec.decode_heartbeat(*codec.encode_heartbeat(heartbeat)) == heartbeat


def test_progress_key_and_value_are_those_of_connect() -> None:
    key = codec.progress_key("MirrorSourceConnector", "A", TP("t1", 0))
    assert key == b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t1"}]'
    assert codec.progress_value(123) == b'{"offset":123}'
    assert codec.decode_progress_value(b'{"offset":123}') == 123


@pytest.mark.parametrize(
    ("alias", "spelt"),
    [
        ("é", "22c3a922"),
        ("\u0001\u001f\u007f", "225c75303030315c75303031467f22"),
        ('"\\/\b\t\n\f\r', "225c225c5c2f5c625c745c6e5c665c7222"),
        ("\u2028\u0085", "22e280a8c28522"),
        ("😀", "225c75443833445c754445303022"),
        ("B-_~:?#[]@!$&'()*+=\"<>{}|^`618", "22422d5f7e3a3f235b5d402124262728292a2b3d5c223c3e7b7d7c5e6036313822"),
        ("\\u00ab", "225c5c753030616222"),
    ],
)
def test_strings_are_spelt_as_jackson_spells_them(alias: str, spelt: str) -> None:
    key = codec.progress_key("c", alias, TP("t", 1))
    assert key == b'["c",{"cluster":' + bytes.fromhex(spelt) + b',"partition":1,"topic":"t"}]'


@given(strings, strings, st.builds(TP, strings, st.integers(0, 2**31 - 1)))
def test_progress_keys_survive_the_round_trip(connector: str, alias: str, partition: TP) -> None:
    key = codec.progress_key(connector, alias, partition)
    assert codec.decode_progress_key(key) == ProgressKey(connector, alias, partition)
    assert json.loads(key) == [connector, {"cluster": alias, "partition": partition[1], "topic": partition[0]}]


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"\xff",
        b"[",
        b"1",
        b'["MirrorCheckpointConnector",{"partition":0,"topic":"A.t1","group":"g1"}]',
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
        b'["c",{"partition":0,"cluster":"A","topic":"t1"}]',
        b'["c", {"cluster":"A","partition":0,"topic":"t1"}]',
        b'["c",{"cluster":"A","partition":true,"topic":"t1"}]',
        b'["c",{"cluster":"A","partition":"0","topic":"t1"}]',
        b'["c",{"cluster":"A","partition":0,"topic":"t1","x":1}]',
        b'["c",{"cluster":"\\ud800","partition":0,"topic":"t1"}]',
    ],
)
def test_foreign_progress_keys_are_none(key: bytes | None) -> None:
    assert codec.decode_progress_key(key) is None


@pytest.mark.parametrize("value", [None, b"null", b'{"offset":null}', b'{"offset":-1}'])
def test_reset_source_offsets_are_none(value: bytes | None) -> None:
    assert codec.decode_progress_value(value) is None


@pytest.mark.parametrize("value", [b"", b"{}", b"5", b'{"offset":"5"}', b'{"offset":true}', b'{"offset":1.5}', b"\xff"])
def test_malformed_source_offsets_are_refused(value: bytes) -> None:
    with pytest.raises(CodecError, match="offset"):
        codec.decode_progress_value(value)


def test_source_offset_below_nothing_cannot_be_written() -> None:
    assert codec.progress_value(-1) == b'{"offset":-1}'
    with pytest.raises(CodecError, match="-1 or more"):
        codec.progress_value(-2)


DETAIL = ProgressDetail(
    OffsetRange(40, 50),
    12,
    (Interval(40, 7, 3), Interval(45, 10, 2)),
    PausedPartition(47, Failure(FailureKind.TOO_LARGE, "too big: é")),
    LogIdentity("x_Y-1"),
    99,
    7,
    1,
    (Loss(OffsetRange(43, 45)),),
)
WITH_LOGS = replace(
    DETAIL,
    logs=LogIdentity("x_Y-1", 3, "z", 4),
    lost=(Loss(OffsetRange(41, 43), LossCause.DIVERGED, OffsetRange(8, 10)), Loss(OffsetRange(0, 2), LossCause.TARGET)),
)


def test_progress_detail_is_compact_and_versioned() -> None:
    assert codec.encode_progress_detail(DETAIL).decode() == (
        '{"v":1,"source":[40,50],"target_end":12,"intervals":[[40,7,3],[45,10,2]],'
        '"hold":{"offset":47,"reason":"too big: é","kind":"too-large"},"topic_id":"x_Y-1",'
        '"bytes":99,"latency_ms":7,"zero_timestamps":1,"lost":[[43,45]]}'
    )
    assert (
        codec.encode_progress_detail(WITH_LOGS)
        .decode()
        .endswith('"lost":[[41,43,"diverged",8,10],[0,2,"target"]],"epoch":3,"remote_id":"z","remote_epoch":4}')
    )


@pytest.mark.parametrize("detail", [DETAIL, WITH_LOGS, ProgressDetail(OffsetRange(0, 0), None, ())])
def test_progress_detail_survives_the_round_trip(detail: ProgressDetail) -> None:
    assert codec.decode_progress_detail(codec.encode_progress_detail(detail)) == detail


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"v": None},
        {"source": [1]},
        {"source": [1, "2"]},
        {"source": None},
        {"target_end": "1"},
        {"intervals": [[1, 2]]},
        {"intervals": [[40, 7, True]]},
        {"intervals": [[40, 7, 0]]},
        {"intervals": [[45, 7, 1], [44, 8, 1]]},
        {"intervals": [[44, 8, 1], [45, 8, 1]]},
        {"intervals": [[39, 8, 1]]},
        {"intervals": [[49, 8, 2]]},
        {"intervals": 3},
        {"hold": {"offset": 1}},
        {"hold": {"offset": 1, "reason": 2}},
        {"topic_id": 5},
    ],
)
def test_other_versions_and_malformed_details_are_none(change: dict[str, object]) -> None:
    document = json.loads(codec.encode_progress_detail(DETAIL))
    assert codec.decode_progress_detail(json.dumps(document).encode()) == DETAIL
    assert codec.decode_progress_detail(json.dumps(document | change).encode()) is None


@pytest.mark.parametrize("header", [None, b"", b"[]", b"\xff", b'{"v":1}'])
def test_absent_progress_detail_is_none(header: bytes | None) -> None:
    assert codec.decode_progress_detail(header) is None


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
        ("", 275646681),
        ("é", 186971271),
    ],
)
def test_murmur2_is_kafkas(key: str, hashed: int) -> None:
    assert codec.murmur2(key.encode()) == hashed


def test_partition_for_key_is_the_java_producers() -> None:
    key = codec.progress_key("MirrorSourceConnector", "A", TP("t1", 0))
    assert codec.murmur2(key) == -325340394
    assert codec.partition_for_key(key, 25) == 4
    assert codec.partition_for_key(b"a", 25) == 24


def test_partitions_are_evenly_used() -> None:
    chosen = [codec.partition_for_key(random.Random(seed).randbytes(12), 5) for seed in range(1000)]
    assert all(150 < chosen.count(partition) < 250 for partition in range(5))


@given(partitions, st.integers(0, 2**63 - 1))
def test_keys_of_the_offset_map_come_back(partition: TP, start: int) -> None:
    assert codec.decode_map_key(codec.map_key(partition, start)) == (partition, start, False)
    assert codec.decode_map_key(codec.map_key(partition, start, is_again=True)) == (partition, start, True)


@pytest.mark.parametrize("key", [None, b"", b"{}", b"[1,2,3]", b'["t",true,0]', b'["t",0]', b"\xff"])
def test_other_keys_in_the_offset_map_are_passed_over(key: bytes | None) -> None:
    assert codec.decode_map_key(key) is None


MAP_KEY = b'["t",0,0]'
MAP_VALUE = (
    b'{"v":1,"source":[0,3],"target_end":4,"intervals":[[0,0,2],[2,3,1]],"hold":null,"topic_id":"source-id",'
    b'"bytes":0,"latency_ms":null,"zero_timestamps":0,"lost":[]}'
)
"""A part of the offset map as it is in Kafka today: two records, a marker on the target, one record more."""


def test_a_flow_writes_these_bytes_of_its_offset_map() -> None:
    flow = MemoryFlow(flow_settings())
    flow.source.held["t"].topic_id = "source-id"
    flow.write(b"a", b"b")
    flow.run()
    flow.remote.mark()
    flow.write(b"c")
    flow.run()
    written = flow.target.held[flow.settings.map_topic].partitions[0].ever.values()
    newest = {record.key: record.value for record in written}
    made = topic_record("A.t", MadeTopic("t", flow.target.held["A.t"].topic_id))
    assert newest == {MAP_KEY: MAP_VALUE, **dict([made])}


def test_a_flow_reads_these_bytes_of_its_offset_map() -> None:
    flow = MemoryFlow(flow_settings())
    topic = MemoryTopic([MemoryLog()], {"cleanup.policy": "compact"})
    topic.partitions[0].append(TailRecord(0, 1_000, MAP_KEY, MAP_VALUE))
    flow.target.held[flow.settings.map_topic] = topic
    maps = Recorded(flow.clusters).maps
    maps.refresh()
    (part,) = maps.maps[TP("t", 0)].parts()
    assert (part.source, part.target_end) == (OffsetRange(0, 3), 4)
    assert tuple(part.intervals) == (Interval(0, 0, 2), Interval(2, 3, 1))
    assert maps.maps[TP("t", 0)].topic_id == "source-id"


def test_a_tombstone_of_the_offset_map_has_the_key_of_its_part() -> None:
    assert codec.map_key(TP("t", 0), 0) == MAP_KEY
    assert codec.map_key(TP('ü"', 12), 2**40) == '["ü\\"",12,1099511627776]'.encode()
