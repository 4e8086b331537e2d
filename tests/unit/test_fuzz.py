"""A short run of the fuzzer, and every byte of small batches changed and cut."""

from __future__ import annotations

import random

import pytest

from srm_spark.kafka.batches import ways
from srm_spark.kafka.batches.codecs import CODECS
from tests.batch_bytes import NOW, Raw, batch
from tests.fuzz.record_batches import Guarded, judge, run

RAWS = [Raw(b"k", b"v" * 20, NOW, ((b"h", b"x"), (b"", None))), Raw(None, None, -1)]


@pytest.mark.parametrize("seed", range(3))
def test_broken_batches_are_values_or_errors(seed: int) -> None:
    outcomes, wrong = run(4000, seed, ways.best())
    assert wrong == 0
    assert outcomes["whole"] > 100
    assert outcomes["BROKEN"] > 100


def test_the_same_interpreted() -> None:
    assert run(1500, 9, ways.interpreted())[1] == 0


@pytest.mark.parametrize("codec", CODECS)
def test_every_byte_changed_and_cut_everywhere(codec: str) -> None:
    good, memory = bytes(batch(RAWS, 5, codec)), Guarded()
    for at in range(len(good)):
        for changed in (0x00, 0x7F, 0x80, 0xFF, good[at] ^ 1, good[at] ^ 2):
            judge(memory.put(good[:at] + bytes([changed]) + good[at + 1 :]), random.Random(at), ways.best())
        judge(memory.put(good[:at]), random.Random(at), ways.best())
