"""Patterns of which one match takes for ever: `(a+)+b` on a long name. They are refused before others have them.

Java's engine and Python's go back over what they took, each time in another way, and neither has a limit. Python's
holds its lock meanwhile, so that all of a driver would stand still. It looks for signals, and so a trial can be ended:
in the main thread, which commands run in; any other thread has it tried in a process of its own, which is this module.
Time is the process's own: a machine with other work ends no trial.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from srm_spark.core.filters import is_name
from srm_spark.core.patterns import compile_entry

_LONGEST = 249
"""Characters of a topic's name."""
_SECONDS = 0.5
"""For one name. An honest pattern, of thousands of alternatives, too, takes less than a hundredth of that."""
_ALL_SECONDS = 60.0
"""For all patterns of a change in a process of their own; a machine that takes longer counts them as slow."""
_OTHERS = ("a", "b", "A", "0", "-")
"""What `[^x]` and its kind take, which the characters of a pattern do not show."""
_TEXTS = re.compile(r"[\w.\-]+", re.ASCII)


class _TooSlowError(Exception):
    """The time is over."""


def slow_ones(entries: Sequence[str]) -> list[str]:
    """Those of which a match may take for ever. Raises PatternError for one that is no pattern."""
    patterns = [entry for entry in entries if not is_name(entry)]
    for entry in patterns:
        compile_entry(entry)
    if not patterns or threading.current_thread() is threading.main_thread():
        return [entry for entry in patterns if is_slow(entry)]
    try:
        ended = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps(patterns),
            capture_output=True,
            text=True,
            timeout=_ALL_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return patterns
    return list(json.loads(ended.stdout))


def is_slow(entry: str) -> bool:
    """Whether a pattern does not get done with long names that are made of its own characters, or others."""
    if is_name(entry):
        return False
    pattern = compile_entry(entry)
    try:
        for name in _names(entry):
            with _limited():
                pattern.matches(name)
    except _TooSlowError:
        return True
    return False


def _names(entry: str) -> Iterator[str]:
    """Each ends in what no pattern of names expects, so that all ways are tried."""
    texts = _TEXTS.findall(entry)
    for text in dict.fromkeys((*texts, *"".join(texts), *_OTHERS)):
        yield (text * _LONGEST)[: _LONGEST - 1] + "!"


@contextmanager
def _limited() -> Iterator[None]:
    def end(_: int, __: FrameType | None) -> None:
        raise _TooSlowError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


if __name__ == "__main__":
    print(json.dumps([entry for entry in json.load(sys.stdin) if is_slow(entry)]))
