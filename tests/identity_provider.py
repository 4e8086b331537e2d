"""A small identity provider: client credentials in, signed tokens out, and the key set that brokers check them with."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

AUDIENCE = "kafka"
_KEY_ID = "k1"
_LIFE_SECONDS = 600


@dataclass
class IdentityProvider:
    """Where tokens come from; `refused` counts wrong secrets."""

    url: str
    secrets: Mapping[str, str] = field(repr=False)
    """Client id → secret."""
    key: rsa.RSAPrivateKey = field(repr=False)
    given: int = 0
    refused: int = 0

    @property
    def token_url(self) -> str:
        """Gives tokens."""
        return f"{self.url}/token"

    @property
    def keys_url(self) -> str:
        """Shows the public key."""
        return f"{self.url}/keys"

    def token(self, client: str) -> str:
        """A token signed with RS256."""
        now = int(time.time())
        claims = {"sub": client, "aud": AUDIENCE, "iss": "tests", "iat": now, "exp": now + _LIFE_SECONDS}
        header = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        text = ".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
        return f"{text}.{_encoded(self.key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def keys(self) -> Mapping[str, object]:
        """The key set."""
        numbers = self.key.public_key().public_numbers()
        n, e = (number.to_bytes((number.bit_length() + 7) // 8, "big") for number in (numbers.n, numbers.e))
        key = {"kty": "RSA", "kid": _KEY_ID, "use": "sig", "alg": "RS256", "n": _encoded(n), "e": _encoded(e)}
        return {"keys": [key]}

    def answer(self, authorization: str) -> tuple[int, Mapping[str, object]]:
        """To a request for a token, by its `Authorization` header."""
        given = base64.b64decode(authorization.removeprefix("Basic ") or b"").decode()
        client, _, secret = given.partition(":")
        if not secret or self.secrets.get(client) != secret:
            self.refused += 1
            return 401, {"error": "invalid_client"}
        self.given += 1
        return 200, {"access_token": self.token(client), "token_type": "Bearer", "expires_in": _LIFE_SECONDS}


@contextmanager
def identity_provider(secrets: Mapping[str, str]) -> Iterator[IdentityProvider]:
    """A running provider that knows these clients."""
    key = rsa.generate_private_key(65537, 2048)
    provider = IdentityProvider("", secrets, key)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._send(*provider.answer(self.headers.get("Authorization", "")))

        def do_GET(self) -> None:
            self._send(200, provider.keys())

        def log_message(self, *_: object) -> None:
            pass

        def _send(self, code: int, body: Mapping[str, object]) -> None:
            content = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
