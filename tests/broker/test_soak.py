"""The short form of `make soak`: some faults in each mode, at random moments under load, and every record compared."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.soak.faults import (
    Fault,
    come_back,
    kill_driver,
    kill_target,
    refuse_source,
)
from tests.soak.run import soak


@pytest.mark.parametrize(
    ("mode", "faults"),
    [
        ("default", (kill_target, kill_driver, refuse_source)),
        ("exactly-once", (come_back,)),
    ],
)
def test_nothing_is_lost_doubled_or_reordered(mode: str, faults: tuple[Fault, ...], tmp_path: Path) -> None:
    seed = int(os.environ.get("SRM_SEED") or random.randrange(10**6))
    print(f"SRM_SEED={seed}")
    verdict = soak(mode, faults, random.Random(seed), tmp_path, print)
    assert verdict.records > 1000
    assert verdict.is_good, str(verdict)
