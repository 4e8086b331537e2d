"""Batches that are packed anew, of every codec, on a real broker, which checks them, and read by a plain consumer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

import pytest

from srm_spark.core.limits import Limits
from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Authorship
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.batches.codecs import CODECS
from srm_spark.kafka.batches.packer import Packed
from srm_spark.kafka.batches.packing import merge, pack
from srm_spark.kafka.batches.unpacking import unpack
from srm_spark.kafka.batches.writer import BatchWriter
from srm_spark.testing import KafkaCluster
from tests.batch_bytes import NOW, Raw, batch, parts
from tests.kafka_io import Kafka, Record

RAWS = [
    Raw(None if at % 3 == 0 else b"k%d" % at, None if at % 5 == 0 else b"v" * (at % 400), NOW + at, headers)
    for at, headers in zip(range(700), [(), ((b"h", b"x"), (b"", None)), ((b"n", b""),)] * 234, strict=False)
]


def write(cluster: KafkaCluster, topic: str, pieces: Sequence[Packed]) -> list[int]:
    """Base offsets that the broker has answered."""
    partition, done = TopicPartition(topic, 0), []
    brokers = Brokers({"bootstrap.servers": cluster.bootstrap_servers}, "b")
    with closing(BatchWriter(brokers)) as writer:
        writer.begin(Authorship(brokers.new_author()), 30.0)
        lane = writer.open(partition, partition)
        for piece in pieces:
            writer.add(partition, piece)
        while not writer.is_idle:
            done += writer.step(0.1)
        assert (lane.failure, lane.refused) == (None, None)
    return [one.base_offset for one in done]


@pytest.mark.parametrize("codec", CODECS)
def test_a_broker_takes_what_is_packed_and_a_consumer_reads_it(primary: KafkaCluster, unique: str, codec: str) -> None:
    kafka, topic, partition = Kafka(primary), f"t{unique}", TopicPartition(f"t{unique}", 0)
    kafka.create(topic)
    source = parts(*(batch(RAWS[at : at + 7], 10 * at, CODECS[at % 5]) for at in range(0, 700, 7)))
    merged = merge(
        partition, source, 0, 10**6, limits=Limits(), now_ms=int(time.time() * 1000), codec=codec, target_bytes=20_000
    )
    assert merged.stop is None
    packed = [
        piece
        for run in unpack(partition, parts(batch(RAWS, 0, codec, deltas=range(0, 1400, 2))), 0, 10**6)
        for piece in pack(run, codec=codec, max_bytes=10**6, target_bytes=30_000).pieces
    ]
    pieces = [*merged.pieces, *packed]
    assert len(pieces) > 2
    bases = write(primary, topic, pieces)
    assert bases == [sum(piece.batch.records for piece in pieces[:at]) for at in range(len(pieces))]
    there = [stored.record for stored in kafka.read(topic)[0]]
    expected = [
        Record(raw.key, raw.value, 0, raw.timestamp, tuple((name.decode(), value) for name, value in raw.headers))
        for raw in RAWS
    ]
    assert there == [*expected, *expected]
