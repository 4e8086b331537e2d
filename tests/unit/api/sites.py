"""Services of other sites on the loopback interface: real ones, and such that hang, trickle or answer otherwise."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from srm_spark.core.advertised import Address, Advertisement, HeardAdvertisement, key_of
from srm_spark.look.sites import Site
from tests.awaiting import await_until
from tests.unit.api.boards import NOW

HOST = "127.0.0.1"


@dataclass
class Counted:
    """An application, and what it was asked."""

    app: ASGIApp
    asked: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.asked.append(f"{scope['path']}?{scope['query_string'].decode()}")
        await self.app(scope, receive, send)


@contextmanager
def served(app: Any, port: int = 0, certificate: Path | None = None, key: Path | None = None) -> Iterator[int]:
    """The application behind a real server; its port."""
    config = uvicorn.Config(app, host=HOST, port=port, log_config=None, lifespan="off", ssl_certfile=certificate)
    config.ssl_keyfile = key
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        await_until(lambda: server.started, 20.0, "the server does not start")
        yield int(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(20.0)


@contextmanager
def answering(status: int, body: bytes = b"", **headers: str) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """A server that answers always the same; its port, and the headers of what it was asked."""
    asked: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def trickling(every: float | None, head: bytes = b"") -> Iterator[tuple[int, list[float]]]:
    """A server that says `head` and then a byte each `every` seconds for ever, or nothing (None).

    Its port, and one entry for each connection that has come.
    """
    over, came = threading.Event(), []
    listening = socket.create_server((HOST, 0))

    def answer(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.sendall(head)
            while not over.wait(60.0 if every is None else every):
                client.sendall(b"x")

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                came.append(1.0)
                threading.Thread(target=answer, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1], came
    finally:
        over.set()
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def unused_port() -> int:
    """Nobody listens there."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])


def site_at(alias: str, *ports: int, at: int = NOW, protocol: str = "http") -> Site:
    """A site whose services say that they listen on these ports."""
    site = Site(alias, why_not=None, cluster_id=f"id-of-{alias}")
    for port in ports:
        said = Advertisement(alias, Address(protocol, HOST, port), 30.0)
        site.take(key_of(said), HeardAdvertisement(said, at))
    return site
