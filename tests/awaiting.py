"""Waiting in tests: for a condition, never for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_POLL_SECONDS = 0.1
_LONGEST_SECONDS = 1.0


class TooLate(AssertionError):
    """Something did not come in time. Only a test that fails by this is tried once more: a machine may be slow."""


def await_until(condition: Callable[[], _T], timeout: float, what: str | Callable[[], str]) -> _T:
    """The first true value of `condition`; fails with `what` when there is none in `timeout` seconds.

    Between two looks it waits as long as a look takes: what is waited for needs the cores, too.
    """
    deadline = time.monotonic() + timeout
    while True:
        looked_at = time.monotonic()
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            text = what if isinstance(what, str) else what()
            raise TooLate(f"not within {timeout:g} s: {text}; last seen: {value!r}")
        time.sleep(min(max(_POLL_SECONDS, time.monotonic() - looked_at), _LONGEST_SECONDS))
