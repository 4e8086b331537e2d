"""Ports of servers in tests are given once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from srm_spark.testing import ports
from srm_spark.testing.ports import free_ports

FEW = range(31900, 31904)
SCRIPT = f"""
import sys
from srm_spark.testing import ports
ports._RANGE = range({FEW.start}, {FEW.stop})
print(*ports.free_ports({len(FEW) // 2}), flush=True)
sys.stdin.read()
"""


def test_a_port_is_given_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_RANGE", range(31904, 31908))
    first = free_ports(3)
    assert len(set(first)) == 3
    assert not set(first) & set(free_ports(3))


def test_a_port_that_another_process_was_given_is_not_given_while_that_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_RANGE", FEW)
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        theirs = {int(port) for port in other.stdout.readline().split()}
        ours = set(free_ports(len(FEW)))
    assert len(theirs) == 2
    assert ours == set(FEW) - theirs
    assert set(free_ports(len(FEW))) == theirs
