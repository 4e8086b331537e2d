"""A door in the network: it forwards connections to a broker, refuses them, lets them hang, or keeps answers back."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from srm_spark.testing import LocalCluster, LocalKafka
from srm_spark.testing.ports import free_ports

_HOST = "127.0.0.1"


class Door:
    """Listens on `port`; open from the beginning. The broker behind it is not touched by any of this."""

    def __init__(self, to: int) -> None:
        (self.port,) = free_ports(1)
        self._to = to
        self._asks, self._answers = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.open()

    def open(self) -> None:
        """Forward, whatever was before."""
        if self._listener is None:
            self._listener = socket.create_server((_HOST, self.port))
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        self._let_through()

    def refuse(self) -> None:
        """Connections end, and new ones are refused."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the thread that accepts
            self._listener.close()
            self._listener = None
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._let_through()  # not before: an answer that was kept back would still arrive

    def hang(self) -> None:
        """Connections stay, and new ones are accepted, but no byte comes through."""
        self._asks.clear()
        self._answers.clear()

    def mute(self) -> None:
        """Requests go through, and no answer comes back: what is asked for is done, and nobody hears of it."""
        self._answers.clear()

    def _let_through(self) -> None:
        self._asks.set()
        self._answers.set()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client, listener), daemon=True).start()

    def _connect(self, client: socket.socket, listener: socket.socket) -> None:
        try:
            broker = socket.create_connection((_HOST, self._to), 10)
        except OSError:
            client.close()
            return
        broker.settimeout(None)
        with self._lock:
            self._connections |= {client, broker}
        if listener is not self._listener:  # refused meanwhile
            self._end(client, broker)
        threading.Thread(target=self._forward, args=(client, broker, self._asks), daemon=True).start()
        self._forward(broker, client, self._answers)
        with self._lock:
            self._connections -= {client, broker}
        client.close()
        broker.close()

    def _forward(self, source: socket.socket, target: socket.socket, passes: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                passes.wait()
                target.sendall(data)
        self._end(source, target)

    def _end(self, *connections: socket.socket) -> None:
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Doors:
    """The ways to all brokers of a cluster, which open and close together."""

    def __init__(self, doors: Sequence[Door]) -> None:
        self._doors = doors

    def open(self) -> None:
        """Forward, whatever was before."""
        for door in self._doors:
            door.open()

    def refuse(self) -> None:
        """Connections end, and new ones are refused."""
        for door in self._doors:
            door.refuse()

    def hang(self) -> None:
        """Connections stay, and new ones are accepted, but no byte comes through."""
        for door in self._doors:
            door.hang()

    def mute(self) -> None:
        """Requests go through, and no answer comes back."""
        for door in self._doors:
            door.mute()

    @property
    def ports(self) -> list[int]:
        """Where they listen."""
        return [door.port for door in self._doors]


@dataclass(frozen=True)
class Behind:
    """A cluster as its clients know it that come through the doors; others reach its brokers directly."""

    cluster: LocalKafka | LocalCluster
    door: Doors

    @property
    def name(self) -> str:
        """Of the cluster."""
        return self.cluster.name

    @property
    def brokers(self) -> list[LocalKafka]:
        """The controller's first."""
        return self.cluster.brokers if isinstance(self.cluster, LocalCluster) else [self.cluster]

    @property
    def broker(self) -> LocalKafka:
        """The only one, or the controller's."""
        return self.brokers[0]

    @property
    def bootstrap_servers(self) -> str:
        """The doors'."""
        return ",".join(f"{_HOST}:{port}" for port in self.door.ports)


@contextmanager
def behind_door(name: str, overrides: Mapping[str, str] | None = None, brokers: int = 1) -> Iterator[Behind]:
    """A running cluster whose brokers have a second listener each, which is advertised as a door."""
    ports = free_ports(brokers)
    doors = [Door(port) for port in ports]
    listeners = [_listeners(port, door) for port, door in zip(ports, doors, strict=True)]
    listeners[0]["listeners"] += ",CONTROLLER://127.0.0.1:{controller_port}"
    common = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,BEHIND:PLAINTEXT",
        **(overrides or {}),
    }
    cluster: LocalKafka | LocalCluster
    if brokers == 1:
        cluster = LocalKafka(name, overrides={**common, **listeners[0]})
    else:
        cluster = LocalCluster(name, brokers, common, dict(enumerate(listeners, 1)))
    both = Doors(doors)
    try:
        with cluster:
            yield Behind(cluster, both)
    finally:
        both.refuse()


def _listeners(port: int, door: Door) -> dict[str, str]:
    """`port` is the one behind the door."""
    plain = "PLAINTEXT://127.0.0.1:{port},"
    return {
        "listeners": f"{plain}BEHIND://{_HOST}:{port}",
        "advertised.listeners": f"{plain}BEHIND://{_HOST}:{door.port}",
    }
