"""Answers that nobody reads, or byte by byte, hold a connection for a bounded time; slow readers get theirs."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.responses import Response, StreamingResponse

from srm_spark.api.patience import PatientProtocol
from tests.certificates import identity
from tests.unit.api.serving import served

LONG = 0.4
"""Seconds for an answer to be taken further, in these tests."""
PATIENCE = 120.0
"""After which a connection counts as one that is never ended."""
LARGE, SMALL = 8_000_000, 20_000
HOST = b" HTTP/1.1\r\nhost: localhost\r\n"


class Impatient(PatientProtocol):
    seconds = LONG


def app() -> FastAPI:
    made = FastAPI()

    @made.get("/large")
    async def _large() -> Response:
        return Response(b"x" * LARGE)

    @made.get("/small")
    async def _small() -> Response:
        return Response(b"x" * SMALL)

    @made.get("/stream")
    async def _stream() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            while True:
                yield b": here\n\n" * 100
                await asyncio.sleep(0)

        return StreamingResponse(parts())

    return made


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with served(app(), Impatient) as found:
        yield found


def connected(address: tuple[str, int]) -> socket.socket:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(address)
    return one


def seconds_until_reset(one: socket.socket, began: float) -> float:
    """Without reading anything."""
    look = select.poll()
    look.register(one, select.POLLERR | select.POLLHUP)
    assert look.poll(PATIENCE * 1000), "it is held for ever"
    return time.monotonic() - began


def read_until_reset(one: socket.socket) -> int:
    """Byte by byte; how many there were."""
    end, got = time.monotonic() + PATIENCE, 0
    look = select.poll()
    look.register(one, select.POLLERR | select.POLLHUP)
    while not look.poll(10):
        assert time.monotonic() < end, "it is held for ever"
        assert one.recv(1)
        got += 1
    return got


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /large" + HOST + b"\r\n",
        b"GET /large" + HOST + b"connection: close\r\n\r\n",
        b"GET /stream" + HOST + b"\r\n",
        (b"GET /small" + HOST + b"\r\n") * 100,
        (b"GET /small" + HOST + b"\r\n") * 5,
    ],
    ids=["large", "closed", "stream", "many", "below what is buffered"],
)
def test_who_reads_nothing_is_let_go(address: tuple[str, int], sent: bytes) -> None:
    with connected(address) as one:
        began = time.monotonic()
        one.sendall(sent)
        assert seconds_until_reset(one, began) >= LONG


def test_so_is_who_reads_byte_by_byte(address: tuple[str, int]) -> None:
    with connected(address) as one:
        one.sendall(b"GET /large" + HOST + b"\r\n")
        assert read_until_reset(one) > 2, "it was looked at more than once"


def test_so_is_who_reads_nothing_by_tls(tmp_path: Path) -> None:
    own = identity("localhost")
    paths = tmp_path / "chain.pem", tmp_path / "key.pem"
    paths[0].write_text(own.certificate_pem)
    paths[1].write_text(own.key_pem)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        served(app(), Impatient, certificate=paths[0], key=paths[1]) as address,
        context.wrap_socket(connected(address)) as one,
    ):
        began = time.monotonic()
        one.sendall(b"GET /large" + HOST + b"\r\n")
        assert seconds_until_reset(one, began) >= LONG


def test_who_reads_slowly_gets_everything(address: tuple[str, int]) -> None:
    got, began = 0, time.monotonic()
    with connected(address) as one:
        one.sendall(b"GET /large" + HOST + b"connection: close\r\n\r\n")
        while part := one.recv(1 << 17):
            got += len(part)
            time.sleep(0.002)
    assert got > LARGE
    assert time.monotonic() - began > 2 * LONG, "it was slow enough to be looked at"


def test_a_connection_on_which_one_answer_follows_the_other_stays(address: tuple[str, int]) -> None:
    began = time.monotonic()
    with connected(address) as one:
        while time.monotonic() - began < 4 * LONG:
            one.sendall(b"GET /small" + HOST + b"\r\n")
            got = b""
            while got.count(b"x") < SMALL:
                part = one.recv(1 << 16)
                assert part
                got += part
