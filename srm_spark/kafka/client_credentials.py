"""Tokens of an identity provider for kafka-python, by OAuth's client credentials: what librdkafka calls `oidc`."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from kafka.net.sasl.oauth import AbstractTokenProvider

from srm_spark.errors import ProtocolUnavailable

PREFIX = "sasl.oauthbearer."
KNOWN = frozenset(f"{PREFIX}{name}" for name in ("client.id", "client.secret", "method", "scope", "token.endpoint.url"))
"""What such a login is made of; where there is more, as for a signed assertion, it is another one."""
_ASK_SECONDS = 10.0
_USED = 0.8
"""Part of its life after which a token is not handed out any more, as librdkafka has it."""


@dataclass(frozen=True)
class Credentials:
    """Who asks, and where."""

    url: str
    client: str
    secret: str = field(repr=False)
    scope: str | None = None

    def request(self) -> Request:
        """For a token (RFC 6749, section 4.4)."""
        form = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        known = base64.b64encode(f"{self.client}:{self.secret}".encode()).decode()
        headers = {"Authorization": f"Basic {known}", "Accept": "application/json"}
        return Request(self.url, urlencode(form).encode(), headers)  # noqa: S310  the user's own file says where


def credentials_of(options: Mapping[str, Any]) -> Credentials | None:
    """Those of rendered options; None where the login is another one."""
    if options.get(f"{PREFIX}method") != "oidc":
        return None
    url, client = options.get(f"{PREFIX}token.endpoint.url"), options.get(f"{PREFIX}client.id")
    secret, scope = options.get(f"{PREFIX}client.secret"), options.get(f"{PREFIX}scope")
    return None if url is None or client is None or secret is None else Credentials(url, client, secret, scope)


def ask(credentials: Credentials) -> Mapping[str, Any]:
    """What the provider answers. Raises ProtocolUnavailable where it gives no token."""
    what = f"{credentials.url} gives {credentials.client} no token"
    try:
        with urlopen(credentials.request(), timeout=_ASK_SECONDS) as answer:  # noqa: S310
            document = json.load(answer)
    except HTTPError as error:
        raise ProtocolUnavailable(f"{what}: HTTP {error.code}") from error
    except (URLError, OSError, ValueError) as error:
        raise ProtocolUnavailable(f"{what}: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("access_token"), str):
        raise ProtocolUnavailable(f"{what}: there is none in its answer")
    return document


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """One token for all connections of a process, and a new one before it ends."""

    def __init__(
        self,
        credentials: Credentials,
        ask: Callable[[Credentials], Mapping[str, Any]] = ask,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._credentials = credentials
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._token, self._until = "", 0.0

    def token(self) -> str:
        """The token. Raises ProtocolUnavailable."""
        with self._lock:
            now = self._clock()
            if now >= self._until:
                answer = self._ask(self._credentials)
                self._token = answer["access_token"]
                self._until = now + _USED * _life(answer, now)
            return self._token

    def extensions(self) -> dict[str, str]:
        """None."""
        return {}


def _life(answer: Mapping[str, Any], now: float) -> float:
    """Seconds: what the provider says, or the token itself; 0 where nobody does, so it is used once."""
    try:
        return float(answer["expires_in"])
    except (KeyError, TypeError, ValueError):
        pass
    try:
        content = answer["access_token"].split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
        return max(0.0, float(claims["exp"]) - now)
    except (LookupError, TypeError, ValueError):
        return 0.0


_lock = threading.Lock()
_kept: dict[Credentials, ClientCredentials] = {}


def tokens_by(credentials: Credentials) -> ClientCredentials:
    """The provider of this process for these credentials."""
    with _lock:
        return _kept.setdefault(credentials, ClientCredentials(credentials))
