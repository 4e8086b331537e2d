"""How the lists are printed: SRM's words, tables for people, JSON for programs; and the file of `--export`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from srm_spark.cli.options import print_json
from srm_spark.core.list_changes import Decision, FileRules, problems_of
from srm_spark.core.listed_filter import RULES
from srm_spark.core.lists import Act, Change, ListKind, Lists, ListState, in_brackets
from srm_spark.core.model import Flow
from srm_spark.core.moments import time_of
from srm_spark.core.wording import count, escaped, some
from srm_spark.errors import SourceUnavailable
from srm_spark.flow.list_effects import Effect, Size

_VERSION = 1
_WIDE = 240
"""Characters of a table where there is no window to ask."""
_DO = {ListKind.TOPICS: "flow", ListKind.GROUPS: "be taken", ListKind.REVERSE: "go back"}
Matches = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class View:
    """One command's output."""

    kind: ListKind
    flow: Flow
    output: str
    is_dry_run: bool
    has_file: bool

    def lists(self, state: ListState, file: FileRules | None, ask: Callable[[], Matches]) -> None:
        """Both lists; `ask` says what each entry matches."""
        lists = state.of(self.kind)
        if self.output == "text":
            allow, deny = (map(escaped, entries) for entries in (lists.allow, lists.deny))
            click.echo("\n".join(["Current whitelist:", *allow, "Current blacklist:", *deny, "Done."]))
            return
        matches, unknown = self._matches(ask)
        if self.output == "json":
            print_json(
                {
                    "flow": str(self.flow),
                    "list": self.kind.value,
                    "allow": [self._entry(state, entry, matches, is_deny=False) for entry in lists.allow],
                    "deny": [self._entry(state, entry, matches, is_deny=True) for entry in lists.deny],
                    "file": None if file is None or self.kind is ListKind.REVERSE else _file(file),
                    "rule": RULES[self.kind],
                    "matches_unknown": unknown,
                }
            )
            return
        table = Table("list", "entry", "added", "by", "reason", "matches now", box=None)
        for name, entries, is_deny in (("allow", lists.allow, False), ("deny", lists.deny, True)):
            for entry in entries:
                found = self._entry(state, entry, matches, is_deny=is_deny)
                seen = "?" if matches is None else some(matches[entry]) or "nothing"
                cells = (escaped(str(found[key] or "")) for key in ("entry", "at", "who", "why"))
                table.add_row(name, *cells, seen)
        if table.rows:
            Console(width=None if sys.stdout.isatty() else _WIDE).print(table, markup=False)
        else:
            click.echo(f"both lists of {self.kind.value} of {self.flow} are empty", err=True)
        if unknown is not None:
            click.echo(f"what entries match is not known: {unknown}", err=True)

    def history(self, acts: Sequence[Act]) -> None:
        """Who changed what, the oldest first."""
        mine = [act for act in acts if act.kind is self.kind]
        if self.output == "json":
            print_json([{"at": time_of(a.at), "who": a.who, "why": a.why, **_change(a.change)} for a in mine])
            return
        for act in mine:
            click.echo(f"{time_of(act.at)} {escaped(act.who)} {act.change}{in_brackets(act.why)}")
        if not mine:
            click.echo(f"nobody has changed the lists of {self.kind.value} of {self.flow}", err=True)

    def changed(self, decision: Decision, after: Lists, effect: Effect | None, warnings: Sequence[str]) -> None:
        """What was done, or would be."""
        remarks = [*decision.remarks, *warnings]
        if self.output == "json":
            print_json(
                {
                    "flow": str(self.flow),
                    "list": self.kind.value,
                    "is_changed": bool(decision.change) and not self.is_dry_run,
                    "change": _change(decision.change),
                    "remarks": remarks,
                    "declined": decision.declined,
                    "allow": after.allow,
                    "deny": after.deny,
                    "effect": None if effect is None else asdict(effect),
                }
            )
            return
        for remark in remarks:
            click.echo(f"note: {remark}", err=True)
        for declined in decision.declined:
            click.echo(f"not done: {declined}", err=True)
        if self.is_dry_run:
            self._would(decision, effect)
            return
        if not decision.change:
            click.echo("nothing was changed", err=True)
        if not decision.declined:
            click.echo("Done.")

    def _would(self, decision: Decision, effect: Effect | None) -> None:
        click.echo(f"would change: {decision.change}" if decision.change else "nothing would change")
        if effect is None:
            click.echo("what would begin and stop is not known without --config", err=True)
            return
        if effect.unknown is not None:
            click.echo(f"what would begin and stop is not known: {effect.unknown}", err=True)
            return
        for word, sizes in (("begins", effect.begins), ("stops", effect.stops)):
            for size in sizes:
                click.echo(f"{word} to {_DO[self.kind]}: {_sized(size)}")
        if not (effect.begins or effect.stops):
            click.echo("nothing begins and nothing stops")
        elif effect.no_bytes is not None:
            click.echo(f"bytes are unknown: {effect.no_bytes}", err=True)

    def _matches(self, ask: Callable[[], Matches]) -> tuple[Matches | None, str | None]:
        if not self.has_file:
            return None, "without --config the source is not known"
        try:
            return ask(), None
        except SourceUnavailable as error:
            return None, str(error)

    def _entry(self, state: ListState, entry: str, matches: Matches | None, *, is_deny: bool) -> dict[str, object]:
        """An entry with who added it; `matches` is null where that is unknown."""
        act = state.origin(self.kind, entry, is_deny=is_deny)
        return {
            "entry": entry,
            "at": None if act is None else time_of(act.at),
            "who": None if act is None else act.who,
            "why": None if act is None else act.why,
            "matches": None if matches is None else matches[entry],
        }


def exported(kind: ListKind, flow: Flow, lists: Lists) -> str:
    """The file of `--export`."""
    document = {"v": _VERSION, "flow": str(flow), "list": kind.value, "allow": lists.allow, "deny": lists.deny}
    return json.dumps(document, indent=2, ensure_ascii=False)


def imported(kind: ListKind, path: Path) -> Lists:
    """What `exported` wrote. Raises ClickException with everything that is wrong with it."""
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise click.ClickException(f"{path}: cannot be read: {error}") from error
    problems = _problems(kind, document)
    if problems:
        raise click.ClickException("\n".join(f"{path}: {problem}" for problem in problems))
    return Lists(*(tuple(dict.fromkeys(document[name])) for name in ("allow", "deny")))


def _problems(kind: ListKind, document: Any) -> list[str]:
    if not isinstance(document, dict):
        return ["got no object; --export prints what is meant"]
    problems = []
    if document.get("v") != _VERSION:
        problems.append(f"v: got {document.get('v')!r}; allowed {_VERSION}")
    if document.get("list") != kind.value:
        problems.append(f"list: got {document.get('list')!r}; this command takes lists of {kind.value}")
    lists = {}
    for name in ("allow", "deny"):
        found = document.get(name)
        if isinstance(found, list) and all(isinstance(entry, str) and entry for entry in found):
            lists[name] = tuple(found)
        else:
            problems.append(f"{name}: got no list of texts")
    change = Change(lists.get("allow", ()), (), lists.get("deny", ()))
    return [*problems, *problems_of(change, ("allow", "", "deny", ""))]


def _sized(size: Size) -> str:
    if size.partitions is None:
        return size.name
    parts = [size.name, count(size.partitions, "partition")]
    if size.records is not None:
        parts.append(f"{count(size.records, 'record')} to copy")
        parts.append("bytes unknown" if size.bytes is None else f"{size.bytes} bytes in all")
    return ", ".join(parts)


def _change(change: Change) -> dict[str, object]:
    return {"add": change.add, "remove": change.remove, "add_deny": change.add_deny, "remove_deny": change.remove_deny}


def _file(file: FileRules) -> dict[str, object]:
    return {
        "include": file.takes.include,
        "include_place": file.include_place,
        "exclude": file.takes.exclude,
        "exclude_place": file.exclude_place,
    }
