"""Requests that come byte by byte end after a bounded time; those that take long to answer do not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from srm_spark.api.app import make_app
from srm_spark.api.patience import PatientProtocol
from tests.unit.api.boards import three_flows
from tests.unit.api.logins import users_of
from tests.unit.api.serving import served

LONG = 0.4
"""Seconds for a request, in these tests."""
PATIENCE = 30.0
"""After which a connection counts as one that is never ended."""
BODY = b"content-type: application/json\r\nx-requested-with: t\r\ncontent-length: 60000\r\n\r\n"
HEAD = b" HTTP/1.1\r\nhost: localhost\r\n"


class Impatient(PatientProtocol):
    seconds = LONG


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with served(make_app(three_flows().board), Impatient) as found:
        yield found


def ended(address: tuple[str, int], first: bytes, trickle: bytes) -> tuple[float, bytes]:
    """Seconds until the other side ended it, and what it said before."""
    said, began = b"", time.monotonic()
    with socket.create_connection(address) as one:
        one.sendall(first)
        one.settimeout(0.05)
        while time.monotonic() - began < PATIENCE:
            try:
                if trickle:
                    one.sendall(trickle)
                got = one.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                break
            if not got:
                break
            said += got
    return time.monotonic() - began, said


@pytest.mark.parametrize(
    ("first", "trickle"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\n", b"x: y\r\n"),
        (b"POST /v3/flows/A/B/pause" + HEAD + BODY, b"x"),
        (b"POST /flows/A/B/pause" + HEAD + BODY, b"x"),
        (b"GET /healthz" + HEAD + b"\r\nGET /", b"x"),
    ],
    ids=["silence", "headers", "body", "form", "a second request"],
)
def test_it_ends(address: tuple[str, int], first: bytes, trickle: bytes, caplog: pytest.LogCaptureFixture) -> None:
    seconds, said = ended(address, first, trickle)
    assert LONG <= seconds < PATIENCE
    assert (b"200 OK" in said) == (b"healthz" in first)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_body_that_nobody_wants_ends_too() -> None:
    with served(make_app(three_flows().board, users_of(alice="")), Impatient) as address:
        seconds, said = ended(address, b"POST /v3/flows/A/B/pause" + HEAD + BODY, b"x")
    assert b"401" in said
    assert LONG <= seconds < PATIENCE


def test_an_answer_may_take_its_time() -> None:
    app, never = FastAPI(), threading.Event()

    @app.get("/slow")
    def _slow() -> str:
        never.wait(2 * LONG)
        return "done"

    with served(app, Impatient) as address:
        _, said = ended(address, (b"GET /slow" + HEAD + b"\r\n") * 2, b"")
    assert said.count(b"done") == 2
