"""Reads Java's own keystore formats, JKS and JCEKS, as Java's `JavaKeyStore` and `JceKeyStore` write them. No I/O.

Written here because the one library for it is without a release since 2020 and brings a package that must be compiled.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.padding import PKCS7

from srm_spark.errors import SrmError

MAGICS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""First bytes of JKS and of JCEKS."""

_WHITENER = b"Mighty Aphrodite"  # what Java mixes into the digest of every store
_DIGEST = 20
_KEY, _CERTIFICATE, _SECRET = 1, 2, 3
_JKS_PROTECTION = bytes.fromhex("2b060104012a02110101")  # OID 1.3.6.1.4.1.42.2.17.1.1, of a key in a JKS file
_JCE_PROTECTION = bytes.fromhex("2b060104012a021301")  # OID 1.3.6.1.4.1.42.2.19.1, PBEWithMD5AndTripleDES of JCEKS
_REFERENCE = b"\x71"
_BYTE_ARRAY = re.compile(rb"\x75(?:\x72\x00\x02\[B.{8}\x02\x00{2}\x78\x70|\x71.{4})", re.DOTALL)
"""How Java's serialization begins a `byte[]`; its length follows."""
_MAX_ROUNDS = 5_000_000
"""Java's own limit."""


class JksError(SrmError):
    """The file is damaged or the password is wrong; which one the formats do not tell."""


@dataclass(frozen=True)
class JksKey:
    """A private key, still protected, with its certificates."""

    protected: bytes = field(repr=False)
    """`EncryptedPrivateKeyInfo` in DER."""
    chain: tuple[bytes, ...]
    """Certificates in DER, the key's own first."""


@dataclass(frozen=True)
class JksSecret:
    """A secret key, still protected: a `SealedObject` of Java's."""

    parameters: bytes = field(repr=False)
    """Salt and number of rounds, in DER."""
    protected: bytes = field(repr=False)


@dataclass(frozen=True)
class JksStore:
    """What a file holds, by alias; passwords are asked for where they are needed."""

    keys: dict[str, JksKey]
    certificates: dict[str, bytes]
    """In DER."""
    secrets: dict[str, JksSecret]


class _Reader:
    """Java's `DataInputStream`."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        taken = self._content[self.at : self.at + count]
        if len(taken) < count:
            raise JksError("the file ends too early")
        self.at += count
        return taken

    def number(self, size: int = 4) -> int:
        """An unsigned number of `size` bytes."""
        return int.from_bytes(self.take(size), "big")

    def text(self) -> str:
        """A text with its length."""
        return self.take(self.number(2)).decode("utf-8", "replace")

    def certificate(self) -> bytes:
        """A certificate in DER; before it stands its type, which is always X.509."""
        self.text()
        return self.take(self.number())

    def byte_array(self) -> bytes:
        """The next `byte[]` of what Java serialized."""
        begin = _BYTE_ARRAY.search(self._content, self.at)
        if begin is None:
            raise JksError("a secret is none of Java's")
        self.at = begin.end()
        return self.take(self.number())

    def sealed_object(self) -> JksSecret:
        """A serialized `SealedObject`: two byte arrays, then the names of two algorithms; nothing tells its length."""
        sealed = JksSecret(self.byte_array(), self.byte_array())
        for _ in range(2):
            if self.take(1) == _REFERENCE:
                self.take(4)
            else:
                self.text()
        return sealed


def read_jks(content: bytes, password: str | None) -> JksStore:
    """Everything in a JKS or JCEKS file; without a password its digest is not checked, as in Java. Raises JksError."""
    if password is not None:
        mixed = hashlib.sha1(_utf16(password) + _WHITENER + content[:-_DIGEST]).digest()  # noqa: S324 - the format\'s own
        if mixed != content[-_DIGEST:]:
            raise JksError("the digest is another one")
    reader = _Reader(content[:-_DIGEST])
    if reader.take(4) not in MAGICS or reader.number() != 2:
        raise JksError("it is no JKS or JCEKS file of version 2")
    store = JksStore({}, {}, {})
    for _ in range(reader.number()):
        kind, alias = reader.number(), reader.text()
        reader.take(8)  # when it was made
        if kind == _KEY:
            protected = reader.take(reader.number())
            store.keys[alias] = JksKey(protected, tuple(reader.certificate() for _ in range(reader.number())))
        elif kind == _CERTIFICATE:
            store.certificates[alias] = reader.certificate()
        elif kind == _SECRET:
            store.secrets[alias] = reader.sealed_object()
        else:
            raise JksError(f"entry {alias} is of an unknown kind")
    return store


def open_key(key: JksKey, password: str) -> bytes:
    """The private key as PKCS #8 in DER. Raises JksError where the password is wrong."""
    algorithm, protected = _elements(_elements(key.protected)[0])[:2]
    oid, *parameters = _elements(algorithm)
    if oid == _JKS_PROTECTION:
        return _open_jks_key(protected, password)
    if oid == _JCE_PROTECTION:
        return _open_jce(protected, parameters[0], password)
    raise JksError("the key is protected in an unknown way")


def open_secret(secret: JksSecret, password: str) -> bytes:
    """The bytes of a secret key. Raises JksError where the password is wrong."""
    return _Reader(_open_jce(secret.protected, _elements(secret.parameters)[0], password)).byte_array()


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


def _open_jks_key(protected: bytes, password: str) -> bytes:
    """A stream of SHA-1 digests laid over the key: salt, key, check."""
    secret = _utf16(password)
    link, body, check = protected[:_DIGEST], protected[_DIGEST:-_DIGEST], protected[-_DIGEST:]
    stream = b""
    while len(stream) < len(body):
        link = hashlib.sha1(secret + link).digest()  # noqa: S324 - the format\'s own
        stream += link
    key = bytes(one ^ other for one, other in zip(body, stream, strict=False))
    if hashlib.sha1(secret + key).digest() != check:  # noqa: S324 - the format\'s own
        raise JksError("the digest of the key is another one")
    return key


def _open_jce(protected: bytes, parameters: bytes, password: str) -> bytes:
    """PBEWithMD5AndTripleDES of `com.sun.crypto.provider`; `parameters` are salt and number of rounds."""
    salt, rounds = _elements(parameters)
    if int.from_bytes(rounds, "big") > _MAX_ROUNDS:
        raise JksError("it takes more rounds than Java allows")
    halves = [salt[:4], salt[4:]]
    if halves[0] == halves[1]:
        a, b, _, d = halves[0]
        halves[0] = bytes((d, a, b, d))  # what Java's slip of the pen makes of turning the half around
    derived = b""
    for half in halves:
        for _ in range(int.from_bytes(rounds, "big")):
            half = hashlib.md5(half + password.encode("ascii", "replace")).digest()  # noqa: PLW2901, S324 - a chain; the format's own
        derived += half
    decryptor = Cipher(TripleDES(derived[:24]), modes.CBC(derived[24:])).decryptor()
    unpadder = PKCS7(64).unpadder()
    try:
        padded = decryptor.update(protected) + decryptor.finalize()
        return unpadder.update(padded) + unpadder.finalize()
    except ValueError as error:
        raise JksError("the padding is wrong") from error


def _elements(der: bytes) -> list[bytes]:
    """The contents of a row of DER elements, or of those inside the only one."""
    elements = []
    reader = _Reader(der)
    while reader.at < len(der):
        reader.take(1)
        length = reader.number(1)
        elements.append(reader.take(reader.number(length & 0x7F) if length & 0x80 else length))
    return elements
