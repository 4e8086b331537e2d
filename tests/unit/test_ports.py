"""Ports of servers in tests are given once."""

from __future__ import annotations

import subprocess
import sys

from srm_spark.testing.ports import free_ports

FEW = range(31900, 31904)
SCRIPT = f"""
import sys
from srm_spark.testing.ports import free_ports
print(*free_ports({len(FEW) // 2}, {FEW}), flush=True)
sys.stdin.read()
"""


def test_a_port_is_given_once_in_a_process() -> None:
    among = range(31904, 31908)
    first = free_ports(3, among)
    assert len(set(first)) == 3
    assert not set(first) & set(free_ports(3, among))


def test_a_port_that_another_process_was_given_is_not_given_while_that_lives() -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        theirs = {int(port) for port in other.stdout.readline().split()}
        ours = set(free_ports(len(FEW), FEW))
    assert len(theirs) == 2
    assert ours == set(FEW) - theirs
    assert set(free_ports(len(FEW), FEW)) == theirs
