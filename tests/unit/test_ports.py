"""Ports of servers in tests are given once."""

from __future__ import annotations

import random
import subprocess
import sys

from srm_spark.testing.ports import free_ports

_FIRST = 4 * random.randrange(2500, 5000)
FEW, OTHERS = range(_FIRST, _FIRST + 4), range(_FIRST + 20000, _FIRST + 20004)
"""Not always the same: another run of this test may be under way."""
SCRIPT = f"""
import sys
from srm_spark.testing.ports import free_ports
print(*free_ports({len(FEW) // 2}, {FEW}), flush=True)
sys.stdin.read()
"""


def test_a_port_is_given_once_in_a_process() -> None:
    first = free_ports(3, OTHERS)
    assert len(set(first)) == 3
    assert not set(first) & set(free_ports(3, OTHERS))


def test_a_port_that_another_process_was_given_is_not_given_while_that_lives() -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        theirs = {int(port) for port in other.stdout.readline().split()}
        ours = set(free_ports(len(FEW), FEW))
    assert len(theirs) == 2
    assert ours == set(FEW) - theirs
    assert set(free_ports(len(FEW), FEW)) == theirs
