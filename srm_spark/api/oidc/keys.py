"""The keys of a provider, which it changes from time to time, and tokens that are checked by them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from srm_spark.api.oidc.errors import ProviderSilent, TokenRefused

_log = logging.getLogger(__name__)
_FRESH_SECONDS = 300.0
"""As long, a key that the provider took back may still count."""
_OLDEST_SECONDS = 3600.0
"""As long, keys count of a provider that does not answer."""
_PAUSE_SECONDS = 10.0
"""Tokens with made-up key ids ask the provider no more often than that."""
_LEEWAY_SECONDS = 30
_ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By type of key: nothing that a public key could be the secret of, and never none."""
_TYPES = frozenset({None, "jwt", "at+jwt", "application/at+jwt"})
_REQUIRED = ["iss", "sub", "aud", "exp", "iat"]


@dataclass(frozen=True)
class _Key:
    id: str | None
    key: Any
    algorithms: tuple[str, ...]


class Keys:
    """Safe to use from several threads."""

    def __init__(self, fetch: Callable[[], Mapping[str, Any]], monotonic: Callable[[], float] = time.monotonic) -> None:
        """`fetch` asks for the key set; raises ProviderSilent and TokenRefused."""
        self._fetch, self._monotonic = fetch, monotonic
        self._lock = threading.Lock()
        self._keys: tuple[_Key, ...] = ()
        self._read_at: float | None = None
        self._tried_at: float | None = None

    def claims(self, token: str, issuer: str, audience: str) -> Mapping[str, Any]:
        """What a token says that is signed by the provider, of this issuer and for this audience, and valid now.

        Raises TokenRefused, and ProviderSilent where its keys are not known.
        """
        try:
            header = jwt.get_unverified_header(token)
            if not isinstance(kind := header.get("typ"), str | None) or (kind and kind.lower()) not in _TYPES:
                raise TokenRefused("is a token of another kind")
            key = self._key(header.get("kid"))
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=list(key.algorithms),
                issuer=issuer,
                audience=audience,
                leeway=_LEEWAY_SECONDS,
                options={"require": _REQUIRED, "enforce_minimum_key_length": True},
            )
        except jwt.PyJWTError as error:
            raise TokenRefused(_reason(error)) from error
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise TokenRefused("is no token") from error
        if not isinstance(claims["sub"], str) or not claims["sub"].strip() or not claims["sub"].isprintable():
            raise TokenRefused("names nobody")
        return claims

    def _key(self, key_id: object) -> _Key:
        found = self._find(key_id)
        if (found is None or not self._is_younger(_FRESH_SECONDS)) and self._may_try():
            # Whose key is there does not wait for who asks for newer ones.
            if self._lock.acquire(blocking=found is None):
                try:
                    if self._may_try():
                        self._read()
                finally:
                    self._lock.release()
            found = self._find(key_id)
        if not self._is_younger(_OLDEST_SECONDS):
            raise ProviderSilent("the keys of the provider are not known")
        if found is None:
            raise TokenRefused("is signed by no key of the provider")
        return found

    def _find(self, key_id: object) -> _Key | None:
        if key_id is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((one for one in self._keys if one.id == key_id), None)

    def _is_younger(self, seconds: float) -> bool:
        return self._read_at is not None and self._monotonic() - self._read_at <= seconds

    def _may_try(self) -> bool:
        return self._tried_at is None or self._monotonic() - self._tried_at >= _PAUSE_SECONDS

    def _read(self) -> None:
        self._tried_at = self._monotonic()
        try:
            document = self._fetch()
        except (ProviderSilent, TokenRefused) as error:
            _log.warning("keys cannot be read, those of before count for an hour: %s", error)
            return
        listed = document.get("keys")
        found = [_key_of(one) for one in listed] if isinstance(listed, list) else []
        self._keys, self._read_at = tuple(one for one in found if one is not None), self._monotonic()


def _key_of(document: object) -> _Key | None:
    """A public key that signs; None for what is none, or is for something else."""
    if not isinstance(document, dict) or document.get("use", "sig") != "sig":
        return None
    allowed = _ALGORITHMS.get(str(document.get("kty")), ())
    if (said := document.get("alg")) is not None:
        allowed = tuple(one for one in allowed if one == said)
    key_id = document.get("kid")
    if not allowed or not isinstance(key_id, str | None) or "d" in document:
        return None
    try:
        return _Key(key_id, jwt.PyJWK(document).key, allowed)
    except (jwt.PyJWTError, TypeError, ValueError):
        return None


def _reason(error: jwt.PyJWTError) -> str:
    for kind, text in (
        (jwt.ExpiredSignatureError, "has expired"),
        (jwt.ImmatureSignatureError, "is not valid yet"),
        (jwt.InvalidAudienceError, "is for another audience"),
        (jwt.InvalidIssuerError, "is of another issuer"),
        (jwt.MissingRequiredClaimError, "lacks a claim"),
        (jwt.InvalidSignatureError, "has a wrong signature"),
        (jwt.InvalidAlgorithmError, "is signed by an algorithm that is not allowed"),
        (jwt.InvalidKeyError, "is signed by a key that is not allowed"),
    ):
        if isinstance(error, kind):
            return text
    return "is no token"
