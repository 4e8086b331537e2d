"""How counts and lists of names are written for people."""

from __future__ import annotations

from collections.abc import Collection

SHOWN = 10
"""Names in one line; the others are counted."""


def count(number: int, noun: str) -> str:
    """`1 topic`, `2 topics`: for nouns that take an s."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def one_line(error: Exception) -> str:
    """What an exception of somebody else says, in one line."""
    return " ".join(str(error).split())


def some(names: Collection[str], shown: int = SHOWN) -> str:
    """The first names in order, and how many more there are."""
    first = ", ".join(sorted(names)[:shown])
    return f"{first} and {len(names) - shown} more" if len(names) > shown else first


def escaped(text: str) -> str:
    """What somebody else has written, for a line of a log or a terminal: control characters escaped."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
