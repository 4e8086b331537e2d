"""What is copied in the comparison: one topic per workload, made of nothing but the numbers here."""

from __future__ import annotations

import random
from collections.abc import Sequence
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
    codec: str = "none"
    """Of the source's batches; the contenders write with it, too."""
    partitions: int = 6
    batch_bytes: int = 1_000_000
    """Most bytes of one batch on the source."""
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
        return self.name.lower().replace(" ", "")

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
        said.append("uncompressed" if self.codec == "none" else self.codec)
        if self.batch_bytes < Workload.batch_bytes:
            said.append(f"batches of at most {self.batch_bytes:,} B on the source")
        if self.round_trip_ms:
            said.append(f"a round trip of {self.round_trip_ms} ms to the source")
        return ", ".join(said)


_MIXED = (100,) * 60 + (1000,) * 30 + (10_000,) * 9 + (100_000,)
WORKLOADS = (
    Workload("100 B", 8_000_000, (100,), in_all_modes=True),
    Workload("1 KB", 2_000_000, in_all_modes=True),
    Workload("10 KB", 200_000, (10_000,)),
    Workload("1 MB", 2_000, (1_000_000,)),
    Workload("mixed", 800_000, _MIXED),
    Workload("lz4", 2_000_000, codec="lz4"),
    Workload("zstd", 2_000_000, codec="zstd"),
    Workload("headers", 2_000_000, headers=5),
    Workload("1 partition", 1_500_000, partitions=1),
    Workload("100 partitions", 2_000_000, partitions=100),
    Workload("1000 partitions", 2_000_000, partitions=1000),
    Workload("small batches", 2_000_000, batch_bytes=5000),
    Workload("50 ms", 1_500_000, round_trip_ms=50),
)
BY_NAME = {workload.name: workload for workload in WORKLOADS}


def payloads(sizes: Sequence[int]) -> list[bytes]:
    """Values to take in turn: some of each size, shuffled; of words, so that a codec has something to do.

    The same on every call: two runs of a benchmark copy the same bytes.
    """
    chance = random.Random(7)  # noqa: S311 - no secret
    copies = max(1, 100 // len(sizes))
    found = [_text(size, chance) for size in sizes for _ in range(copies)]
    chance.shuffle(found)
    return found


def _text(size: int, chance: random.Random) -> bytes:
    # One word in two is drawn anew: text that zstd makes about a quarter of, as it does with records of JSON.
    words = " ".join(chance.choice(_WORDS) + str(chance.randrange(1000)) for _ in range(min(size, 20_000) // 5 + 1))
    text = words.encode()
    return (text * (size // len(text) + 1))[:size]
