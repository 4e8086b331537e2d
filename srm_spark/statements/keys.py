"""Keys of statements: Ed25519, in a PEM file or in a hardware module, and what checks a signature.

A key is named by the SHA-256 of its public half in DER (SubjectPublicKeyInfo), which `openssl pkey -pubin -outform DER
| sha256sum` prints, too.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from srm_spark.core.envelope import Envelope, pae, read_envelope, read_statement
from srm_spark.errors import SigningFailed, StatementRefused
from srm_spark.statements.hsm import PKCS11, HardwareKey

_MAKE = "make one with srm-control statement key --out DIR"


class SigningKey(Protocol):
    """What signs."""

    @property
    def public(self) -> Ed25519PublicKey:
        """Its other half."""

    def sign(self, content: bytes) -> bytes:
        """64 bytes. Raises SigningFailed."""


class _FileKey:
    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @property
    def public(self) -> Ed25519PublicKey:
        return self._key.public_key()

    def sign(self, content: bytes) -> bytes:
        return self._key.sign(content)


def open_key(where: str, password: str | None = None) -> SigningKey:
    """The key of a PEM file (PKCS #8), or of a `pkcs11:` URI, whose PIN is the password.

    Raises SigningFailed with what to do.
    """
    if where.startswith(PKCS11):
        return HardwareKey(where, password)
    try:
        key = load_pem_private_key(Path(where).read_bytes(), None if password is None else password.encode())
    except OSError as error:
        raise SigningFailed(f"the key of statements, {where}, cannot be read: {error.strerror}; {_MAKE}") from None
    except TypeError:
        given = "has no password, and one is given" if password is not None else "has a password, and none is given"
        raise SigningFailed(f"the key of statements, {where}, {given}: see statement.key.password") from None
    except (ValueError, UnsupportedAlgorithm):
        why = "it is none in PEM, or its password is another one"
        raise SigningFailed(f"the key of statements, {where}, cannot be used: {why}; {_MAKE}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningFailed(f"the key of statements, {where}, is no Ed25519 key; {_MAKE}")
    return _FileKey(key)


def make_keys(private: Path, public: Path, password: str | None = None) -> str:
    """Write a new pair, the private half for its owner's eyes only; the name of the key.

    Raises SigningFailed where one of the files is there, and leaves both as they are.
    """
    key = Ed25519PrivateKey.generate()
    locked: KeySerializationEncryption = NoEncryption()
    if password is not None:
        locked = BestAvailableEncryption(password.encode())
    if public.exists():
        raise SigningFailed(f"{public} is there: a key is never written over; name another directory")
    _write_new(private, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked), 0o600)
    _write_new(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644)
    return key_id(key.public_key())


def _write_new(path: Path, content: bytes, mode: int) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
    except FileExistsError:
        raise SigningFailed(f"{path} is there: a key is never written over; name another directory") from None
    except OSError as error:
        raise SigningFailed(f"{path} cannot be written: {error.strerror}") from None


def key_id(public: Ed25519PublicKey) -> str:
    """The name of a key."""
    return hashlib.sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def sealed(payload: bytes, key: SigningKey) -> Envelope:
    """The payload with the key's signature. Raises SigningFailed."""
    return Envelope(payload, key_id(key.public), key.sign(pae(payload)))


def read_public_key(path: Path) -> Ed25519PublicKey:
    """The public half in a PEM file. Raises StatementRefused: without it nothing can be believed."""
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise StatementRefused(f"the public key {path} cannot be read: {error.strerror}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise StatementRefused(f"{path} is no public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise StatementRefused(f"the public key {path} is no Ed25519 key")
    return key


def check_statement(path: Path, key: Ed25519PublicKey) -> tuple[Envelope, dict[str, Any]]:
    """A statement's file, once the key is known to have signed it; and what it says.

    Raises StatementRefused for everything else, whatever it is.
    """
    try:
        envelope = read_envelope(path.read_bytes().decode())
    except OSError as error:
        raise StatementRefused(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StatementRefused(f"{path}: it is no signed statement") from None
    except StatementRefused as error:
        raise StatementRefused(f"{path}: {error}") from None
    ours = key_id(key)
    if envelope.key_id != ours:
        raise StatementRefused(f"{path}: key {envelope.key_id} has signed it, not key {ours}")
    try:
        key.verify(envelope.signature, pae(envelope.payload))
    except InvalidSignature:
        raise StatementRefused(f"{path}: the signature is not that of key {ours} for what it says") from None
    try:
        return envelope, read_statement(envelope.payload)
    except StatementRefused as error:
        raise StatementRefused(f"{path}: {error}") from None
