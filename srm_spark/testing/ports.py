"""Ports for servers that are stopped and started again in tests."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
import threading

RANGE = range(20000, 32000)
"""Below the range from which Linux takes source ports. In that range a client that keeps trying to reach a stopped
broker is given the broker's own port one day, connects to itself, and the broker can't come back."""


def free_ports(count: int, among: range = RANGE) -> list[int]:
    """Ports of the loopback interface that nobody listens on, and that nobody else is given while this process lives.

    A broker listens seconds after its port was chosen, and is stopped for a while in tests: looking alone gives two
    processes that run beside each other the same port one day.
    """
    ports: list[int] = []
    for port in random.SystemRandom().sample(among, len(among)):
        if len(ports) == count:
            break
        if _is_free(port) and _RESERVED.reserve(port):
            ports.append(port)
    return ports


class _Reservations:
    """Locks on bytes of a file that all processes of a user share: byte n is port n, and they end with the process."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._own: set[int] = set()
        self._lock = threading.Lock()

    def reserve(self, port: int) -> bool:
        """Whether it is this process's now, and was not so before."""
        with self._lock:
            if port in self._own:  # such a lock does not exclude the process that holds it
                return False
            if self._file is None:
                path = os.path.join(tempfile.gettempdir(), f"srm-spark-ports-{os.getuid()}")
                self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            except OSError:
                return False
            self._own.add(port)
            return True


_RESERVED = _Reservations()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Java's server sockets do: connections in TIME_WAIT don't count as a user of the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
