"""librdkafka's logins in the words of kafka-python, whose connections carry what librdkafka has no call for."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Mapping
from typing import Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from srm_spark.config.sasl import TOKEN_FUNCTION, TOKEN_OPTIONS
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.client_credentials import KNOWN, credentials_of, tokens_by
from srm_spark.kafka.tokens import Tokens, tokens_of

TRY_MS = 5000
"""So long one try to connect, or to be answered, may take."""
_PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_LARGEST_ANSWER = 100_000_000
_KNOWN = {
    *("sasl.mechanism", "sasl.username", "sasl.password", TOKEN_FUNCTION, TOKEN_OPTIONS),
    *("ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.cipher.suites"),
    *KNOWN,
    *("ssl.key.location", "ssl.key.pem", "ssl.key.password", "ssl.endpoint.identification.algorithm"),
}
"""What a login is made of here; where there is more, it would be another login than librdkafka's."""
_SOCKET = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1))
_BUFFERS = {"send": socket.SO_SNDBUF, "receive": socket.SO_RCVBUF}
"""What is as large as the system has it where nothing, or 0, is said."""
# What goes wrong comes back as an error of the call.
logging.getLogger("kafka").addHandler(logging.NullHandler())
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """The same function for kafka-python, which asks for a token whenever it connects."""

    def __init__(self, tokens: Tokens) -> None:
        super().__init__()
        self._tokens = tokens

    def token(self) -> str:
        """A new one."""
        return str(self._tokens()[0])

    def extensions(self) -> dict[str, str]:
        """None: they come with a token, and kafka-python asks for them apart."""
        return {}


def login_options(options: Mapping[str, Any], role: str, where: str) -> dict[str, Any]:
    """Options of kafka-python's connections. Raises ProtocolUnavailable for a login that they cannot make."""
    if unknown := sorted(name for name in options if name.startswith(("sasl.", "ssl.")) and name not in _KNOWN):
        raise ProtocolUnavailable(f"{where}: kafka-python knows nothing of {', '.join(unknown)}")
    protocol = options.get("security.protocol", "plaintext").upper()
    buffers = [(kind, int(options.get(f"socket.{name}.buffer.bytes", 0))) for name, kind in _BUFFERS.items()]
    options_there: dict[str, Any] = {
        "bootstrap_servers": options["bootstrap.servers"].split(","),
        "client_id": role,
        "security_protocol": protocol,
        "receive_message_max_bytes": _LARGEST_ANSWER,
        "request_timeout_ms": TRY_MS,
        "client_dns_lookup": options.get("client.dns.lookup", "use_all_dns_ips"),
        "socket_options": [*_SOCKET, *((socket.SOL_SOCKET, kind, size) for kind, size in buffers if size)],
    }
    if protocol.startswith("SASL"):
        mechanism = options.get("sasl.mechanism", "GSSAPI")
        tokens, credentials = tokens_of(options), credentials_of(options)
        if tokens is not None:
            options_there["sasl_oauth_token_provider"] = TokenProvider(tokens)
        elif credentials is not None and mechanism == "OAUTHBEARER":
            options_there["sasl_oauth_token_provider"] = tokens_by(credentials)
        elif mechanism not in _PASSWORDS:
            raise ProtocolUnavailable(f"{where}: a login by {mechanism} is not made by kafka-python")
        options_there |= {
            "sasl_mechanism": mechanism,
            "sasl_plain_username": options.get("sasl.username"),
            "sasl_plain_password": options.get("sasl.password"),
        }
    if protocol.endswith("SSL"):
        options_there["ssl_context"] = _tls(options)
    return options_there


def _tls(options: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("ssl.ca.location"), cadata=options.get("ssl.ca.pem"))
    context.check_hostname = options.get("ssl.endpoint.identification.algorithm", "https") != "none"
    if "ssl.cipher.suites" in options:
        context.set_ciphers(options["ssl.cipher.suites"])
    password = options.get("ssl.key.password")
    if "ssl.key.location" in options:
        context.load_cert_chain(options["ssl.certificate.location"], options["ssl.key.location"], password)
    elif "ssl.key.pem" in options:
        _load_texts(context, options["ssl.certificate.pem"] + options["ssl.key.pem"], password)
    return context


def _load_texts(context: ssl.SSLContext, pem: str, password: str | None) -> None:
    """Python's ssl reads keys from files only: one that nobody else may read, for a moment."""
    handle, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(pem)
        context.load_cert_chain(path, password=password)
    finally:
        os.unlink(path)
