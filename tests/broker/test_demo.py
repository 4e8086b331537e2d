"""`make demo` as a user meets it: a process of its own, its output, its exit code, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.awaiting import await_until

pytestmark = pytest.mark.slow

DEMO = [sys.executable, "-m", "srm_spark.demo.run"]
SECONDS = 480
"""Long, for a loaded machine: with ten processes per core the brokers alone took two minutes to start."""


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the demo with all its temporary files below `tmp_path`."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*DEMO, *arguments],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
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
    deadline = time.monotonic() + 15  # the JVM ends when it notices that we are gone
    while (left := of_demo(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
    assert list(folder.iterdir()) == []


def read_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    pytest.fail(f"the demo ended before it said {text!r}")


@pytest.mark.timeout(SECONDS + 60)
def test_everything_is_copied_and_the_table_says_so(demo: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    process = demo("--seconds", "3")
    output, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output + errors
    assert errors == ""
    assert "first difference" in output
    rows = [line.split("│")[1:-1] for line in output.splitlines() if line.startswith("│")]
    assert len(rows) == 18
    for topic, remote_topic, _, source, target, difference in rows:
        assert remote_topic.strip() == f"primary.{topic.strip()}"
        assert source.strip() == target.strip() != "0"
        assert difference.strip() == "none"
    assert "in 18 partitions, all equal" in output
    assert_nothing_left(tmp_path)


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("said", ["starting two Kafka clusters", "starting the flow"])
def test_ctrl_c_leaves_nothing_behind(demo: Callable[..., subprocess.Popen[str]], tmp_path: Path, said: str) -> None:
    process = demo("--seconds", "100")
    read_until(process, said)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=90)
    assert (process.returncode, errors) == (130, "")
    assert_nothing_left(tmp_path)


@pytest.mark.timeout(2 * SECONDS)
def test_what_is_kept_has_a_page_until_ctrl_c_or_a_kill(
    demo: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = demo("--seconds", "1", "--keep")
    address = read_until(process, "The page of the service").split()[-2]

    def statuses() -> set[tuple[str, str]]:
        with urlopen(f"{address}/v3/flows", timeout=30) as answer:
            return {(flow["source"], flow["status"]) for flow in json.load(answer)["flows"]}

    await_until(lambda: ("primary", "ACTIVE") in statuses(), 60, lambda: str(statuses()))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=90)
    assert (process.returncode, errors) == (130, "")
    assert_nothing_left(tmp_path)
    process = demo("--seconds", "1", "--keep")
    read_until(process, "The page of the service")
    process.kill()
    await_until(lambda: not of_demo(tmp_path), 30, lambda: str(of_demo(tmp_path)))


def test_a_wrong_key_is_one_readable_line(demo: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    process = demo("-D", "primary->secondary.topics=[")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "primary->secondary.topics" in errors
    assert "Traceback" not in errors
    assert_nothing_left(tmp_path)
