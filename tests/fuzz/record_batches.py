"""Broken record batches, fed to everything that takes batches apart: `python -m tests.fuzz.record_batches --cases N`.

Each case is a fetch answer of valid batches of which some bytes were changed, cut or doubled. It ends right before a
page that nobody may read, so a read beyond it ends the process. What may come out is a value or a CodecError; whatever
else does is printed with its case, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import random
import struct
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress

from srm_spark.core.limits import Limits
from srm_spark.core.model import TopicPartition
from srm_spark.core.record_batch import Batch, batches_in
from srm_spark.errors import CodecError
from srm_spark.kafka.batches.codecs import CODECS, decompress
from srm_spark.kafka.batches.packing import merge
from srm_spark.kafka.batches.skimming import Skimmed, plain_rows
from srm_spark.kafka.batches.unpacking import unpack
from srm_spark.kafka.batches.ways import Way, best
from tests.batch_bytes import NOW, Raw, batch

_PARTITION = TopicPartition("fuzzed", 0)
_ROOM = 1 << 16
_EDGES = (0, 1, 2, 6, 7, 0x0E, 0x7F, 0x80, 0xFE, 0xFF)
_FIELDS = (8, 16, 21, 23, 27, 35, 57)
"""Places in a header: length, format, attributes, last delta, times, count."""


class Guarded:
    """Memory that ends where nothing may be read."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, _ROOM + mmap.PAGESIZE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(ctypes.c_void_p(address + _ROOM), mmap.PAGESIZE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
        self._view = memoryview(self._map)[:_ROOM]

    def put(self, data: bytes | bytearray) -> memoryview:
        """The bytes, right before the page."""
        view = self._view[_ROOM - len(data) :]
        view[:] = data
        return view


def seeds(chance: random.Random) -> list[bytes]:
    """Valid batches of every codec, with gaps, nulls and headers."""
    found = []
    for codec in (*CODECS, "none", "none", "none"):
        for count in (1, 2, 5):
            raws = [_raw(chance) for _ in range(count)]
            deltas = [2 * at for at in range(count)] if chance.random() < 0.3 else None
            stamp = NOW if chance.random() < 0.2 else None
            found.append(bytes(batch(raws, 0, codec, deltas=deltas, append_time=stamp)))
    return found


def _raw(chance: random.Random) -> Raw:
    contents = [None, b"", b"k", b"some value", chance.randbytes(70)]
    headers = tuple((chance.choice([b"", b"h", b"\xff"]), chance.choice(contents)) for _ in range(chance.randrange(3)))
    return Raw(chance.choice(contents), chance.choice(contents), NOW + chance.randrange(-(10**6), 10**6), headers)


def mutated(chance: random.Random, valid: list[bytes]) -> bytearray:
    """Some batches one behind the other, and some bytes of them changed."""
    data = bytearray()
    for number in range(chance.choice((1, 1, 2, 3))):
        at = len(data)
        data += chance.choice(valid)
        struct.pack_into(">q", data, at, 100 * number)
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        _break(chance, data)
    return data


def _break(chance: random.Random, data: bytearray) -> None:
    if not data:
        return
    way, at = chance.random(), chance.randrange(len(data))
    if way < 0.45:
        data[at] = chance.choice(_EDGES)
    elif way < 0.7:
        data[at] ^= 1 << chance.randrange(8)
    elif way < 0.8:
        at = chance.choice(_FIELDS)
        data[at : at + 1] = bytes([chance.choice(_EDGES)])
    elif way < 0.87:
        del data[at:]
    elif way < 0.92:
        del data[at : at + chance.randrange(1, 5)]
    elif way < 0.96:
        data[at:at] = data[at : at + chance.randrange(1, 12)]
    else:
        data[at:at] = bytes(chance.choice(_EDGES) for _ in range(chance.randrange(1, 12)))


def judge(data: memoryview, chance: random.Random, way: Way) -> str:
    """What became of one case. Raises what must not come out."""
    try:
        found = list(batches_in(data))
    except CodecError:
        plain_rows(data, 2**62, way, takes_transactions=True)
        return "no batches"
    parts: list[tuple[Batch, memoryview]] = [(one, data[one.at : one.at + one.size]) for one in found]
    start, end = chance.choice(((0, 2**62), (1, 102), (101, 400)))
    codec = chance.choice(("", "", "none", "lz4"))
    _compare_skimmed(data, parts, start, end, way)
    outcome = "refused"
    with suppress(CodecError):
        done = merge(
            _PARTITION,
            parts,
            start,
            end,
            limits=Limits(max_bytes=500, needs_key=True),
            now_ms=NOW,
            codec=codec,
            way=way,
        )
        outcome = "whole" if done.stop is None else done.stop.why.name
        for piece in done.pieces:
            (again,) = batches_in(piece.data)
            content = decompress(again.codec, piece.data[61:], 10**7)
            assert again == piece.batch._replace(base_offset=0), again
            assert sum(end - start for start, end in piece.stretches) == again.records
            assert len(content) >= 7 * again.records
            runs = unpack(_PARTITION, [(again, piece.data)], 0, again.records, way=way)
            assert sum(run.count for run in runs) == again.records
    if parts:
        with suppress(CodecError):
            list(unpack(_PARTITION, parts, start, end, way=way))
    return outcome


def _compare_skimmed(data: memoryview, parts: list[tuple[Batch, memoryview]], start: int, end: int, way: Way) -> None:
    """What is known by a table comes to the same as what is known batch by batch."""
    table = plain_rows(data, end, way, takes_transactions=True)
    count, limits = len(table), Limits(max_bytes=500, needs_key=True)
    if count:
        assert [Skimmed(data, table).batch(row)._replace(at=0) for row in range(count)] == [
            one._replace(at=0) for one, _ in parts[:count]
        ]
        alike = [
            merge(_PARTITION, some, start, end, limits=limits, now_ms=NOW, codec="none", way=way)
            for some in ([Skimmed(data, table)], parts[:count])
        ]
        assert alike[0].stop == alike[1].stop
        assert [one.data for one in alike[0].pieces] == [one.data for one in alike[1].pieces]
        assert [one.stretches for one in alike[0].pieces] == [one.stretches for one in alike[1].pieces]


def run(cases: int, seed: int, way: Way) -> tuple[Counter[str], int]:
    """How often each outcome came, and how many cases ended as they must not."""
    chance = random.Random(seed)
    memory, outcomes, wrong = Guarded(), Counter[str](), 0
    valid = seeds(chance)
    for number in range(cases):
        if number % 5000 == 4999:
            valid = seeds(chance)
        data = mutated(chance, valid)
        try:
            outcomes[judge(memory.put(data), chance, way)] += 1
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # Rust's panics are no Exceptions
            wrong += 1
            print(f"case {number} of seed {seed}: {data.hex()}\n{traceback.format_exc()}", file=sys.stderr)
    return outcomes, wrong


def main() -> int:
    """Run and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    began = time.perf_counter()
    outcomes, wrong = run(chosen.cases, chosen.seed, best())
    speed = chosen.cases / (time.perf_counter() - began)
    print(f"{chosen.cases} cases, {speed:.0f}/s, {wrong} wrong")
    for outcome, count in outcomes.most_common():
        print(f"{outcome:12} {count}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
