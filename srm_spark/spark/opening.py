"""The Spark of a driver, which may still be starting: a JVM takes seconds, and the first copies need none."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future

from pyspark.sql import SparkSession

from srm_spark.errors import SetupError
from srm_spark.spark.session import listen_for_batches, own_session, release
from srm_spark.spark.starting import FORKED

_SPARE_FILES = 8
"""Numbers of open files that are kept for Spark's socket, see `listen_for_batches`."""
_LOOK_SECONDS = 0.05


class Spark:
    """A session, now or later. Calls may come from any thread."""

    def __init__(self, coming: Future[SparkSession]) -> None:
        self._coming = coming

    @classmethod
    def given(cls, session: SparkSession) -> Spark:
        """One that is there."""
        coming: Future[SparkSession] = Future()
        coming.set_result(session)
        return cls(coming)

    @property
    def is_up(self) -> bool:
        """Whether nothing is to be waited for any more: it is there, or does not start."""
        return self._coming.done()

    def session(self) -> SparkSession:
        """The session, as soon as it is there. Raises SetupError where it does not start."""
        return self._coming.result()

    def own(self) -> OwnSpark:
        """A session of one flow's own on it, as soon as it is there."""
        return OwnSpark(self)


class OwnSpark:
    """A copy of a driver's session, made when it is first asked for."""

    def __init__(self, spark: Spark) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._session: SparkSession | None = None

    @property
    def is_up(self) -> bool:
        """Whether `session` returns, or raises, at once."""
        return self._spark.is_up

    def session(self) -> SparkSession:
        """The copy. Raises SetupError where Spark does not start."""
        given = self._spark.session()
        with self._lock:
            if self._session is None:
                self._session = own_session(given)
            return self._session

    def wait(self, stop: threading.Event) -> bool:
        """Wait until it is up; False where that is not wanted any more."""
        while not self.is_up:
            if stop.wait(_LOOK_SECONDS):
                return False
        return True

    def release(self) -> None:
        """Let go of the copy."""
        if self._session is not None:
            release(self._session, self._spark.session())


def start_spark(open_it: Callable[[], SparkSession]) -> Spark:
    """Open a session in a thread of its own; returns as soon as the JVM is a process of its own.

    Before, there should be no other threads that could hold locks which its fork would find held for ever. Raises
    SetupError where it does not come so far: for want of Java, or of jars.
    """
    spare = [os.open(os.devnull, os.O_RDONLY) for _ in range(_SPARE_FILES)]
    coming: Future[SparkSession] = Future()
    FORKED.clear()

    def run() -> None:
        try:
            session = open_it()
            while spare:
                os.close(spare.pop())
            listen_for_batches(session)
            coming.set_result(session)
        except SetupError as error:
            coming.set_exception(error)
        except BaseException as error:
            coming.set_exception(SetupError(f"Spark does not start: {error}; run srm-driver doctor"))
        finally:
            while spare:
                os.close(spare.pop())

    threading.Thread(target=run, name="srm spark", daemon=True).start()
    while not coming.done() and not FORKED.wait(_LOOK_SECONDS):
        pass
    if coming.done():
        coming.result()
    return Spark(coming)
