"""Reads `.properties` and YAML files into entries: a key, its value and the place it was written at (`file:line`).

Later files win over earlier ones, `-D` overrides over all; what lost is kept for `explain`. Nothing is interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import javaproperties
import yaml
from javaproperties.reading import KeyValue

from srm_spark.config import strimzi
from srm_spark.config.secrets import mask
from srm_spark.errors import Problem

YAML_SUFFIXES = (".yaml", ".yml", ".json")
OVERRIDE = "-D"

_MAX_BYTES = 16 * 1024 * 1024
"""A configuration is small; more is the wrong file."""
_MAX_ENTRIES = 100_000
"""Aliases in YAML can describe more entries than memory holds in a few lines."""
_MAX_DEPTH = 50
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MEANT = "tnrfu\\ :=#!\r\n"
"""What may follow a backslash; in front of anything else the format drops it."""


@dataclass(frozen=True)
class Entry:
    """One key as written."""

    key: str
    value: str = field(repr=False)
    place: str
    """`file:line`, or `-D` for an override."""
    is_resource: bool = False
    """It was read from a resource of Kubernetes, several of which describe one flow."""

    @property
    def shown(self) -> str:
        """The value with secrets masked."""
        return mask(self.key, self.value)


@dataclass(frozen=True)
class Sources:
    """All entries of all files, merged."""

    entries: Mapping[str, Entry]
    """The entry that counts, by key."""
    lost: tuple[Entry, ...]
    """Entries that a later one of the same key replaced."""
    files: tuple[str, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]

    @property
    def name(self) -> str:
        """The files in one word, for problems that belong to no line."""
        return ",".join(self.files) or "(no file)"

    def place_of(self, *keys: str) -> str:
        """The place of the first of `keys` that was written, else the files."""
        return next((self.entries[key].place for key in keys if key in self.entries), self.name)


def read_sources(paths: Sequence[Path], overrides: Mapping[str, str], *, keeps_secrets: bool = False) -> Sources:
    """Reads and merges `paths` in order, then the overrides.

    `keeps_secrets`: what Secrets hold that a resource names becomes `${secrets:NAME:KEY}`, which nobody resolves here.
    """
    problems: list[Problem] = []
    warnings: list[str] = []
    entries: dict[str, Entry] = {}
    lost: list[Entry] = []
    for path in paths:
        seen: dict[str, Entry] = {}
        for entry in _read_file(path, problems, warnings, keeps_secrets=keeps_secrets):
            if (twin := seen.get(entry.key)) is not None and twin.value != entry.value:
                warnings.append(f"{entry.place}: {entry.key}: written before at {twin.place}; this later one counts")
            seen[entry.key] = entry
            _check_address(entries.get(entry.key), entry, problems)
            _merge(entries, lost, entry)
    for key, value in overrides.items():
        _merge(entries, lost, Entry(key.strip(), value, OVERRIDE))
    return Sources(entries, tuple(lost), tuple(str(path) for path in paths), tuple(problems), tuple(warnings))


def _check_address(former: Entry | None, entry: Entry, problems: list[Problem]) -> None:
    """Resources that do not agree where a cluster is: with the aliases of one swapped, the source would be written."""
    if former is None or not (former.is_resource and entry.is_resource) or not entry.key.endswith(".bootstrap.servers"):
        return
    if _servers(former.value) != _servers(entry.value):
        message = f"got {entry.value}, and {former.value} at {former.place}: two resources, one alias, two clusters"
        problems.append(Problem(entry.place, entry.key, message, "correct the aliases, or the address, of one of them"))


def _servers(text: str) -> set[str]:
    return {server.strip() for server in text.split(",")}


def _merge(entries: dict[str, Entry], lost: list[Entry], entry: Entry) -> None:
    if (former := entries.get(entry.key)) is not None:
        lost.append(former)
    entries[entry.key] = entry


def _read_file(path: Path, problems: list[Problem], warnings: list[str], *, keeps_secrets: bool) -> list[Entry]:
    """The entries of one file; whatever is wrong with it becomes a problem."""
    try:
        size = path.stat().st_size
        if size > _MAX_BYTES:
            problems.append(Problem(str(path), "", f"{size} bytes; a configuration has at most {_MAX_BYTES}"))
            return []
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        where = "" if path.is_absolute() else f"; looked in {Path.cwd()}"
        problems.append(Problem(str(path), "", f"there is no such file{where}"))
        return []
    except OSError as error:
        problems.append(Problem(str(path), "", f"cannot be read: {error.strerror or error}"))
        return []
    except UnicodeDecodeError as error:
        problems.append(Problem(str(path), "", f"is not UTF-8: byte {error.start}", "save the file as UTF-8"))
        return []
    if path.suffix.lower() in YAML_SUFFIXES:
        return list(_read_yaml(text, _YamlWalk(str(path), problems, warnings, keeps_secrets=keeps_secrets), problems))
    return list(_read_properties(str(path), text, problems, warnings))


def _read_properties(name: str, text: str, problems: list[Problem], warnings: list[str]) -> Iterator[Entry]:
    line = 1
    try:
        for item in javaproperties.parse(text):
            if isinstance(item, KeyValue) and item.key:
                warnings.extend(f"{name}:{line}: {item.key}: {trap}" for trap in _traps(item))
                yield Entry(item.key, item.value, f"{name}:{line}")
            line += item.source.count("\n") + item.source.replace("\r\n", "\n").count("\r")
    except javaproperties.InvalidUEscapeError as error:
        problems.append(
            Problem(f"{name}:{line}", "(escape)", f"got {error.escape}; allowed \\u and four hexadecimal digits")
        )


def _traps(item: KeyValue) -> Iterator[str]:
    """What Java's rules make of a line that its writer meant otherwise."""
    dropped = next((match[0] for match in _ESCAPED.finditer(item.source) if match[1] not in _MEANT), "")
    if dropped:
        yield f"the backslash of {dropped} is dropped, as in every .properties file; write \\{dropped} to keep it"
    if item.value.startswith("->") or item.key.endswith("->"):
        yield "a blank ends the key; write A->B without blanks"


def _read_yaml(text: str, walk: _YamlWalk, problems: list[Problem]) -> Iterable[Entry]:
    name = walk.name
    try:
        roots = [root for root in yaml.compose_all(text, Loader=yaml.SafeLoader) if root is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{name}:{mark.line + 1}" if mark else name
        problems.append(Problem(place, "(yaml)", f"{error.problem or error.context or 'cannot be parsed'}"))
        return []
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        problems.append(Problem(name, "(yaml)", f"cannot be parsed: {str(error) or type(error).__name__}".strip()))
        return []
    for root in roots:
        walk.document(root)
    return walk.entries


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _YamlWalk:
    """Flattens a YAML tree: nested keys are joined by dots, lists by commas."""

    def __init__(self, name: str, problems: list[Problem], warnings: list[str], *, keeps_secrets: bool) -> None:
        self.name = name
        self._problems = problems
        self._warnings = warnings
        self.entries: list[Entry] = []
        self._resources = strimzi.Resources(self._add, self._flatten, self._warn, keeps_secrets=keeps_secrets)

    def document(self, root: yaml.Node) -> None:
        """Adds all leaves of a document, or the keys that a resource of Kubernetes stands for."""
        if not isinstance(root, yaml.MappingNode):
            self._problem(root, "", "got no mapping; allowed `key: value` at the top")
        elif strimzi.is_resource(root):
            before = len(self.entries)
            self._resources.read(root)
            self.entries[before:] = [replace(entry, is_resource=True) for entry in self.entries[before:]]
        else:
            self._mapping("", root, 0)

    def _flatten(self, prefix: str, node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            self._mapping(prefix, node, 0)

    def _warn(self, node: yaml.Node, key: str, message: str) -> None:
        self._warnings.append(f"{self.name}:{_line(node)}: {key}: {message}")

    def _problem(self, node: yaml.Node, key: str, message: str, hint: str = "") -> None:
        self._problems.append(Problem(f"{self.name}:{_line(node)}", key or "(yaml)", message, hint))

    def _mapping(self, prefix: str, node: yaml.MappingNode, depth: int) -> None:
        if depth > _MAX_DEPTH:
            self._problem(node, prefix, f"nested deeper than {_MAX_DEPTH}, or a YAML alias that contains itself")
            return
        pairs: list[tuple[yaml.Node, yaml.Node]] = list(node.value)
        merges = [value for key, value in pairs if key.tag == "tag:yaml.org,2002:merge"]
        for merged in merges:
            for part in merged.value if isinstance(merged, yaml.SequenceNode) else [merged]:
                if isinstance(part, yaml.MappingNode):
                    self._mapping(prefix, part, depth + 1)
        for key, value in pairs:
            if len(self.entries) > _MAX_ENTRIES:
                return
            if key.tag != "tag:yaml.org,2002:merge":
                self._pair(prefix, key, value, depth)

    def _pair(self, prefix: str, key: yaml.Node, value: yaml.Node, depth: int) -> None:
        if not isinstance(key, yaml.ScalarNode) or not key.value:
            self._problem(key, prefix, "got a key that is no text; allowed a name such as `topics`")
            return
        name = f"{prefix}.{key.value}" if prefix else str(key.value)
        if isinstance(value, yaml.MappingNode):
            self._mapping(name, value, depth + 1)
        elif isinstance(value, yaml.SequenceNode):
            self._sequence(name, key, value)
        else:
            self._add(name, key, "" if value.tag == "tag:yaml.org,2002:null" else str(value.value))

    def _sequence(self, name: str, key: yaml.Node, value: yaml.SequenceNode) -> None:
        items: list[yaml.Node] = list(value.value)
        if bad := next((item for item in items if not isinstance(item, yaml.ScalarNode)), None):
            self._problem(bad, name, "got a list within a list; allowed a list of texts")
            return
        if bad := next((item for item in items if "," in str(item.value)), None):
            self._problem(bad, name, "got an item with a comma; lists are split at commas", "write it as two items")
            return
        self._add(name, key, ",".join(str(item.value) for item in items))

    def _add(self, name: str, key: yaml.Node, value: str) -> None:
        self.entries.append(Entry(name, value, f"{self.name}:{_line(key)}"))
