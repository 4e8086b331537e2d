"""Opens Java's keystores and truststores and turns them into PEM texts, in memory: nothing is ever written to disk."""

from __future__ import annotations

import base64
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from srm_spark.config.jks import MAGICS, JksError, open_key, open_secret, read_jks
from srm_spark.errors import SrmError

_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_MAX_BYTES = 16 * 1024 * 1024


class StoreError(SrmError):
    """A store cannot be used; names the file and the reason, never a password."""


@dataclass(frozen=True)
class Store:
    """What a store holds, as PEM."""

    certificates: tuple[str, ...] = ()
    """Trusted certificates; of a keystore the chain, the client's own first."""
    key: str = field(default="", repr=False)
    """The private key, unencrypted."""


def read_bytes(path: str) -> bytes:
    """The content of a store file."""
    try:
        if Path(path).stat().st_size > _MAX_BYTES:
            raise StoreError(f"{path} is larger than any keystore")
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise StoreError(f"there is no file {path} on this machine") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no path"
        raise StoreError(f"{path} cannot be read: {reason}") from error


def is_pem(content: bytes) -> bool:
    """Whether a file holds PEM blocks."""
    return b"-----BEGIN " in content


def open_store(path: str, password: str | None, key_password: str | None = None) -> Store:
    """The keys and certificates of a JKS, JCEKS or PKCS12 file; which it is the first bytes say, as in Java."""
    content = read_bytes(path)
    if content[:4] in MAGICS:
        return _open_jks(path, content, password, key_password)
    return _open_pkcs12(path, content, password)


def open_pem(text: str, key_password: str | None) -> Store:
    """The private key of a PEM text, and its certificates in their order."""
    blocks = [(match[1], match[0] + "\n") for match in _PEM_BLOCK.finditer(text)]
    keys = [block for label, block in blocks if label.endswith("PRIVATE KEY")]
    if not keys:
        raise StoreError("no block -----BEGIN … PRIVATE KEY----- was found")
    is_encrypted = "ENCRYPTED" in keys[0]
    if is_encrypted and not key_password:
        raise StoreError("the private key is encrypted and ssl.key.password is missing")
    try:
        key = load_pem_private_key(keys[0].encode(), (key_password or "").encode() if is_encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        what = "ssl.key.password is wrong or the key is damaged" if is_encrypted else "the key is damaged"
        raise StoreError(f"the private key cannot be opened: {what}") from error
    return Store(tuple(block for label, block in blocks if label == "CERTIFICATE"), _key_pem(key))


def end_of_certificate(pem: bytes) -> float:
    """When the first certificate of a PEM text ends, in seconds since the epoch. Raises StoreError without one."""
    try:
        return x509.load_pem_x509_certificates(pem)[0].not_valid_after_utc.timestamp()
    except ValueError as error:
        raise StoreError("no certificate was found") from error


def _open_pkcs12(path: str, content: bytes, password: str | None) -> Store:
    try:
        opened = load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        raise StoreError(_cannot_open(path, "PKCS12", password)) from error
    own = [opened.cert.certificate] if opened.cert is not None else []
    others = [additional.certificate for additional in opened.additional_certs]
    key = "" if opened.key is None else _key_pem(opened.key)
    return Store(tuple(_pem(certificate) for certificate in (*own, *others)), key)


def _cannot_open(path: str, kind: str, password: str | None) -> str:
    if password is None:
        return f"{path} cannot be opened as {kind}: the password is missing"
    return f"{path} cannot be opened as {kind}: the password is wrong or the file is damaged"


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: PrivateKeyTypes) -> str:
    """PKCS #8, the only format that Java reads, without encryption."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _der(certificate: bytes) -> str:
    return _pem(x509.load_der_x509_certificate(certificate))


def _open_jks(path: str, content: bytes, password: str | None, key_password: str | None) -> Store:
    try:
        opened = read_jks(content, password)
        for entry in opened.keys.values():
            key = load_der_private_key(open_key(entry, key_password or password or ""), None)
            return Store(tuple(map(_der, entry.chain)), _key_pem(key))
        return Store(tuple(map(_der, opened.certificates.values())))
    except (JksError, ValueError, IndexError) as error:
        raise StoreError(_cannot_open(path, "JKS", password)) from error


def secret_of(path: str, alias: str, password: str) -> str:
    """The secret that a JCEKS file keeps under `alias`, as text."""
    content = read_bytes(path)
    try:
        secrets = read_jks(content, password).secrets
        secret = secrets.get(alias, secrets.get(alias.lower()))  # keytool writes aliases in small letters
        if secret is None:
            raise StoreError(f"{path} keeps no secret called {alias}")
        return open_secret(secret, password).decode()
    except (JksError, ValueError, IndexError) as error:
        raise StoreError(_cannot_open(path, "JCEKS", password)) from error


def tidy_pem(text: str) -> str:
    """PEM blocks with the line breaks that OpenSSL insists on; a `.properties` file often has them in one line."""
    blocks = []
    for label, body in _PEM_BLOCK.findall(text):
        packed = "".join(body.split())
        try:
            base64.b64decode(packed, validate=True)
        except ValueError as error:
            raise StoreError(f"the {label} block is not base64") from error
        lines = "\n".join(textwrap.wrap(packed, 64))
        blocks.append(f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n")
    if not blocks:
        raise StoreError("no block -----BEGIN … -----END … was found")
    return "".join(blocks)
