"""A Java server as a child process: brokers and MirrorMaker 2. It never outlives us, however we end."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from srm_spark.errors import SetupError
from srm_spark.jars import KAFKA
from srm_spark.testing.java import QUICK_START, java_arguments

_POLL_SECONDS = 0.05


def watchdog(pid: int) -> subprocess.Popen[bytes]:
    """What kills a process once we are gone; a line to it, and it ends without."""
    watch = ["sh", "-c", 'read -r _ || kill -9 "$0"', str(pid)]
    return subprocess.Popen(watch, stdin=subprocess.PIPE, start_new_session=True)


class JavaProcess:
    """One main class with a set of jars, its output in a file; may be started again after it ended.

    ```
    we ──pipe──> watchdog (sh)         we die, by kill -9 too → the pipe closes → the watchdog kills the JVM
     └─────────> JVM                   we stop the JVM        → the watchdog is told to go first
    ```
    The kernel's own "tell the child" (PR_SET_PDEATHSIG) would fire when the *thread* that started the JVM ends.
    """

    def __init__(
        self,
        main: str,
        *arguments: str,
        log_path: Path,
        heap: str = "512m",
        jvm_options: Sequence[str] = QUICK_START,
        log_levels: Mapping[str, str] | None = None,
        jar_set: str = KAFKA.name,
    ) -> None:
        self.main = main
        self.arguments = arguments
        self.log_path = log_path
        self.jvm_options = (f"-Xmx{heap}", *jvm_options)
        self.log_levels = dict(log_levels or {})
        self.jar_set = jar_set
        self._jvm: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def running(self) -> bool:
        """Whether the JVM lives; a paused one does."""
        return self._jvm is not None and self._jvm.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the JVM."""
        if self._jvm is None:
            raise SetupError(f"{self.main} was not started")
        return self._jvm.pid

    def start(self) -> None:
        """Start the JVM and return at once; see `wait_for`."""
        if self.running:
            raise SetupError(f"{self.main} is running already (pid {self.pid})")
        self._dismiss_watchdog()
        command = java_arguments(
            self.main,
            self.arguments,
            jvm_options=self.jvm_options,
            log_levels=self.log_levels,
            jar_set=self.jar_set,
        )
        with self.log_path.open("ab") as log:
            self._log_start = log.tell()
            # A session of its own: Ctrl-C in the terminal is for us, who stop the JVM in good order.
            self._jvm = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._watchdog = watchdog(self._jvm.pid)

    def wait_for(self, pattern: str, timeout: float) -> None:
        """Wait until the output since the last start matches; a SetupError with the end of the log otherwise."""
        deadline = time.monotonic() + timeout
        while not re.search(pattern, self.log_text()):
            if not self.running:
                raise SetupError(f"{self.main} ended with {self._exit_code()} while starting; {self._log_tail()}")
            if time.monotonic() > deadline:
                raise SetupError(f"{self.main} was not ready after {timeout:.0f} s; {self._log_tail()}")
            time.sleep(_POLL_SECONDS)

    def stop(self, timeout: float = 60) -> None:
        """SIGTERM, and wait for the end; nothing if it is not running."""
        if self.running:
            self.resume()
            self._signal(signal.SIGTERM)
        self._reap(timeout)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        if self.running:
            self._signal(signal.SIGKILL)
        self._reap(10)

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nobody answers, as in a long GC or a hanging machine."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT, the end of a pause."""
        self._signal(signal.SIGCONT)

    def detach(self) -> int:
        """Let the JVM live on after us; returns its pid, which is all that is left to stop it by."""
        pid = self.pid
        self._dismiss_watchdog()
        return pid

    def log_text(self) -> str:
        """What it printed since the last start."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def _signal(self, number: signal.Signals) -> None:
        if self._jvm is None or not self.running:
            raise SetupError(f"{self.main} is not running, so it can't get {number.name}; {self._log_tail()}")
        self._jvm.send_signal(number)

    def _reap(self, timeout: float) -> None:
        if self._jvm is None:
            return
        try:
            self._jvm.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise SetupError(
                f"{self.main} (pid {self.pid}) did not end within {timeout} s; {self._log_tail()}"
            ) from error
        self._dismiss_watchdog()

    def _dismiss_watchdog(self) -> None:
        # Its answer to a line is to end; left alone it would later kill whoever got the pid again. Forgotten first: a
        # Ctrl-C amid this closes its input, and whoever ends the same process then would write to it again.
        watching, self._watchdog = self._watchdog, None
        if watching is not None:
            watching.communicate(b"\n")

    def _exit_code(self) -> int | None:
        return None if self._jvm is None else self._jvm.returncode

    def _log_tail(self, lines: int = 30) -> str:
        printed = self.log_text().splitlines() if self.log_path.exists() else []
        # Stack frames would push the reason out.
        tail = [line for line in printed if not line.startswith("\t")][-lines:]
        return "\n".join([f"the end of {self.log_path}:", *(tail or ["(empty)"])])
