"""Tests of each kind under the oldest Spark that there are jars for, in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.matrix.areas import PAIRS
from tests.matrix.run import python_of

pytestmark = pytest.mark.slow
OLDEST = PAIRS[0]


@pytest.mark.timeout(1500)
@pytest.mark.skipif(python_of(OLDEST) is None, reason=f"there is no Python {OLDEST.python}")
def test_the_oldest_spark_copies_as_the_newest_does() -> None:
    command = [sys.executable, "-m", "tests.matrix.run", "--spark", OLDEST.spark, "--few"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
