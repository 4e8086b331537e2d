"""A key that never leaves its hardware module: Ed25519 by PKCS #11, named by a URI as RFC 7512 writes it.

```
pkcs11:token=operations;object=statements?module-path=/usr/lib/softhsm/libsofthsm2.so
```
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from srm_spark.errors import SigningFailed

PKCS11 = "pkcs11:"
_EXAMPLE = "pkcs11:token=TOKEN;object=KEY?module-path=/usr/lib/module.so"
_POINT_BYTES = 32
_LOGIN = threading.Lock()
"""A login is the whole process's: the end of one session is that of all others, in the middle of what they sign."""


class KeyPlace(NamedTuple):
    """What of a URI counts."""

    module: str
    token: str
    label: str


def key_place(uri: str) -> KeyPlace:
    """Where a key is. Raises SigningFailed for a URI that does not say it, or says what it must not."""
    path, _, query = uri.removeprefix(PKCS11).partition("?")
    parts = [part.partition("=") for part in (*path.split(";"), *query.split("&")) if part]
    found = {name: unquote(value) for name, _, value in parts}
    if "pin-value" in found or "pin-source" in found:
        raise SigningFailed("the URI of a key holds no PIN, for it is shown: write statement.key.password instead")
    if unknown := sorted(found.keys() - {"module-path", "token", "object"}):
        raise SigningFailed(f"{uri}: {', '.join(unknown)} says nothing here; write it as {_EXAMPLE}")
    if missing := [name for name in ("token", "object", "module-path") if not found.get(name)]:
        raise SigningFailed(f"{uri}: {', '.join(missing)} is missing; write it as {_EXAMPLE}")
    return KeyPlace(found["module-path"], found["token"], found["object"])


class HardwareKey:
    """Asks its module for each signature; no session stays open between two."""

    def __init__(self, uri: str, pin: str | None) -> None:
        """Raises SigningFailed where the module, the token or the key is not there, or the PIN is another one."""
        self._place = key_place(uri)
        self._pin = pin
        with self._session() as (session, pkcs11):
            self._half(session, pkcs11, "PRIVATE_KEY")  # it is seen with the right PIN alone
            half = self._half(session, pkcs11, "PUBLIC_KEY")
            # The point is an OCTET STRING in DER, or what is in it, as the module likes.
            self.public = Ed25519PublicKey.from_public_bytes(half[pkcs11.Attribute.EC_POINT][-_POINT_BYTES:])

    def sign(self, content: bytes) -> bytes:
        """64 bytes. Raises SigningFailed."""
        with self._session() as (session, pkcs11):
            key = self._half(session, pkcs11, "PRIVATE_KEY")
            return bytes(key.sign(content, mechanism=pkcs11.Mechanism.EDDSA))

    def _half(self, session: Any, pkcs11: Any, which: str) -> Any:
        kind, curve = pkcs11.ObjectClass[which], pkcs11.KeyType.EC_EDWARDS
        return session.get_key(object_class=kind, key_type=curve, label=self._place.label)

    @contextmanager
    def _session(self) -> Iterator[tuple[Any, Any]]:
        with _LOGIN:
            yield from self._logged_in()

    def _logged_in(self) -> Iterator[tuple[Any, Any]]:
        try:
            import pkcs11  # noqa: PLC0415 - an extra
        except ImportError:
            text = "a key in a hardware module needs pip install 'srm-spark[pkcs11]'"
            raise SigningFailed(text) from None
        place = self._place
        try:
            token = pkcs11.lib(place.module).get_token(token_label=place.token)
            with token.open(user_pin=self._pin) as session:
                yield session, pkcs11
        except (pkcs11.PKCS11Error, RuntimeError, OSError, ValueError) as error:
            where = f"key {place.label} of token {place.token} by {place.module}"
            said = f"{type(error).__name__} {error}".strip()
            raise SigningFailed(f"{where} cannot be used: {said}") from None
