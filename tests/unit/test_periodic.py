"""Periodic work: when tasks run, what becomes of one that fails or hangs, and how they end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator

import pytest

from srm_spark.flow.periodic import Periodic
from tests.awaiting import await_until

SOON = 10.0


@pytest.fixture
def tasks() -> Iterator[Periodic]:
    """A clock that runs."""
    made = Periodic()
    made.start()
    yield made
    made.stop(SOON)


def test_it_runs_again_and_again_and_never_twice_at_a_time(tasks: Periodic) -> None:
    at_it, most = [0], [0]
    runs: list[float] = []

    def work() -> None:
        at_it[0] += 1
        most[0] = max(most[0], at_it[0])
        runs.append(time.monotonic())
        time.sleep(0.03)
        at_it[0] -= 1

    tasks.every(0.01, "busy", work)
    await_until(lambda: len(runs) > 4, SOON, "some runs")
    assert most == [1]


def test_what_it_raises_is_told_once_and_does_not_end_it(tasks: Periodic, caplog: pytest.LogCaptureFixture) -> None:
    runs: list[int] = []

    def work() -> None:
        runs.append(1)
        raise RuntimeError("broken" if len(runs) != 3 else "otherwise broken")

    with caplog.at_level(logging.WARNING, "srm_spark"):
        task = tasks.every(0.01, "broken one", work, slow=SOON)
        await_until(lambda: len(runs) > 4, SOON, "some runs")
        task.stop()
        assert task.join(SOON)
    told = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert [str(error) for error in told][:3] == ["broken", "otherwise broken", "broken"]


def test_one_that_takes_longer_than_it_should_is_told_once(tasks: Periodic, caplog: pytest.LogCaptureFixture) -> None:
    runs: list[int] = []

    def work() -> None:
        runs.append(1)
        time.sleep(0.02)

    with caplog.at_level(logging.WARNING, "srm_spark"):
        tasks.every(0.01, "slow one", work)
        tasks.every(0.01, "slow by its nature", work, slow=SOON)
        await_until(lambda: len(runs) > 6, SOON, "some runs")
    (message,) = caplog.messages
    assert message.startswith("task=slow one took ")


def test_one_that_hangs_holds_up_nobody(tasks: Periodic) -> None:
    go, runs = threading.Event(), list[int]()
    hanging = tasks.every(0.01, "hanging", go.wait)
    tasks.every(0.01, "beside", lambda: runs.append(1))
    await_until(lambda: len(runs) > 3, SOON, "the other one runs")
    hanging.stop()
    assert hanging.is_over
    assert not hanging.join(0.01)
    go.set()
    assert hanging.join(SOON)


def test_its_last_word_comes_once_behind_the_run_in_progress(tasks: Periodic) -> None:
    said: list[str] = []
    began, go = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        go.wait(SOON)
        said.append("done")

    busy = tasks.every(0.01, "busy", work, last=lambda: said.append("last"))
    assert began.wait(SOON)
    busy.stop()
    busy.stop()
    go.set()
    assert busy.join(SOON)
    assert said == ["done", "last"]
    idle = tasks.every(60, "idle", lambda: said.append("never"), at_once=False, last=lambda: said.append("idle"))
    idle.stop()
    assert idle.join(0)
    assert said == ["done", "last", "idle"]


def test_it_may_stop_itself(tasks: Periodic) -> None:
    runs: list[int] = []

    def work() -> None:
        runs.append(1)
        task.stop()

    task = tasks.every(0.05, "once", work, at_once=False)
    assert task.join(SOON)
    assert runs == [1]


def test_it_rests_as_many_times_as_long_as_it_took(tasks: Periodic) -> None:
    ended: list[float] = []
    began: list[float] = []

    def work() -> None:
        began.append(time.monotonic())
        time.sleep(0.03)
        ended.append(time.monotonic())

    tasks.every(0.01, "dear", work, rest=3.0)
    await_until(lambda: len(began) > 2, SOON, "three runs")
    assert began[1] - ended[0] >= 0.09


def test_a_clock_that_does_not_run_runs_nothing() -> None:
    tasks, runs = Periodic(), list[int]()
    task = tasks.every(0.01, "early", lambda: runs.append(1))
    task.run()
    assert runs == [1], "but by hand"
    tasks.start()
    await_until(lambda: len(runs) > 1, SOON, "it runs from the start on")
    assert tasks.stop(SOON)
    count = len(runs)
    task.run()
    assert len(runs) == count


def test_a_stop_waits_until_its_deadline_and_names_who_is_late(caplog: pytest.LogCaptureFixture) -> None:
    before = threading.active_count()
    tasks, began, go = Periodic(), threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        go.wait(SOON)

    last: list[str] = []
    task = tasks.every(0.01, "late one", work, slow=SOON, last=lambda: last.append("last"))
    tasks.start()
    assert began.wait(SOON)
    with caplog.at_level(logging.INFO, "srm_spark"):
        assert not tasks.stop(0.05)
    assert caplog.messages[-1] == "task=late one did not end within 0.05 s"
    go.set()
    assert task.join(SOON)
    assert last == ["last"], "and nothing is wrong with the clock that is gone"
    await_until(lambda: threading.active_count() <= before, SOON, "no thread is left")
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


def test_its_threads_end_with_it() -> None:
    before = threading.active_count()
    tasks = Periodic()
    tasks.start()
    runs: list[int] = []

    def work() -> None:
        runs.append(1)
        time.sleep(0.02)

    for number in range(4):
        tasks.every(0.01, f"{number}", work)
    await_until(lambda: len(runs) > 8, SOON, "all of them run")
    assert tasks.stop(SOON)
    await_until(lambda: threading.active_count() <= before, SOON, "no thread is left")


def test_a_clock_that_is_set_back_holds_up_nothing(caplog: pytest.LogCaptureFixture) -> None:
    back, looks = [0.0], list[int]()

    def wall() -> float:
        looks.append(1)
        return time.time() - back[0]

    tasks, runs = Periodic(wall, watch_seconds=0.01), list[int]()
    task = tasks.every(3600, "hourly", lambda: runs.append(1), at_once=False)
    tasks.start()
    await_until(lambda: len(looks) > 2, SOON, "some looks at the clock")
    assert runs == []
    with caplog.at_level(logging.WARNING, "srm_spark"):
        back[0] = 7200.0
        await_until(lambda: runs == [1], SOON, "it runs")
    assert caplog.messages == ["the clock was set back by 7200 s: all that is periodic begins anew"]
    assert tasks.stop(SOON)
    assert task.is_over
