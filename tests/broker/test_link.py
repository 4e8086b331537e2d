"""The proxy that plays a network far away: bytes arrive late, all of them, in order."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from srm_spark.bench.link import Link
from srm_spark.testing.ports import free_ports

HOST, ROUND_TRIP = "127.0.0.1", 0.2


@contextmanager
def echo(port: int) -> Iterator[None]:
    """A server that sends back what comes, for one connection."""

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            while part := connection.recv(1 << 16):
                connection.sendall(part)

    with socket.create_server((HOST, port)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield
        thread.join(20)
        assert not thread.is_alive(), "the link kept a connection open"


def test_every_byte_comes_back_a_round_trip_later() -> None:
    port, to_port = free_ports(2)
    sent = bytes(range(256)) * 20_000
    with echo(to_port), Link(port, to_port, ROUND_TRIP), socket.create_connection((HOST, port), 20) as client:
        began = time.monotonic()
        client.sendall(sent[:1])
        assert client.recv(1) == sent[:1]
        assert time.monotonic() - began >= ROUND_TRIP
        sender = threading.Thread(target=client.sendall, args=(sent,))
        sender.start()
        found = b""
        while len(found) < len(sent):
            found += client.recv(1 << 20)
        sender.join()
        assert found == sent


def test_what_is_under_way_when_the_link_ends_is_a_connection_that_ends() -> None:
    port, to_port = free_ports(2)
    with echo(to_port), socket.socket() as client:
        with Link(port, to_port, ROUND_TRIP):
            client.connect((HOST, port))
            client.sendall(b"x")
            assert client.recv(1) == b"x"
        client.settimeout(20)
        assert client.recv(1) == b""


def test_a_broker_that_is_away_is_a_connection_that_ends() -> None:
    port, to_port = free_ports(2)
    with Link(port, to_port, ROUND_TRIP), socket.create_connection((HOST, port), 20) as client:
        assert client.recv(1) == b""
