"""The job of history beside a service: a process of its own, so that Spark takes nothing from who asks.

It is started again when it ends, and ends with its service, however that ends.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import sys
import threading
from collections.abc import Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from srm_spark.config.settings import FlowSettings, HistorySettings
from srm_spark.core.wording import one_line
from srm_spark.errors import SrmError

log = logging.getLogger(__name__)

LOG_FORMAT = "%(asctime)s %(levelname)-7s %(message)s"
_AGAIN_SECONDS = 10.0
_STOP_SECONDS = 60.0
"""For the batches in progress, and the end of Spark."""


class HistoryProcess:
    """Starts the job, and keeps it running until it is told to stop."""

    def __init__(self, flows: Sequence[FlowSettings], history: HistorySettings) -> None:
        """Nothing is started yet."""
        self._flows, self._history = tuple(flows), history
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="srm history", daemon=True)

    def start(self) -> None:
        """Start it; returns at once."""
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            process = self._started()
            while process.is_alive() and not self._stop.wait(0.5):
                pass
            if self._stop.is_set():
                process.terminate()
                process.join(_STOP_SECONDS)
                process.kill()
            else:
                log.warning("the job of history has ended with code %s; it is started again", process.exitcode)
                self._stop.wait(_AGAIN_SECONDS)

    def _started(self) -> BaseProcess:
        # Not a fork: threads of this process hold locks that nobody would ever release in the copy.
        context = multiprocessing.get_context("spawn")
        arguments = (self._flows, self._history, logging.getLogger().level)
        process = context.Process(target=_work, args=arguments, name="srm history", daemon=True)
        process.start()
        return process

    def stop(self) -> None:
        """End with the batches in progress."""
        self._stop.set()
        self._thread.join(_STOP_SECONDS + 1)


def _work(flows: Sequence[FlowSettings], history: HistorySettings, level: int) -> None:
    """The whole of the process."""
    stop = threading.Event()
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is sent to both, and the service passes on what it makes of it
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    logging.basicConfig(level=level, format=LOG_FORMAT, stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_the_service() -> None:
        wait([parent.sentinel])
        stop.set()

    threading.Thread(target=end_with_the_service, name="srm service", daemon=True).start()
    from srm_spark.past.writing import write_history  # noqa: PLC0415 - Spark is of this process alone

    try:
        write_history(flows, history, stop)
    except SrmError as error:
        log.error("history is not written: %s", one_line(error))
        raise SystemExit(1) from None
