"""The service's own certificate: checked at the start, and read again when its files are others, without a restart."""

from __future__ import annotations

import logging
import ssl

from srm_spark.api.watching import FileWatch

log = logging.getLogger(__name__)


def why_unfit(certificate: str, key: str | None) -> str | None:
    """Why a chain and its key cannot be used; None where they can."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
    except (OSError, ssl.SSLError) as error:
        return error.strerror or str(error)
    return None


def certificate_watch(context: ssl.SSLContext, certificate: str, key: str | None) -> FileWatch:
    """Keeps a server's context as its files are, with which it has been loaded: new connections get the new one.

    What cannot be used is told once, and what was there goes on to be used.
    """

    def read() -> None:
        # Of a pair that does not belong together a context would take the one and refuse the other.
        if (reason := why_unfit(certificate, key)) is not None:
            log.error("%s cannot be used, the certificate of before goes on: %s", certificate, reason)
            return
        context.load_cert_chain(certificate, key, lambda: "")
        log.info("%s was read again", certificate)

    return FileWatch([one for one in (certificate, key) if one is not None], read)
