"""An application behind the service's own HTTP server, on a port of this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from srm_spark.api.patience import PatientProtocol
from tests.awaiting import await_until


@contextmanager
def served(
    app: FastAPI,
    protocol: type[PatientProtocol] = PatientProtocol,
    port: int = 0,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
) -> Iterator[tuple[str, int]]:
    """Host and port; by TLS where there is a certificate."""
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            await_until(lambda: server.started, 30, "the server has started")
            yield listening.getsockname()
        finally:
            server.should_exit = True
            thread.join()
