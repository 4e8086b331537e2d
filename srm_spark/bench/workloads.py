"""What is copied in the comparison: one topic per workload, made of nothing but the numbers here."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_WORDS = [f"{syllable}{number}" for number in range(40) for syllable in ("order", "payment", "user", "status", "page")]


@dataclass(frozen=True)
class Workload:
    """One topic of records."""

    name: str
    records: int
    """Enough for a second half in which every contender runs warm."""
    sizes: tuple[int, ...] = (1000,)
    """Bytes of a value: each size as often as it stands here, in an order by chance."""
    headers: int = 0
    """Of each record, 16 bytes of value each."""
    has_keys: bool = False
    """Whether each record has a key of its own, 16 bytes."""
    codec: str = "none"
    """Of the source's batches; the contenders write with it, too."""
    partitions: int = 6
    batch_bytes: int = 1_000_000
    """`batch.size` of whoever fills the source: librdkafka compares it with what is not compressed yet."""
    batch_records: int = 0
    """Records of one batch on the source; 0 for as many as `batch_bytes` allows."""
    in_log: tuple[int, int] = (0, 0)
    """Least and most bytes of a batch in the source's log; where nothing is said, what `batch_bytes` makes of them."""
    by_java: bool = False
    """Whether Kafka's own producer fills the source, with its defaults but for the codec. Its `batch.size` is about
    what a batch has when it is compressed."""
    transaction: int = 0
    """Records of each transaction; 0 for none."""
    is_compacted: bool = False
    """Whether every third record is gone from the source's log again, for a newer one has its key."""
    round_trip_ms: int = 0
    """Of the network between the source and the contender."""
    in_all_modes: bool = False
    """Whether the exactly-once mode is measured, too."""

    @property
    def record_bytes(self) -> float:
        """Mean size of a value."""
        return sum(self.sizes) / len(self.sizes)

    @property
    def short_name(self) -> str:
        """For aliases: its name without spaces."""
        return short(self.name)

    @property
    def most_bytes(self) -> int:
        """Of a batch in the source's log."""
        return self.in_log[1] or max(self.batch_bytes, *self.sizes) + _HEADERS_MOST

    @property
    def least_bytes(self) -> int:
        """Of a batch in the source's log, unless it holds what was left over."""
        is_full = self.codec == "none" and not (self.batch_records or self.transaction)
        return self.in_log[0] or (self.batch_bytes // 2 if is_full else 0)

    @property
    def topic(self) -> str:
        """What it is called on the source."""
        return f"bench-{self.short_name}"

    def described(self) -> str:
        """What the page says about it."""
        sizes = sorted(set(self.sizes))
        values = f"values of {sizes[0]:,} B" if len(sizes) == 1 else f"values of {sizes[0]:,} to {sizes[-1]:,} B"
        said = [f"{self.partitions:,} partition{'s' * (self.partitions > 1)}", values]
        if len(sizes) > 1:
            said.append(f"{self.record_bytes:,.0f} B on average")
        if self.headers:
            said.append(f"{self.headers} headers")
        if self.has_keys:
            said.append("a key")
        said.append("uncompressed" if self.codec == "none" else self.codec)
        if self.transaction:
            said.append(f"transactions of {self.transaction} records")
        if self.is_compacted:
            said.append("every third record taken out by compaction")
        said.extend(self._filled())
        if self.round_trip_ms:
            said.append(f"a round trip of {self.round_trip_ms} ms to the source")
        return ", ".join(said)

    def _filled(self) -> Iterator[str]:
        """What is special about how the source is filled."""
        if self.by_java:
            yield "written by Kafka's own producer with its default `batch.size`"
        elif self.batch_records:
            yield f"{self.batch_records:,} record{'s' * (self.batch_records > 1)} in a batch on the source"
        elif self.batch_bytes < Workload.batch_bytes:
            compressed = " before they are compressed" * (self.codec != "none")
            yield f"batches of at most {self.batch_bytes:,} B on the source{compressed}"


def short(name: str) -> str:
    """A workload's name for aliases and the command line."""
    return name.lower().replace(" ", "")


RUN = 250
"""So many records in a row go to one partition: its batches fill up one after the other."""
_BYTES = 2_000_000
"""Of all values together, at least."""
_HEADERS_MOST = 1000
"""Bytes by which a batch is larger than its largest record's value, or than `batch.size`."""
_JAVA_BATCH = 16_384
"""Kafka's default of `batch.size`."""
_LARGE = (100_000, 1_001_000)
_MIXED = (100,) * 60 + (1000,) * 30 + (10_000,) * 9 + (100_000,)
WORKLOADS = (
    Workload("100 B", 8_000_000, (100,), in_all_modes=True),
    Workload("1 KB", 2_000_000, in_all_modes=True),
    Workload("10 KB", 200_000, (10_000,)),
    Workload("1 MB", 2_000, (1_000_000,)),
    Workload("mixed", 800_000, _MIXED),
    Workload("headers", 2_000_000, headers=5),
    Workload("lz4", 4_000_000, codec="lz4", in_log=_LARGE),
    Workload("zstd", 4_000_000, codec="zstd", in_log=_LARGE),
    Workload("snappy", 4_000_000, codec="snappy", in_log=_LARGE),
    Workload("gzip", 1_200_000, codec="gzip", in_log=_LARGE),
    Workload("300 B lz4", 8_000_000, (300,), headers=2, has_keys=True, codec="lz4", in_log=_LARGE),
    Workload("16 KB lz4", 6_000_000, (300,), codec="lz4", batch_bytes=_JAVA_BATCH, by_java=True, in_log=(9000, 17_000)),
    Workload("small lz4", 4_000_000, (300,), codec="lz4", batch_bytes=8000, in_log=(3000, 7000)),
    Workload("16 KB batches", 2_000_000, batch_bytes=_JAVA_BATCH),
    Workload("small batches", 2_000_000, batch_bytes=5000),
    Workload("1 record per batch", 600_000, batch_records=1),
    Workload("transactions", 300_000, transaction=5),
    Workload("compacted", 3_000_000, has_keys=True, codec="lz4", is_compacted=True, in_log=_LARGE),
    Workload("1 partition", 1_500_000, partitions=1),
    Workload("100 partitions", 2_000_000, partitions=100),
    Workload("1000 partitions", 2_000_000, partitions=1000, batch_bytes=250_000),
    Workload("50 ms", 1_500_000, round_trip_ms=50),
)
"""In the order of the page."""
BY_NAME = {workload.name: workload for workload in WORKLOADS}


def payloads(sizes: Sequence[int]) -> list[bytes]:
    """Values to take in turn: some of each size, shuffled; of words, so that a codec has something to do.

    So many that no batch has one twice, unless they are large. The same on every call: two runs of a benchmark copy the
    same bytes.
    """
    chance = random.Random(7)  # noqa: S311 - no secret
    copies = max(1, 100 // len(sizes), _BYTES // sum(sizes))
    texts = [_text(size, chance) for size in sizes for _ in range(copies)]
    chance.shuffle(texts)
    return texts


def key_of(workload: Workload, number: int) -> bytes | None:
    """The key of a workload's record with this number; 16 bytes.

    Where a topic is compacted, every third record has the key of the one that many before it, in the same partition.
    """
    if not workload.has_keys:
        return None
    if workload.is_compacted and number % 3 == 0:
        return b"hot-%012d" % (number % (RUN * workload.partitions * 3))
    return b"key-%012d" % number


def _text(size: int, chance: random.Random) -> bytes:
    # One word in two is drawn anew: text that zstd makes about a quarter of, as it does with records of JSON.
    words = " ".join(chance.choice(_WORDS) + str(chance.randrange(1000)) for _ in range(min(size, 20_000) // 5 + 1))
    text = words.encode()
    return (text * (size // len(text) + 1))[:size]
