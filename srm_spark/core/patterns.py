"""Java regular expressions, as configurations of MirrorMaker 2 write them, turned into Python ones.

What both languages spell alike passes through, what differs is rewritten, the rest raises `PatternError`: a filter must
never silently select other names than it does in MirrorMaker 2.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from srm_spark.errors import PatternError

HAS_ATOMIC = sys.version_info >= (3, 11)
"""Whether this Python knows possessive quantifiers and atomic groups."""

# Contents of a character class; \p{Alpha} and its kind are ASCII in Java, too.
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
_CATEGORY = re.compile(r"(?:Is)?(C[cfos]?|L[ulmto]?|M[cen]?|N[dlo]?|P[cdfieso]?|S[ckmo]?|Z[lps]?)")
_SPACES = {"h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000", "v": r"\n\x0b\f\r\x85\u2028\u2029"}
_ANCHORS = {"b": r"\b", "B": r"\B", "A": r"\A", "z": r"\Z", "Z": r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)"}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
# Python's dot stops at \n only, Java's at every line terminator.
LINE_ENDS = frozenset("\n\r\x85\u2028\u2029")
_DOT = r"[^\n\r\x85\u2028\u2029]"
_LINE_BREAK = r"(?:\r\n|[\n-\r\x85\u2028\u2029])"
_CODE_POINT = re.compile(
    r"0([0-3][0-7]{2}|[0-7]{1,2})|x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}|u([0-9A-Fa-f]{4})|c(.)", re.DOTALL
)
_FLAGS = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_NAMED_GROUP = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_REPETITION = re.compile(r"\{\d+(?:,\d*)?\}")


@dataclass(frozen=True)
class JavaPatterns:
    """A list of Java patterns as a filter uses it: any of them, against the whole of a name."""

    parts: tuple[re.Pattern[str], ...]
    """One per pattern of the list, in its order; only for explanations."""
    joined: re.Pattern[str] | None
    """All of them at once; None for an empty list, which matches nothing."""

    def matches(self, name: str) -> bool:
        """Whether any pattern matches the whole name."""
        return self.joined is not None and self.joined.fullmatch(name) is not None


def compile_java(patterns: Sequence[str]) -> JavaPatterns:
    """Compile a list of Java patterns the way MirrorMaker 2 does, joined with `|` (`MirrorUtils.compilePattern`)."""
    parts: list[str] = []
    state = _State()
    for pattern in patterns:
        text, state = _Translator(pattern, state).translate()
        parts.append(text)
    compiled = tuple(_compile(pattern, text) for pattern, text in zip(patterns, parts, strict=True))
    return JavaPatterns(compiled, _compile("|".join(patterns), "|".join(parts)) if parts else None)


@lru_cache(maxsize=10_000)
def compile_entry(pattern: str) -> JavaPatterns:
    """Compile one pattern that stands for itself; long lists have the same ones at each change."""
    return compile_java([pattern])


def _compile(pattern: str, translated: str) -> re.Pattern[str]:
    # ASCII, because \w, \d, \s and case folding are so in Java unless flags (U, u) say otherwise.
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(pattern, str(error), "write it in simpler terms, or list the names") from error


@dataclass(frozen=True)
class _State:
    """What one pattern of a list leaves to the next: in Java an inline flag holds to the end of the joined text."""

    ignore_case: bool = False
    dot_all: bool = False
    groups: int = 0


@dataclass
class _Level:
    """An open group: the flags to return to, and how many flag groups were opened within it."""

    outer_case: bool
    outer_dot_all: bool
    own_case: bool
    begins: int = 0
    """Where in the pattern it was opened."""
    opened: int = 0


class _Translator:
    """One pass over one pattern; every method takes one construct off the text and appends its translation."""

    def __init__(self, pattern: str, state: _State) -> None:
        self.pattern = pattern
        self.at = self.begins = 0
        """Where it is read on, and where the construct begins that is read."""
        self.out: list[str] = []
        self.case, self.dot_all = state.ignore_case, state.dot_all
        self.earlier_groups, self.groups = state.groups, 0
        self.levels = [_Level(self.case, self.dot_all, self.case)]
        self.repeatable = False
        """Whether the construct just translated can take a quantifier."""

    def translate(self) -> tuple[str, _State]:
        """The Python pattern, self-contained, and the state for the next one of the list."""
        self.out.append("(?i:" if self.case else "(?:")
        while self.at < len(self.pattern):
            self.begins = self.at
            self._construct(self._take())
        if len(self.levels) > 1:
            self.begins = self.levels[-1].begins
            self._fail("an opening ( is never closed", "close it, or write \\( for the character")
        self.out.append(")" * (self.levels[0].opened + 1))
        return "".join(self.out), _State(self.case, self.dot_all, self.earlier_groups + self.groups)

    def _construct(self, char: str) -> None:
        match char:
            case "\\":
                self._escape()
            case "[":
                self._emit(self._character_class())
            case "(":
                self._open()
            case ")":
                self._close()
            case "|":
                self._alternative()
            case "*" | "+" | "?" | "{":
                self._quantifier(char)
            case ".":
                self._emit("(?s:.)" if self.dot_all else _DOT)
            case "^" | "$":
                self._emit(char)
            case _:
                self._emit(re.escape(char))

    def _emit(self, text: str, repeatable: bool = True) -> None:
        self.out.append(text)
        self.repeatable = repeatable

    def _take(self) -> str:
        """The next character; an empty string at the end."""
        char = self.pattern[self.at : self.at + 1]
        self.at += len(char)
        return char

    def _take_match(self, expected: re.Pattern[str]) -> re.Match[str] | None:
        match = expected.match(self.pattern, self.at)
        self.at = match.end() if match else self.at
        return match

    def _sees(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def _fail(self, construct: str, rewrite: str) -> NoReturn:
        raise PatternError(self.pattern, construct, rewrite, self.begins + 1)

    # Groups, alternatives and flags

    def _open(self) -> None:
        outer_case, outer_dot_all = self.case, self.dot_all
        if self._sees("?") and not self._sees("?<") and (flags := self._take_match(_FLAGS)):
            self._set_flags(flags[1], flags[2] or "")
            if flags[3] == ")":
                self._reopen(outer_case)
                return
            head = f"(?{'' if self.case else '-'}i:"
        else:
            head = self._group_head()
        self.levels.append(_Level(outer_case, outer_dot_all, self.case, self.begins))
        self._emit(head, repeatable=False)

    def _group_head(self) -> str:
        if not self._sees("?"):
            self.groups += 1
            return "("
        if name := self._take_match(_NAMED_GROUP):
            self.groups += 1
            return f"(?P<{name[1]}>"
        for head in ("?=", "?!", "?<=", "?<!", "?>"):
            if self._sees(head):
                if head == "?>":
                    self._need_atomic("atomic group (?>…)", "write (?:…)")
                self.at += len(head)
                return f"({head}"
        return self._fail(f"unknown group ({self.pattern[self.at : self.at + 3]}…", "write (?:…), or (?<name>…)")

    def _set_flags(self, on: str, off: str) -> None:
        for flag in on + off:
            if flag not in "is":
                self._fail(f"flag {flag!r} has no equivalent", "leave it out: names have no lines and few alphabets")
        self.case = (self.case or "i" in on) and "i" not in off
        self.dot_all = (self.dot_all or "s" in on) and "s" not in off

    def _reopen(self, before: bool) -> None:
        """Let a changed flag hold for the rest of its group, which Python can only say with a group."""
        self.repeatable = False
        if self.case != before:
            self._emit(f"(?{'' if self.case else '-'}i:", repeatable=False)
            self.levels[-1].opened += 1

    def _alternative(self) -> None:
        level = self.levels[-1]
        self._emit(")" * level.opened + "|", repeatable=False)
        level.opened = 0
        self._reopen(level.own_case)

    def _close(self) -> None:
        if len(self.levels) == 1:
            self._fail("a closing ) has no opening one", "remove it, or write \\) for the character")
        level = self.levels.pop()
        self.case, self.dot_all = level.outer_case, level.outer_dot_all
        self._emit(")" * (level.opened + 1))

    # Quantifiers

    def _quantifier(self, char: str) -> None:
        text = char
        if char == "{":
            self.at -= 1
            match = self._take_match(_REPETITION)
            if not match:
                self._fail("{ starts no repetition", "write a{2} as aa (a list is split at commas), or \\{")
            text = match[0]
        if not self.repeatable:
            self._fail(f"{text} has nothing to repeat", f"write .{text} for any characters, or \\{char}")
        if self._sees("+"):
            self._need_atomic(f"possessive quantifier {text}+", f"write {text}")
        if self._sees("+") or self._sees("?"):
            text += self._take()
        self._emit(text, repeatable=False)

    def _need_atomic(self, construct: str, rewrite: str) -> None:
        if not HAS_ATOMIC:
            self._fail(f"{construct} needs Python 3.11", rewrite)

    # Escapes

    def _escape(self) -> None:
        char = self._take()
        if char == "Q":
            if quoted := self._quoted():
                self._emit(re.escape(quoted))
        elif char in ("b", "B", "A", "z", "Z"):
            if self._sees("{"):
                self._fail(f"\\{char}{{ is no anchor", f"write \\{char}")
            self._emit(_ANCHORS[char])
        elif char == "R":
            self._emit(_LINE_BREAK)
        elif char in ("H", "V"):
            self._emit(f"[^{_SPACES[char.lower()]}]")
        elif char == "P":
            self._emit(f"[^{self._property()}]")
        elif char == "k":
            self._named_reference()
        elif char in "123456789" and char:
            self._reference(char)
        else:
            content = self._class_escape(char)
            self._emit(f"[{content}]" if char in ("h", "v", "p") else content)

    def _quoted(self) -> str:
        end = self.pattern.find("\\E", self.at)
        if end < 0:  # in Java the rest of the list would be quoted, too
            self._fail("\\Q is never ended", "end the quotation with \\E")
        quoted = self.pattern[self.at : end]
        self.at = end + 2
        return quoted

    def _reference(self, first: str) -> None:
        if self.earlier_groups:
            self._fail(f"\\{first} counts the groups of the whole list", "move this pattern to the front of the list")
        number = int(first)
        # As in Java: \11 is group 11 if there is one, else group 1 and the character 1.
        while (digit := self.pattern[self.at : self.at + 1]).isdecimal() and number * 10 + int(digit) <= self.groups:
            number = number * 10 + int(self._take())
        if number > self.groups:
            self._fail(f"\\{number} refers to a group that is not there", f"add the group, or write \\x3{number}")
        self._emit(f"(?:\\{number})")

    def _named_reference(self) -> None:
        name = self._take_match(re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>"))
        if not name:
            self._fail("\\k without a name", "write \\k<name>")
        self._emit(f"(?P={name[1]})")

    def _class_escape(self, char: str) -> str:
        """Translate an escape that means the same inside and outside a character class."""
        if char in ("d", "D", "w", "W", "s", "S"):
            return f"\\{char}"
        if char in _SPACES:
            return _SPACES[char]
        if char == "p":
            return self._property()
        return re.escape(self._escaped_character(char))

    def _escaped_character(self, char: str) -> str:
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in ("0", "x", "u", "c"):
            return self._code_point(char)
        if not char:
            self._fail("ends in a backslash", "write \\\\ for the character")
        if char.isascii() and char.isalnum():
            self._fail(f"\\{char} is not supported here", "name the characters it stands for")
        return char

    def _code_point(self, kind: str) -> str:
        self.at -= 1
        match = self._take_match(_CODE_POINT)
        if not match:
            self._fail(f"\\{kind} without a number", "write \\x41 or \\u0041")
        octal, hex2, hexes, hex4, control = match.groups()
        if control:
            return chr(ord(control) ^ 64)
        number = int(octal, 8) if octal else int(hex2 or hexes or hex4, 16)
        if number > sys.maxunicode:
            self._fail(f"\\{match[0]} is no character", "write at most \\x{10FFFF}")
        return chr(number)

    def _property(self) -> str:
        name = self._take()
        if name == "{":
            end = self.pattern.find("}", self.at)
            name = self.pattern[self.at : end] if end >= 0 else ""
            self.at = end + 1
        if name in _POSIX:
            return _POSIX[name]
        if self.case and name in ("Lu", "Ll", "Lt"):
            self._fail(f"\\p{{{name}}} where case is ignored", "write \\p{L}")
        if category := _CATEGORY.fullmatch(name):
            return _category(category[1])
        return self._fail(f"\\p{{{name}}} is not supported", "write the characters, such as [a-z], or \\p{L}")

    # Character classes

    def _character_class(self) -> str:
        parts = ["[^"] if self._sees("^") else ["["]
        self.at += len(parts[0]) - 1
        while not self._sees("]") or len(parts) == 1:  # a ] right at the start is a character
            single, text = self._member()
            if single and self._sees("-") and not self._sees("-]"):
                self.at += 1
                single, end = self._member()
                if not single:
                    self._fail("a range ends in a class", "write the - first: [-…]")
                text = f"{text}-{end}"
            parts.append(text)
        self.at += 1
        return "".join([*parts, "]"])

    def _member(self) -> tuple[bool, str]:
        """One member of a class, and whether it is a single character."""
        char = self._take()
        if not char:
            self._fail("an opening [ is never closed", "close it, or write \\[ for the character")
        if char == "[":
            self._fail("a class within a class", "write one class: [a-cx-z] for [a-c[x-z]]; \\[ for the character")
        if char == "&" and self._sees("&"):
            self._fail("an intersection && of classes", "write a look-ahead: (?![aeiou])[a-z] for [a-z&&[^aeiou]]")
        if char != "\\":
            return True, re.escape(char)
        char = self._take()
        if char == "Q":
            quoted = self._quoted()
            return len(quoted) == 1, re.escape(quoted)
        if char in ("P", "H", "V"):
            self._fail(f"\\{char} within a class", f"write [^\\{char.lower()}…], or (?:[…]|\\{char}…)")
        return char not in (*"dDwWsSp", *_SPACES), self._class_escape(char)


@lru_cache(maxsize=8)
def _category(name: str) -> str:
    """Contents of a character class with all characters of a Unicode category; about 0.2 s, once."""
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)).startswith(name):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    edges = ((re.escape(chr(first)), re.escape(chr(last))) for first, last in ranges)
    return "".join(first if first == last else f"{first}-{last}" for first, last in edges)
