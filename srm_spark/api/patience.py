"""How long a request may take to arrive, and an answer to be taken: who sends or reads byte by byte, or nothing at all,
takes a place and memory from the others."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from typing import ClassVar

import h11
from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

_log = logging.getLogger(__name__)
_SEND_BUFFER = 64 * 1024
"""Of the system, for each connection; by itself it lets 4 MB lie there. It also tells of room by the third of it only:
of a large one a slow reader would seem to stand still."""
_PIECE = 64 * 1024
_RESET = struct.pack("ii", 1, 0)
"""What still lies with the system is thrown away at the end of a connection, and does not wait for its reader."""


class PatientProtocol(H11Protocol):
    """Ends a connection whose request is not there as a whole, headers and body, so long after it began.

    It counts from the connection, or from the first byte behind the request before; also while a body comes that was
    refused already. Between two requests the server's own, shorter time to stay alive counts.

    It also ends one of whose answers a part is left, and less than `taken_bytes` of it were read in the same time; be
    it in the midst of the answer, behind it, or when it is closed already: the server by itself waits for ever there.
    """

    seconds: ClassVar[float] = 10.0
    """A body of 64 kB takes half of it at 100 kbit/s."""
    taken_bytes: ClassVar[int] = 64 * 1024
    """As fast as a request has to come."""
    _deadline: asyncio.TimerHandle | None = None
    _next_look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the one above
        """Begin to count."""
        super().connection_made(transport)
        self.app = _InPieces(self.app)
        _set(transport, socket.SO_SNDBUF, _SEND_BUFFER)
        self._judge()

    def data_received(self, data: bytes) -> None:
        """Some of a request."""
        if not self.transport.get_write_buffer_size():
            self._look_no_more()  # everything before it was taken
        super().data_received(data)
        self._judge()

    def on_response_complete(self) -> None:
        """An answer was sent, and what comes next may lie here already."""
        super().on_response_complete()
        self._judge()
        self._look_later()

    def pause_writing(self) -> None:
        """More of an answer lies here than is taken."""
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        """Most of it was taken."""
        super().resume_writing()
        self._look_no_more()
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count no more."""
        super().connection_lost(exc)
        self._stop()
        self._look_no_more()

    def _judge(self) -> None:
        sent = self.conn.their_state
        is_coming = sent is h11.SEND_BODY or (sent is h11.IDLE and self.timeout_keep_alive_task is None)
        if not is_coming:
            self._stop()
        elif self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(self.seconds, self._end)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        address = self.client[0] if self.client else "unknown"
        _log.info("a request from %s was not there after %g s, and its connection was ended", address, self.seconds)
        self.transport.abort()

    def _look_later(self) -> None:
        left = self.transport.get_write_buffer_size()
        if left and self._next_look is None:
            self._next_look = self.loop.call_later(self.seconds, self._look, left)

    def _look_no_more(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None

    def _look(self, before: int) -> None:
        self._next_look = None
        left = self.transport.get_write_buffer_size()
        if left <= max(0, before - self.taken_bytes):
            self._look_later()
            return
        address = self.client[0] if self.client else "unknown"
        _log.info("an answer to %s was not read within %g s, and its connection was ended", address, self.seconds)
        _set(self.transport, socket.SO_LINGER, _RESET)
        self.transport.abort()


class _InPieces:
    """Sends long bodies a piece after the other, each when most of that before was taken.

    As one, all of it would lie in the transport, which the server counts as sent: the time to stay alive begins, and
    at its end TLS gives the reader 30 s for the rest, however well he reads.
    """

    def __init__(self, app: ASGI3Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def in_pieces(message: ASGISendEvent) -> None:
            if message["type"] != "http.response.body":
                await send(message)
                return
            body, is_more = message.get("body", b""), message.get("more_body", False)
            for start in range(0, max(len(body), 1), _PIECE):
                end = start + _PIECE
                more = is_more or end < len(body)
                await send({"type": "http.response.body", "body": body[start:end], "more_body": more})

        await self._app(scope, receive, in_pieces)


def _set(transport: asyncio.Transport, option: int, value: int | bytes) -> None:
    connection: socket.socket = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, option, value)
