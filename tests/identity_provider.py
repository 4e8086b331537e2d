"""A small identity provider: client credentials in, signed tokens out, and the key set that they are checked with; and
the code flow for browsers, in which whoever comes is logged in at once as `person`."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

AUDIENCE = "kafka"
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
    key_id: str = "k1"
    asked_for_keys: int = 0
    is_down: bool = False
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "p1"})
    """Who logs in by a browser: what his ID token says of him, and may say otherwise than is right."""
    codes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Those that count, with what was asked for."""

    @property
    def token_url(self) -> str:
        """Gives tokens."""
        return f"{self.url}/token"

    @property
    def keys_url(self) -> str:
        """Shows the public key."""
        return f"{self.url}/keys"

    def token(self, client: str) -> str:
        """A token for brokers."""
        return self.signed(sub=client, iss="tests")

    def signed(self, header: Mapping[str, object] = {}, /, **claims: object) -> str:
        """A token signed with RS256; a claim or a part of the header that is None is left out."""
        now = int(time.time())
        usual = {"sub": "p1", "aud": AUDIENCE, "iss": self.url, "iat": now, "exp": now + _LIFE_SECONDS}
        parts = {"alg": "RS256", "typ": "JWT", "kid": self.key_id, **header}, {**usual, **claims}
        text = ".".join(encoded(_without_none(part)) for part in parts)
        return f"{text}.{_encoded(self.key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def rotate(self) -> None:
        """From now on another key, and that alone."""
        self.key, self.key_id = rsa.generate_private_key(65537, 2048), secrets.token_hex(4)

    def keys(self) -> Mapping[str, Any]:
        """The key set."""
        numbers = self.key.public_key().public_numbers()
        n, e = (number.to_bytes((number.bit_length() + 7) // 8, "big") for number in (numbers.n, numbers.e))
        key = {"kty": "RSA", "kid": self.key_id, "use": "sig", "alg": "RS256", "n": _encoded(n), "e": _encoded(e)}
        return {"keys": [key]}

    def discovery(self) -> Mapping[str, object]:
        """What it has."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize?kind=person",
            "token_endpoint": self.token_url,
            "jwks_uri": self.keys_url,
            "end_session_endpoint": f"{self.url}/logout",
        }

    def authorize(self, query: Mapping[str, str]) -> str:
        """Where a browser is sent that asks to log in; with a code that counts once."""
        code = secrets.token_urlsafe()
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def exchange(self, form: Mapping[str, str], client: str) -> tuple[int, Mapping[str, object]]:
        """To a code, with all that has to belong to it."""
        asked = self.codes.pop(form["code"], None)
        challenge = _encoded(hashlib.sha256(form["code_verifier"].encode()).digest())
        if asked is None or (asked["client_id"], asked["redirect_uri"]) != (client, form["redirect_uri"]):
            return 400, {"error": "invalid_grant"}
        if asked["code_challenge_method"] != "S256" or asked["code_challenge"] != challenge:
            return 400, {"error": "invalid_grant"}
        token = self.signed(**{"aud": client, "nonce": asked["nonce"], **self.person})
        return 200, {"access_token": "opaque", "token_type": "Bearer", "id_token": token}

    def answer(self, authorization: str, form: Mapping[str, str]) -> tuple[int, Mapping[str, object]]:
        """To a request for a token, by its `Authorization` header."""
        given = base64.b64decode(authorization.removeprefix("Basic ") or b"").decode()
        client, secret = (unquote_plus(part) for part in given.partition(":")[::2])
        if not secret or self.secrets.get(client) != secret:
            self.refused += 1
            return 401, {"error": "invalid_client"}
        if form.get("grant_type") == "authorization_code":
            return self.exchange(form, client)
        self.given += 1
        return 200, {"access_token": self.token(client), "token_type": "Bearer", "expires_in": _LIFE_SECONDS}


@contextmanager
def identity_provider(secrets: Mapping[str, str]) -> Iterator[IdentityProvider]:
    """A running provider that knows these clients."""
    key = rsa.generate_private_key(65537, 2048)
    provider = IdentityProvider("", secrets, key)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._send(*provider.answer(self.headers.get("Authorization", ""), _fields(form.decode())))

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if provider.is_down:
                self._send(503, {})
            elif parts.path == "/authorize":
                self._send(302, {}, provider.authorize(_fields(parts.query)))
            elif parts.path.startswith("/.well-known/"):
                self._send(200, provider.discovery())
            else:
                provider.asked_for_keys += 1
                self._send(200, provider.keys())

        def log_message(self, *_: object) -> None:
            pass

        def _send(self, code: int, body: Mapping[str, object], location: str | None = None) -> None:
            content = json.dumps(body).encode()
            self.send_response(code)
            if location is not None:
                self.send_header("Location", location)
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


def encoded(part: Mapping[str, object]) -> str:
    """Header or claims as they stand in a token."""
    return _encoded(json.dumps(part).encode())


def _without_none(part: Mapping[str, object]) -> Mapping[str, object]:
    return {name: value for name, value in part.items() if value is not None}


def _fields(text: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(text).items()}


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
