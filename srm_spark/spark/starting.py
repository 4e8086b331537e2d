"""How a JVM of our own starts: deaf to SIGTERM, and without a line that Java prints for each of Spark's.

pyspark offers no way to say either; what it starts is a fork of this process for a moment, and that is changed here.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_NOISE = b"WARNING: Using incubator modules"
"""Spark 4 adds Java's vector module to every JVM, and no option of Java's keeps it from telling."""
_STDERR = 2
_LAST_WORDS_SECONDS = 1.0
THREAD = "srm-spark-jvm-stderr"
"""Passes on what the JVM says, until it ends."""


@contextmanager
def sparing_the_jvm() -> Iterator[None]:
    """Start the JVM deaf to SIGTERM: service managers send it to every process, and Spark must outlive the last batch.

    pyspark does the same for SIGINT; the JVM ends with its parent anyway. Only the child is made deaf: a SIGTERM that
    this process gets meanwhile must not be lost. What it says on stderr comes through this process; after a Ctrl-C
    nobody wants to hear that it cannot start, now that pyspark has taken away what it was to write to. As with any
    other child, what counts is our stderr of now: whoever sends it elsewhere for this moment does that for all it says.
    """
    said, says = (_beyond_stderr(end) for end in os.pipe())
    stderr = _copy_of_stderr()
    is_heard = threading.Event()
    is_heard.set()
    words = threading.Thread(target=_pass_on, args=(said, stderr, is_heard), name=THREAD, daemon=True)
    words.start()
    _starting.append(says)
    is_up = False
    try:
        yield
        is_up = True
    except KeyboardInterrupt:
        is_heard.clear()
        raise
    finally:
        _starting.remove(says)
        os.close(says)
        if not is_up:
            words.join(_LAST_WORDS_SECONDS)  # why it does not start comes before whoever asked is told


def _pass_on(said: int, stderr: int, is_heard: threading.Event) -> None:
    """Line by line, and to the end whatever becomes of our own stderr: a JVM whose words nobody takes stands still."""
    rest = b""
    while read := os.read(said, 65_536):
        *lines, rest = (rest + read).split(b"\n")
        if is_heard.is_set():
            _tell(stderr, b"".join(line + b"\n" for line in lines if not line.startswith(_NOISE)))
    if is_heard.is_set():
        _tell(stderr, rest)
    for end in (said, stderr):
        os.close(end)


def _copy_of_stderr() -> int:
    try:
        return os.dup(_STDERR)
    except OSError:  # a process may be started without any
        return _beyond_stderr(os.open(os.devnull, os.O_WRONLY))


def _beyond_stderr(end: int) -> int:
    """Whoever gives a process without stderr one later takes what has the number 2, whatever that is by then."""
    if end > _STDERR:
        return end
    moved = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _STDERR + 1)
    os.close(end)
    return moved


def _tell(stderr: int, text: bytes) -> None:
    with suppress(OSError):
        while text:
            text = text[os.write(stderr, text) :]


FORKED = threading.Event()
"""A JVM that starts is a process of its own since."""
_starting: list[int] = []
"""Where JVMs that start right now say what they have to say."""


def _change_the_child() -> None:
    if _starting:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.dup2(_starting[-1], _STDERR)


def _tell_parent() -> None:
    if _starting:
        FORKED.set()


# pyspark gives its JVM a `preexec_fn`, and before that Python runs what was registered for forks.
os.register_at_fork(after_in_child=_change_the_child, after_in_parent=_tell_parent)
