"""Record fidelity: what is read on the target is what is read on the source, compared by plain consumers."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import assert_copied
from tests.kafka_io import HeaderPairs, Record, numbered, records

CODECS = ("gzip", "snappy", "lz4", "zstd")
HEADERS: tuple[HeaderPairs, ...] = (
    (("b", b"2"), ("a", b"1"), ("b", b"1")),
    (("null", None), ("empty", b""), ("", b"no name"), ("", None)),
    (("text", "grüße ✓".encode()), ("grün", b"\x00\xff\xfe"), ("quote", b'"\\')),
)
NOW = int(time.time() * 1000)
JAVA = Path(__file__).parents[1] / "java"


def test_keys_values_headers_timestamps_and_order_are_kept(pair: Pair) -> None:
    def topic(name: str, found: list[Record], partitions: int = 1, **options: str) -> None:
        pair.source.create(pair.topic(name), partitions)
        pair.source.write(pair.topic(name), found, **options)

    contents = (None, b"", b"k", b"\x00\xff", "schlüssel".encode())
    topic("bytes", [Record(key, value) for key in contents for value in contents])
    topic("headers", [Record(b"k", b"v", headers=headers) for headers in ((), *HEADERS, ())])
    times = (NOW, NOW - 10**9, 1, 1_600_000_000_123, -5, -86_400_000, NOW + 3000, NOW - 1)
    topic("times", [Record(b"k", str(at).encode(), timestamp=at) for at in times])
    chance = random.Random(7)
    shuffled = numbered(3000, 7)
    chance.shuffle(shuffled)
    topic("order", [record._replace(partition=chance.choice((0, 0, 0, 1, 3, 6))) for record in shuffled], 7)
    for codec in CODECS:
        topic(codec, numbered(400, 2, "x" * 200), 2, compression_type=codec)
    pair.replicate()
    for name in ("bytes", "headers", "times", "order", *CODECS):
        assert_copied(pair.source, pair.topic(name), pair.target, pair.remote(name))
    written = records(pair.source.read(pair.topic("times")))[0]
    assert [record.timestamp for record in written] == list(times)
    assert {stored.timestamp_type for stored in pair.target.read(pair.remote("times"))[0]} == {1}


@pytest.mark.parametrize(
    "keys",
    [{}, {"exactly.once.support": "required"}, {"compiled.loop.enabled": "false"}],
    ids=["batches", "transactions", "rows of Spark"],
)
def test_create_time_zero_is_kept(
    pair: Pair, java_judge: Callable[..., subprocess.CompletedProcess[str]], keys: Mapping[str, str]
) -> None:
    """librdkafka sends 0 as now, so a Java producer has to write it; batches of our own have it as it is."""
    pair.source.create(pair.topic())
    java_judge(JAVA / "WriteAtZero.java", pair.source.bootstrap_servers, pair.topic(), "3")
    pair.source.write(pair.topic(), [Record(b"k", b"v", timestamp=1)])
    pair.replicate(keys)
    await_until(lambda: pair.remote() in pair.target.topics(), 60, "the remote topic")
    await_until(lambda: len(pair.target.read(pair.remote(), committed=True)[0]) == 4, 60, "four records")
    found = records(pair.target.read(pair.remote(), committed=True))[0]
    assert [record.timestamp for record in found] == [0, 0, 0, 1]
