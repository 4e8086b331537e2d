"""A thread for each cluster that is followed or told something: one that hangs holds up no other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from srm_spark.core.wording import one_line
from srm_spark.errors import FlowError

Run = Callable[[threading.Event], None]
"""What a thread does until the event is set."""


class ClusterThreads:
    """They begin and end together."""

    def __init__(self, runs: Iterable[tuple[str, Run]], stop_seconds: float) -> None:
        """Names of threads and what they do; each is waited for so long at the end."""
        self._over, self._stop_seconds = threading.Event(), stop_seconds
        self._threads = [
            threading.Thread(target=partial(run, self._over), name=name, daemon=True) for name, run in runs
        ]

    def start(self) -> None:
        """Begin; returns at once."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End; a call to a cluster that hangs is not waited for."""
        self._over.set()
        for thread in self._threads:
            thread.join(self._stop_seconds)


class Reader(Protocol):
    """Follows one cluster."""

    def look(self) -> None:
        """Take in what is new."""

    def close(self) -> None:
        """Let go of the connections."""


def follow(over: threading.Event, make: Callable[[], Reader], lost: Callable[[str], None], pause: float) -> None:
    """Look again and again, with `pause` seconds between; `lost` is told why a reader cannot be made."""
    reader: Reader | None = None
    while not over.is_set():
        try:
            reader = reader or make()
            reader.look()
        except FlowError as error:  # the client library refuses the settings of this cluster
            lost(one_line(error))
        over.wait(pause)
    if reader is not None:
        reader.close()
