"""The session that a driver makes for itself: what it listens on, what it says, what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

UI_PORTS = range(4040, 4057)
"""Where Spark looks for a free port for its UI, before it gives up and does not start."""
SCRIPT = r"""
import glob, json, os, re, sys, threading
from pathlib import Path
from srm_spark.spark.session import open_session
from srm_spark.spark.starting import THREAD

LISTEN = "0A"

def family(pid):
    yield pid
    for children in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            found = Path(children).read_text().split()
        except OSError:  # a thread that has ended
            continue
        for child in found:
            yield from family(child)

def sockets(pid):
    for entry in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            yield from re.findall(r"socket:\[(\d+)\]", os.readlink(entry))
        except OSError:
            pass

session, _ = open_session(settings={"spark.driver.memory": "512m"})
assert session.sparkContext.parallelize([1]).map(lambda x: x + 1).collect() == [2]
ours = {inode for pid in family(str(os.getpid())) for inode in sockets(pid)}
lines = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
print(json.dumps([line[1] for line in lines if line[3] == LISTEN and line[9] in ours]), flush=True)
sys.stdin.read()  # until the test ends it
jvm = session.sparkContext._gateway.proc
session.stop()
jvm.stdin.close()  # that is how it learns of our end; what it says to that is heard, too
jvm.wait(60)
[thread.join(60) for thread in threading.enumerate() if thread.name == THREAD]
"""
_OWN_OPTIONS = "Picked up JAVA_TOOL_OPTIONS"
"""What the JVM says to an environment that only these tests make."""
_LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""127.0.0.1, the same as IPv6 says it, and ::1, as Linux writes them."""


@dataclass(frozen=True)
class Run:
    """What a process with a session did before it was killed together with its JVM."""

    listening: list[str]
    said: str
    folder: Path
    """All that its temporary files are in."""
    left: set[str]


@contextmanager
def running(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The script with its temporary files in `folder`; killed with its JVM at the end of the block if it still runs."""
    with (folder / "said").open("a") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env={**os.environ, "TMPDIR": str(folder), "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={folder}"},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A process that started where all ports of Spark's UI were taken, and was killed."""
    folder = tmp_path_factory.mktemp("run")
    with ExitStack() as stack:
        for port in UI_PORTS:
            with suppress(OSError):  # somebody else has it
                stack.enter_context(socket.create_server(("", port)))
        process = stack.enter_context(running(folder))
        assert process.stdout is not None
        line = process.stdout.readline()
        said = (folder / "said").read_text()
        assert line, said
    left = {path.name for path in folder.iterdir()} - {"said"}
    return Run([where.partition(":")[0] for where in json.loads(line)], said, folder, left)


def test_it_listens_on_loopback_only_also_where_the_ports_of_the_ui_are_taken(killed: Run) -> None:
    assert killed.listening  # the script can see sockets at all
    assert set(killed.listening) <= _LOOPBACK


def test_it_starts_without_a_word(killed: Run) -> None:
    assert _OWN_OPTIONS in killed.said  # what the JVM says does arrive
    assert [line for line in killed.said.splitlines() if not line.startswith(_OWN_OPTIONS)] == []


def test_what_a_killed_one_left_is_removed_by_the_next_start_which_ends_without_a_word(killed: Run) -> None:
    assert killed.left
    before = len((killed.folder / "said").read_text())
    with running(killed.folder) as process:
        process.communicate()
    assert process.returncode == 0
    said = (killed.folder / "said").read_text()[before:]
    assert [line for line in said.splitlines() if not line.startswith(_OWN_OPTIONS)] == []
    assert not killed.left & {path.name for path in killed.folder.iterdir()}
