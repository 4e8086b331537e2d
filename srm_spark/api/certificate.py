"""The service's own certificate: checked at the start, and read again when its files are others, without a restart."""

from __future__ import annotations

import logging
import ssl
import threading
from pathlib import Path

log = logging.getLogger(__name__)
_LOOK_SECONDS = 10.0

Stamp = tuple[tuple[int, int], ...]
"""When each file was written, in nanoseconds, and its size."""


def why_unfit(certificate: str, key: str | None) -> str | None:
    """Why a chain and its key cannot be used; None where they can."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
    except (OSError, ssl.SSLError) as error:
        return error.strerror or str(error)
    return None


class CertificateWatch:
    """Keeps a server's context as its files are, from `start` until `stop`: new connections get the new certificate."""

    def __init__(self, context: ssl.SSLContext, certificate: str, key: str | None) -> None:
        """`context` has been loaded with the files as they are now."""
        self._context, self._certificate, self._key = context, certificate, key
        self._seen = self._stamp()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="certificate", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._over.set()
        self._thread.join()

    def look(self) -> None:
        """Read files again that are others. What cannot be used is told once, and what was there goes on to be used."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        # Of a pair that does not belong together a context would take the one and refuse the other.
        if (reason := why_unfit(self._certificate, self._key)) is not None:
            log.error("%s cannot be used, the certificate of before goes on: %s", self._certificate, reason)
            return
        self._context.load_cert_chain(self._certificate, self._key, lambda: "")
        log.info("%s was read again", self._certificate)

    def _run(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self.look()

    def _stamp(self) -> Stamp:
        found = []
        for path in filter(None, (self._certificate, self._key)):
            try:
                status = Path(path).stat()
                found.append((status.st_mtime_ns, status.st_size))
            except OSError:
                found.append((0, 0))
        return tuple(found)
