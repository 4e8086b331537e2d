"""Ports for servers that are stopped and started again in tests."""

from __future__ import annotations

import random
import socket

_RANGE = range(20000, 32000)
"""Below the range from which Linux takes source ports. In that range a client that keeps trying to reach a stopped
broker is given the broker's own port one day, connects to itself, and the broker can't come back."""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on at this moment."""
    ports: list[int] = []
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        if len(ports) == count:
            break
        if _is_free(port):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Java's server sockets do: connections in TIME_WAIT don't count as a user of the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
