"""A signed statement as a file: an in-toto Statement in a DSSE envelope, in one line of JSON.

The signature is over the payload and its type (`pae`), as github.com/secure-systems-lab/dsse says. A file is read in
the one way in which it was written: no byte of it may be another, though a signature does not cover all of them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from srm_spark.errors import StatementRefused

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"


class Predicate(Enum):
    """What a statement tells of."""

    VERIFICATION = "urn:srm-spark:verification:v1"
    MOVE = "urn:srm-spark:move:v1"


@dataclass(frozen=True)
class Subject:
    """What a statement is about: a stretch of a log, or what a move did."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Envelope:
    """A payload with its signature."""

    payload: bytes
    key_id: str
    signature: bytes

    @property
    def sha256(self) -> str:
        """Of the payload, by which people name it."""
        return hashlib.sha256(self.payload).hexdigest()

    def text(self) -> str:
        """The file."""
        signature = {"keyid": self.key_id, "sig": _base64(self.signature)}
        return _compact({"payload": _base64(self.payload), "payloadType": PAYLOAD_TYPE, "signatures": [signature]})


def in_toto(about: Predicate, subjects: Iterable[Subject], predicate: Mapping[str, object]) -> bytes:
    """The payload: a Statement, version 1 (github.com/in-toto/attestation)."""
    named = [{"name": one.name, "digest": {"sha256": one.sha256}} for one in subjects]
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": named,
        "predicateType": about.value,
        "predicate": dict(predicate),
    }
    return _compact(statement).rstrip("\n").encode()


def digest_of(found: Mapping[str, object]) -> str:
    """The SHA-256 of plain values, in the one JSON that they have here."""
    return hashlib.sha256(_compact(dict(found)).encode()).hexdigest()


def pae(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """What is signed: DSSE's pre-authentication encoding, which tells type and payload apart."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def read_envelope(text: str) -> Envelope:
    """A file. Raises StatementRefused where it is not what `Envelope.text` writes, byte by byte."""
    try:
        document = json.loads(text)
        (signed,) = document["signatures"]
        envelope = Envelope(
            base64.b64decode(document["payload"], validate=True),
            str(signed["keyid"]),
            base64.b64decode(signed["sig"], validate=True),
        )
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise StatementRefused(f"it is no signed statement ({type(error).__name__})") from None
    if envelope.text() != text:
        raise StatementRefused(
            "it is not as it was written: something in it was changed, or was written by another tool"
        )
    return envelope


def read_statement(payload: bytes) -> dict[str, Any]:
    """What a payload says whose signature is known to be right. Raises StatementRefused for what is none of ours."""
    try:
        statement: dict[str, Any] = json.loads(payload)
        kind, about = statement["_type"], Predicate(statement["predicateType"])
        predicate = statement["predicate"]
    except (ValueError, KeyError, TypeError) as error:
        raise StatementRefused(
            f"it is no statement that this version knows ({type(error).__name__}: {error})"
        ) from None
    if kind != STATEMENT_TYPE or not isinstance(predicate, dict):
        raise StatementRefused(f"it is no statement that this version knows: {kind}, {about.value}")
    return statement


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _compact(document: object) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n"
