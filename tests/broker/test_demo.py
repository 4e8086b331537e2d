"""`make demo` as a user meets it: a process of its own, its output, its exit code, and what it leaves behind."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.awaiting import await_until
from tests.demo_process import SECONDS, Start, assert_nothing_left, demos, of_demo, read_until

pytestmark = pytest.mark.slow


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Start]:
    with demos(tmp_path) as start:
        yield start


@pytest.mark.timeout(SECONDS + 60)
def test_everything_is_copied_and_the_table_says_so(demo: Start, tmp_path: Path) -> None:
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
def test_ctrl_c_leaves_nothing_behind(demo: Start, tmp_path: Path, said: str) -> None:
    process = demo("--seconds", "100")
    read_until(process, said)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=90)
    assert (process.returncode, errors) == (130, "")
    assert_nothing_left(tmp_path)


@pytest.mark.timeout(2 * SECONDS)
def test_what_is_kept_goes_with_a_kill(demo: Start, tmp_path: Path) -> None:
    process = demo("--seconds", "1", "--keep")
    read_until(process, "The page of the service")
    process.kill()
    await_until(lambda: not of_demo(tmp_path), 30, lambda: str(of_demo(tmp_path)))


def test_a_wrong_key_is_one_readable_line(demo: Start, tmp_path: Path) -> None:
    process = demo("-D", "primary->secondary.topics=[")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "primary->secondary.topics" in errors
    assert "Traceback" not in errors
    assert_nothing_left(tmp_path)
