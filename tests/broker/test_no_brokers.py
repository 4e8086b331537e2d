"""A cluster whose brokers are all fenced answers, and names none: as right behind a start, or under much load."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Event, Thread

import pytest

from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import TargetUnavailable
from srm_spark.kafka.access import Access
from srm_spark.kafka.cluster import ClusterClient

_API_VERSIONS, _METADATA = 18, 3
_OFFERED = ((_API_VERSIONS, 0, 2), (_METADATA, 0, 8))
_UNKNOWN_TOPIC = 3


class _Broker(ThreadingTCPServer):
    """Knows itself, until it is fenced."""

    daemon_threads = True
    is_fenced: Event

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Answers(StreamRequestHandler):
    server: _Broker

    def handle(self) -> None:
        while size := self.rfile.read(4):
            request = self.rfile.read(*struct.unpack(">i", size))
            key, version, number = struct.unpack_from(">hhi", request)
            answer = self._versions(version) if key == _API_VERSIONS else self._metadata(request)
            self.wfile.write(struct.pack(">ii", 4 + len(answer), number) + answer)

    def _versions(self, version: int) -> bytes:
        if version > 2:  # "not that version", in the words of the first
            return struct.pack(">hi", 35, 0)
        offered = b"".join(struct.pack(">hhh", *one) for one in _OFFERED)
        return struct.pack(">hi", 0, len(_OFFERED)) + offered + struct.pack(">i", 0) * bool(version)

    def _metadata(self, request: bytes) -> bytes:
        (client_size,) = struct.unpack_from(">h", request, 8)
        (topics,) = struct.unpack_from(">i", request, 10 + client_size)
        fenced = self.server.is_fenced.is_set()
        itself = struct.pack(">iih9sih", 1, 1, 9, b"127.0.0.1", self.server.port, -1)
        asked = b""
        if topics > 0:  # one, in this test
            (size,) = struct.unpack_from(">h", request, 14 + client_size)
            name = request[16 + client_size :][:size]
            asked = struct.pack(f">hh{size}sb", _UNKNOWN_TOPIC, size, name, 0) + struct.pack(">ii", 0, -(2**31))
        brokers = struct.pack(">i", 0) if fenced else itself
        controller = -1 if fenced else 1
        head = struct.pack(">i", 0) + brokers + struct.pack(">h1si", 1, b"x", controller)
        return head + struct.pack(">i", int(bool(asked))) + asked + struct.pack(">i", -(2**31))


@pytest.fixture
def broker() -> Iterator[_Broker]:
    with _Broker(("127.0.0.1", 0), _Answers) as server:
        server.is_fenced = Event()
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_sign_of_life_of_a_cluster_without_brokers_does_not_end_the_process(broker: _Broker) -> None:
    settings = ClusterSettings("b", f"127.0.0.1:{broker.port}", {})
    cluster = ClusterClient(settings, TargetUnavailable, timeout=2)
    cluster.ping()
    broker.is_fenced.set()
    for _ in range(2):
        with suppress(TargetUnavailable):  # once it asks for the controller again, there is none in time
            cluster.ping()


def test_what_is_allowed_on_a_cluster_without_brokers_is_unknown(broker: _Broker) -> None:
    access = Access(ClusterSettings("b", f"127.0.0.1:{broker.port}", {}), {}, 10)
    assert access.reach().brokers == 1
    broker.is_fenced.set()
    assert access.on_cluster() is None
