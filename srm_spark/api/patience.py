"""How long a request may take to arrive: whoever sends it byte by byte takes a place from the others."""

from __future__ import annotations

import asyncio
import logging
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_log = logging.getLogger(__name__)


class PatientProtocol(H11Protocol):
    """Ends a connection whose request is not there as a whole, headers and body, so long after it began.

    It counts from the connection, or from the first byte behind the request before; also while a body comes that was
    refused already. Between two requests the server's own, shorter time to stay alive counts.
    """

    seconds: ClassVar[float] = 10.0
    """A body of 64 kB takes half of it at 100 kbit/s."""
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the one above
        """Begin to count."""
        super().connection_made(transport)
        self._judge()

    def data_received(self, data: bytes) -> None:
        """Some of a request."""
        super().data_received(data)
        self._judge()

    def on_response_complete(self) -> None:
        """An answer was sent, and what comes next may lie here already."""
        super().on_response_complete()
        self._judge()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count no more."""
        super().connection_lost(exc)
        self._stop()

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
