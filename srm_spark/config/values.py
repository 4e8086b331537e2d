"""Turns texts of a configuration into typed values and collects what is wrong with them. Nothing is raised half-way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from srm_spark.config import keys
from srm_spark.config.levels import Layered, Setting
from srm_spark.config.schema import Dialect, Key, ValueKind
from srm_spark.config.secrets import mask
from srm_spark.core.patterns import compile_java
from srm_spark.errors import PatternError, Problem


@dataclass
class Report:
    """Problems and warnings found on the way, each once."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def problem(self, place: str, key: str, message: str, hint: str = "") -> None:
        """Notes something that makes the file unusable."""
        problem = Problem(place, key, message, hint)
        if problem not in self.problems:
            self.problems.append(problem)

    def warn(self, place: str, key: str, message: str) -> None:
        """Notes something that is not honoured, or probably not meant."""
        text = f"{place}: {key}: {message}"
        if text not in self.warnings:
            self.warnings.append(text)


def split_list(text: str) -> list[str]:
    """The entries of a comma-separated list, empty ones included."""
    return [entry.strip() for entry in text.split(",")] if text.strip() else []


class Values:
    """Typed access to the properties of one flow; a value that is wrong is reported and its default taken."""

    def __init__(
        self, props: Layered, dialect: Dialect, report: Report, expand: Callable[[Setting], str], home: str
    ) -> None:
        self._props = props
        self._dialect = dialect
        self._report = report
        self._expand = expand
        self._home = home
        """The place of problems with a key that was not written."""

    def setting(self, name: str) -> Setting | None:
        """Where the value of `name` comes from."""
        return self._props.get(name)

    def is_set(self, name: str) -> bool:
        """Whether the file says anything about `name`."""
        return self._props.get(name) is not None

    def text(self, name: str) -> str:
        """A text; the only allowed ones in their canonical spelling."""
        row, value = keys.find(name), self._raw(name)
        if value is None:
            return row.default_for(self._dialect) or ""
        if not row.allowed:
            return value.strip()
        for choice in row.allowed:
            if value.strip().lower() == choice.lower():
                return choice
        self._refuse(row, value)
        return row.default_for(self._dialect) or ""

    def flag(self, name: str) -> bool:
        """true or false."""
        return self.text(name) == "true"

    def number(self, name: str) -> int:
        """A whole number within the range of its key."""
        number = self.optional_number(name)
        return int(keys.find(name).default_for(self._dialect) or 0) if number is None else number

    def optional_number(self, name: str) -> int | None:
        """A whole number, None where nothing usable is written."""
        row, value = keys.find(name), self._raw(name)
        if value is None:
            return None
        try:
            number = _whole(value)
        except ValueError:
            self._refuse(row, value)
            return None
        too_low = row.low is not None and number < row.low and not (row.off and number < 0)
        if too_low or (row.high is not None and number > row.high):
            self._refuse(row, value)
            return None
        return number

    def names(self, name: str) -> tuple[str, ...]:
        """A list; repeated entries count once, an empty entry is a problem (as in Kafka since 4.2)."""
        row, value = keys.find(name), self._raw(name)
        entries = split_list((row.default_for(self._dialect) or "") if value is None else value)
        setting = self._props.get(name)
        if "" in entries and setting is not None:
            self._report.problem(
                setting.place, setting.key, f"got an empty entry; allowed {row.allows}", "remove the extra comma"
            )
        twins = sorted({entry for entry in entries if entries.count(entry) > 1 and entry})
        if twins and setting is not None:
            twin = self._shown(name, ", ".join(twins))
            self._report.warn(setting.place, setting.key, f"{twin} is listed more than once")
        return tuple(dict.fromkeys(entry for entry in entries if entry))

    def patterns(self, name: str) -> tuple[str, ...]:
        """A list of Java regular expressions, each of which compiles."""
        entries = self.names(name)
        for entry in entries:
            try:
                compile_java([entry])
            except PatternError as error:
                self.refuse(name, f"got {self._shown(name, error.pattern)!r}: {error.construct}", error.rewrite)
        return entries

    def refuse(self, name: str, message: str, hint: str = "") -> None:
        """Reports a problem with `name` where it is written."""
        setting = self._props.get(name)
        place, key = (setting.place, setting.key) if setting else (self._home, name)
        self._report.problem(place, key, message, hint)

    def warn(self, name: str, message: str) -> None:
        """Notes of `name`, where it is written, that it is not honoured, or probably not meant."""
        if (setting := self._props.get(name)) is not None:
            self._report.warn(setting.place, setting.key, message)

    def _raw(self, name: str) -> str | None:
        setting = self._props.get(name)
        return None if setting is None else self._expand(setting)

    def _refuse(self, row: Key, value: str) -> None:
        hint = "" if value.strip() else "give a value or remove the line"
        if row.kind is ValueKind.BOOL and value.strip().lower() in ("yes", "on", "1", "no", "off", "0"):
            hint = f"did you mean {'true' if value.strip().lower() in ('yes', 'on', '1') else 'false'}?"
        self.refuse(row.name, f"got {self._shown(row.name, value)!r}; allowed {row.allows}", hint)

    def _shown(self, name: str, value: str) -> str:
        """What a message may say of a value: what a reference brought may be a secret."""
        setting = self._props.get(name)
        return setting.value if setting is not None and "${" in setting.value else mask(name, value)


def _whole(text: str) -> int:
    """Like Java's parseLong: no underscores, no fractions, ASCII digits."""
    digits = text.strip()
    if not digits.lstrip("+-").isdecimal() or not digits.isascii():
        raise ValueError(digits)
    if len(digits) > 20:
        raise ValueError("longer than any 64-bit number")
    return int(digits)
