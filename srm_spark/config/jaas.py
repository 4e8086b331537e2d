"""Reads `sasl.jaas.config`: one login module, a flag, options."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from srm_spark.errors import SrmError

_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^\s=;"\']+)|([=;]))')
_FLAGS = ("required", "requisite", "sufficient", "optional")


class JaasError(SrmError):
    """The text is no JAAS entry; the message never repeats it, for it holds a password."""


@dataclass(frozen=True)
class JaasEntry:
    """A login module with its options."""

    module: str
    options: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The class without its package."""
        return self.module.rpartition(".")[2]


def parse_jaas(text: str) -> JaasEntry:
    """The one entry of a `sasl.jaas.config`."""
    words = _tokens(text)
    if len(words) < 3 or words[1].lower() not in _FLAGS:
        raise JaasError('expected: <login module class> required <option>="<value>" … ;')
    if words[-1] != ";":
        raise JaasError("the closing `;` is missing")
    rest = words[2:-1]
    options: dict[str, str] = {}
    while rest:
        if len(rest) < 3 or rest[1] != "=" or rest[0] in "=;" or rest[2] in (";", "="):
            raise JaasError(f'option {len(options) + 1} is not of the form name="value"')
        options[rest[0]] = rest[2]
        rest = rest[3:]
    return JaasEntry(words[0], options)


def write_jaas(entry: JaasEntry) -> str:
    """The text of an entry."""
    quoted = {name: re.sub(r'(["\\])', r"\\\1", value) for name, value in entry.options.items()}
    options = "".join(f' {name}="{value}"' for name, value in quoted.items())
    return f"{entry.module} required{options};"


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise JaasError("a quote is not closed")
        double, single, bare, sign = match.groups()
        quoted = double if double is not None else single
        tokens.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else bare or sign)
        at = match.end()
    return tokens
