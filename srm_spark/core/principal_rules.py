r"""Principals of one cluster as those of another: the grammar of Kafka's `ssl.principal.mapping.rules` (KIP-371). Pure.

Rules stand in a list that commas separate: `RULE:pattern/replacement/`, then `L` or `U` for small or capital letters; a
slash within is written `\/`. The first rule whose pattern matches the whole name decides; `DEFAULT` keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from srm_spark.core.patterns import compile_java
from srm_spark.errors import PatternError

_PART = r"((?:\\.|[^\\/])*)"
_RULE = re.compile(rf"RULE:{_PART}/{_PART}/([LU]?)\s*(?=,|\Z)", re.DOTALL)
_KEPT = re.compile(r"DEFAULT\s*(?=,|\Z)")
_REFERENCE = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)


class RuleError(ValueError):
    """A list of rules cannot be read."""

    def __init__(self, position: int, message: str) -> None:
        """`position` is that of the first character that cannot be read, from 1 on."""
        super().__init__(f"character {position}: {message}")


class PrincipalRule(NamedTuple):
    """One of them."""

    pattern: re.Pattern[str] | None
    """None for `DEFAULT`."""
    replacement: str = ""
    letters: str = ""
    """`L`, `U` or nothing."""

    def apply(self, name: str) -> str | None:
        """The other cluster's name; None where the rule is about others."""
        if self.pattern is None:
            return name
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        other = _REFERENCE.sub(lambda one: _referred(found, one), self.replacement)
        return {"L": other.lower(), "U": other.upper()}.get(self.letters, other)


@dataclass(frozen=True)
class PrincipalRules:
    """All of them, in their order."""

    rules: tuple[PrincipalRule, ...] = (PrincipalRule(None),)

    def apply(self, principal: str) -> str | None:
        """`User:ann` → as the other cluster knows her; None where no rule matches, or what it gives is nobody's name.

        Everybody (`User:*`), and what is no user, is the same everywhere; no rule makes somebody everybody.
        """
        kind, _, name = principal.partition(":")
        if kind != "User" or name == "*":
            return principal
        others = (rule.apply(name) for rule in self.rules)
        other = next((one for one in others if one is not None), None)
        return f"{kind}:{other}" if other not in (None, "", "*") else None


AS_THEY_ARE = PrincipalRules()
"""Both clusters call everybody the same."""


def read_rules(text: str) -> PrincipalRules:
    """Read a list; an empty one is `DEFAULT`. Raises RuleError."""
    return PrincipalRules(tuple(_rules(text)) or AS_THEY_ARE.rules)


def _rules(text: str) -> Iterator[PrincipalRule]:
    at, is_more = _begin(text, 0), False
    while at < len(text) or is_more:
        rule = _RULE.match(text, at) or _KEPT.match(text, at)
        if rule is None:
            raise RuleError(at + 1, "allowed DEFAULT, or RULE:pattern/replacement/ with L, U or nothing behind it")
        yield _rule(rule) if rule.re is _RULE else PrincipalRule(None)
        is_more = rule.end() < len(text)  # a comma: a rule has to follow
        at = _begin(text, rule.end() + 1)


def _begin(text: str, at: int) -> int:
    """Behind the spaces."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _rule(found: re.Match[str]) -> PrincipalRule:
    pattern, replacement, letters = found.groups()
    try:
        (compiled,) = compile_java([pattern]).parts
    except PatternError as error:
        raise RuleError(found.start(1) + 1, f"{error.construct}; {error.rewrite}") from error
    return PrincipalRule(compiled, replacement, letters)


def _referred(found: re.Match[str], reference: re.Match[str]) -> str:
    literal, digits = reference.groups()
    if literal is not None:
        return str(literal)
    for length in range(len(digits), 0, -1):  # as in Java: as many digits as there is a group for
        if int(digits[:length]) <= found.re.groups:
            return (found[int(digits[:length])] or "") + digits[length:]
    return reference[0]  # as Kafka: no reference, so it stands for itself
