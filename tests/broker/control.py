"""srm-control as a process of its own, which is waited for, watched and interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.awaiting import await_until

SRM_CONTROL = Path(sys.executable).parent / "srm-control"
END_SECONDS = 60


class Running:
    """One command; what it says comes in as it says it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self._said = process, bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        while said := os.read(self._process.stdout.fileno(), 4096):
            self._said += said

    @property
    def said(self) -> str:
        """All of it so far, of both outputs."""
        return self._said.decode(errors="replace")

    def await_said(self, *texts: str) -> str:
        """Wait until it says one of these; all that it has said."""
        await_until(lambda: any(text in self.said for text in texts), END_SECONDS, lambda: f"{texts} in {self.said}")
        return self.said

    def answer(self, text: str) -> None:
        """To its question."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n".encode())
        self._process.stdin.flush()

    def await_connected(self, port: int) -> None:
        """Wait until it has a connection to this port."""
        one = psutil.Process(self._process.pid)

        def ports() -> set[int]:
            return {each.raddr.port for each in one.net_connections("tcp4") if each.raddr}

        await_until(lambda: port in ports(), END_SECONDS, lambda: f"a connection to {port}: {self.said}")

    def await_clients(self, count: int) -> None:
        """Wait until it has so many clients of librdkafka, each of which has a thread of this name."""
        tasks = Path(f"/proc/{self._process.pid}/task")

        def clients() -> int:
            found = 0
            for task in tasks.iterdir():
                with suppress(OSError):  # it ended while we looked
                    found += (task / "comm").read_text().strip() == "rdk:main"
            return found

        await_until(lambda: clients() >= count, END_SECONDS, lambda: f"{count} clients: {self.said}")

    def interrupt(self, seconds: float = 15) -> int:
        """Ctrl-C; its exit code, which has to come in so many seconds."""
        self._process.send_signal(signal.SIGINT)
        return self.end(seconds)

    def end(self, seconds: float = END_SECONDS) -> int:
        """Wait for its end; its exit code."""
        code = self._process.wait(seconds)
        self._reader.join(seconds)
        return code


@contextmanager
def srm_control(*line: str) -> Iterator[Running]:
    """The command, running; killed at the end of the block if it still lives."""
    process = subprocess.Popen(
        [str(SRM_CONTROL), *line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    with process:
        try:
            yield Running(process)
        finally:
            process.kill()
