"""Names of record headers as text in which no byte is lost. Kafka has bytes there, which by habit are UTF-8; those that
are not stand as lone surrogates (PEP 383), so that every name is the same bytes again where it is written."""

from __future__ import annotations

REPLACED = "\N{REPLACEMENT CHARACTER}"
"""What Java's decoders put where bytes are no UTF-8: a name with it may have been other bytes."""


def name_of(raw: bytes) -> str:
    """The name that these bytes are."""
    return raw.decode("utf-8", "surrogateescape")


def raw_name(name: str) -> bytes:
    """The bytes that a name is."""
    return name.encode("utf-8", "surrogateescape")


def is_plain(name: str) -> bool:
    """Whether a name is the same for programs that take it for UTF-8 which ends at its first zero byte."""
    return "\0" not in name and is_text(name)


def is_text(name: str) -> bool:
    """Whether a name is UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in name)
