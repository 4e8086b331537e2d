"""`make demo` as a process, and what it started and left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

DEMO = [sys.executable, "-m", "srm_spark.demo.run"]
SECONDS = 480
"""Long, for a loaded machine: with ten processes per core the brokers alone took two minutes to start."""
Start = Callable[..., "subprocess.Popen[str]"]


@contextmanager
def demos(folder: Path) -> Iterator[Start]:
    """Start demos, with all their temporary files below `folder`; they are killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*DEMO, *arguments],
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.communicate()


def of_demo(folder: Path) -> list[str]:
    """Command lines of the processes that were started with this folder for temporary files: brokers and Spark."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()
        except OSError:
            continue  # it ended while we looked
        if f"TMPDIR={folder}".encode() in environment and command:
            found.append(command.replace(b"\0", b" ").decode()[:200])
    return found


def assert_nothing_left(folder: Path) -> None:
    """Neither a process nor a file."""
    deadline = time.monotonic() + 15  # the JVM ends when it notices that we are gone
    while (left := of_demo(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
    assert list(folder.iterdir()) == []


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """The line with this text."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    pytest.fail(f"the demo ended before it said {text!r}")
