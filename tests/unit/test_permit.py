"""Who writes all the time learns from a thread of its own whether it may, whatever becomes of one question."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from srm_spark.core.model import Flow
from srm_spark.errors import LeaseLost
from srm_spark.kafka.lease import Permit, Watch
from tests.awaiting import await_until


class Asked:
    """A permit whose first answers are these; later ones are that it lasts."""

    flow = Flow("A", "B")

    def __init__(self, *answers: Exception) -> None:
        self._answers = list(answers)

    def require(self) -> None:
        if self._answers:
            raise self._answers.pop(0)


def test_a_question_that_cannot_be_asked_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    """As where the machine has no descriptor left for a process to ask by: a dead thread would never be sure again."""
    permit: Any = Asked(OSError(24, "Too many open files"))
    watch = Watch(cast("Permit", permit))
    await_until(watch.is_sure, 20, "it is sure again")
    watch.end()
    assert "flow=A->B whether it may still write is not known" in caplog.text


def test_what_is_lost_is_lost() -> None:
    permit: Any = Asked(LeaseLost("another driver has it"))
    watch = Watch(cast("Permit", permit))

    def is_lost() -> bool:
        try:
            watch.is_sure()
        except LeaseLost:
            return True
        return False

    await_until(is_lost, 20, "it is told")


def test_answers_that_take_long_leave_no_gap() -> None:
    """Behind a fetch that waits at the broker an answer takes half a second."""

    class Slow(Asked):
        def require(self) -> None:
            threading.Event().wait(0.55)

    permit: Any = Slow()
    watch = Watch(cast("Permit", permit))
    await_until(watch.is_sure, 20, "it is sure")
    assert all(watch.is_sure() for _ in range(250) if not threading.Event().wait(0.01))
    watch.end()
