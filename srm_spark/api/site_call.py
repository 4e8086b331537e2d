"""One question to a service of another site, over HTTP: it is over within its time, whatever the other side does.

What the other side says is shown nowhere unless it is an answer; and what we log in by follows no redirect, and crosses
no network unencrypted.
"""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from contextlib import suppress
from enum import Enum
from http.client import HTTPConnection, HTTPException, HTTPResponse

from srm_spark.config.keys_sites import REMOTE_CA_KEY
from srm_spark.config.settings import RemoteSettings
from srm_spark.core.advertised import Address
from srm_spark.errors import ConfigError, Problem

_LARGEST_ANSWER = 16 * 1024 * 1024
_REFUSALS = frozenset({401, 403, 429})


class SiteFailure(Enum):
    """Why nothing is known of a site, as a code that does not change."""

    NO_CLUSTER = "no-cluster"
    """The cluster in which its services say where they are cannot be read, and could not before."""
    NO_ADVERTISEMENT = "no-advertisement"
    """No service says there where it is, or none has for a day."""
    NO_ANSWER = "no-answer"
    SLOW = "slow"
    LOGIN_REFUSED = "login-refused"
    CERTIFICATE = "certificate"
    NOT_ENCRYPTED = "not-encrypted"
    """It would have to be told a password where others can read it."""
    NOT_UNDERSTOOD = "not-understood"
    BUSY = "busy"
    """Too many other questions to it are under way."""


class CallFailed(Exception):
    """There is no answer; `why` goes on behind the address of the service."""

    def __init__(self, kind: SiteFailure, why: str) -> None:
        super().__init__(why)
        self.kind, self.why = kind, why


def trusting(ca_file: str | None) -> ssl.SSLContext:
    """What trusts the authorities of a file; None: those of the system. Raises ConfigError where it cannot be used."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        message = f"cannot be used: {error.strerror or type(error).__name__}"
        hint = "name a file of certificates in PEM"
        raise ConfigError([Problem(str(ca_file), REMOTE_CA_KEY, message, hint)]) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class Client:
    """Asks as one user. Safe to use from several threads."""

    def __init__(self, remote: RemoteSettings) -> None:
        """Raises ConfigError where the file of authorities cannot be used."""
        self._login = _login(remote)
        self._tls = trusting(remote.ca_file)
        self.is_current = True

    def replace(self, tls: ssl.SSLContext) -> None:
        """From the next question on, trust whom this one trusts."""
        self._tls, self.is_current = tls, True

    def get(self, address: Address, path: str, seconds: float) -> bytes:
        """The body of an answer 200. Raises CallFailed; in `seconds`, unless it takes longer to look up a name."""
        if self._login is not None and not address.is_safe_for_secrets:
            why = "is no address to send a password to: it is not encrypted; let it advertise https"
            raise CallFailed(SiteFailure.NOT_ENCRYPTED, why)
        slow = CallFailed(SiteFailure.SLOW, f"does not answer within {seconds:g} s")
        watch: _Watch | None = None
        try:
            with socket.create_connection((address.host, address.port), seconds) as raw, _Watch(raw, seconds) as watch:
                connection = HTTPConnection(address.host, address.port)
                connection.sock = raw
                if address.protocol == "https":
                    connection.sock = self._tls.wrap_socket(raw, server_hostname=address.host)
                with connection.sock:
                    body = self._exchange(connection, address.path + path)
            if not watch.has_ended_it:  # else it is the begin of an answer
                return body
            raise slow
        except ssl.SSLCertVerificationError as error:
            why = f"has a certificate that is not trusted: {error.verify_message}"
            raise CallFailed(SiteFailure.CERTIFICATE, why) from error
        except TimeoutError as error:
            raise slow from error
        except (ssl.SSLError, HTTPException, OSError, UnicodeError, ValueError) as error:
            if watch is not None and watch.has_ended_it:
                raise slow from error
            raise _failed(error) from error

    def _exchange(self, connection: HTTPConnection, path: str) -> bytes:
        headers = {"accept": "application/json", "user-agent": "srm-service", "connection": "close"}
        if self._login is not None:
            headers["authorization"] = self._login
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as answer:
            _check(answer)
            body = answer.read(_LARGEST_ANSWER + 1)
        if len(body) > _LARGEST_ANSWER:
            raise CallFailed(SiteFailure.NOT_UNDERSTOOD, f"answers with more than {_LARGEST_ANSWER >> 20} MB")
        return body


class _Watch:
    """Ends a connection when its time is over: timeouts of sockets begin anew with each byte."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._handle = connection.dup()  # a socket that is wrapped for TLS is taken from the object it was
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self.has_ended_it = False

    def _end(self) -> None:
        self.has_ended_it = True
        with suppress(OSError):
            self._handle.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> _Watch:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()
        self._handle.close()


def _login(remote: RemoteSettings) -> str | None:
    if remote.token is not None:
        return f"Bearer {remote.token}"
    if remote.user is None:
        return None
    return f"Basic {base64.b64encode(f'{remote.user}:{remote.password}'.encode()).decode()}"


def _check(answer: HTTPResponse) -> None:
    if answer.status in _REFUSALS:
        raise CallFailed(SiteFailure.LOGIN_REFUSED, f"refuses the login of this service ({answer.status})")
    if answer.status != 200:
        raise CallFailed(SiteFailure.NOT_UNDERSTOOD, f"answers {answer.status}")


def _failed(error: Exception) -> CallFailed:
    if isinstance(error, ssl.SSLError):
        return CallFailed(SiteFailure.NO_ANSWER, f"speaks no TLS that is understood here: {error.reason}")
    if isinstance(error, OSError):
        reason = (error.strerror if error.errno else None) or type(error).__name__
        return CallFailed(SiteFailure.NO_ANSWER, f"does not answer: {reason}")
    return CallFailed(SiteFailure.NOT_UNDERSTOOD, f"does not answer as a service does: {type(error).__name__}")
