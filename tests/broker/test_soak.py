"""The short form of `make soak`: some faults in each mode, at random moments under load, and every record compared."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.soak.faults import kinds
from tests.soak.run import FENCED, soak

pytestmark = pytest.mark.slow


ROUNDS = (
    ("default", ("kill_family_while_target_hangs", "kill_target", "refuse_source")),
    ("exactly-once", ("come_back",)),
)
"""A mode and its faults; a run takes one of them, by chance."""


def test_nothing_is_lost_doubled_or_reordered(tmp_path: Path, chance: random.Random) -> None:
    mode, names = chance.choice(ROUNDS)
    print(f"mode {mode}")
    found = {fault.__name__: fault for fault in kinds(is_fenced=mode in FENCED, has_executors=False)}
    verdict = soak(mode, [found[name] for name in names], chance, tmp_path, print)
    assert verdict.records > 1000
    assert verdict.is_good, str(verdict)
