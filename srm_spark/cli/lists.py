"""`srm-control topics`, `groups` and `reverse-checkpointed-topics`: the lists of SRM, with its grammar and its words.

They lie on the target: no driver has to run, the source may be down, and a driver that runs follows them.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from srm_spark.cli.clients import CLIENTS, ClientOptions, place_of
from srm_spark.cli.interrupts import interrupted_with
from srm_spark.cli.lists_view import (
    View,
    exported,
    imported,
)
from srm_spark.cli.manual import NOT_EVERYTHING, manual
from srm_spark.cli.options import (
    DEFINES,
    DIFFERENT,
    FILE,
    config,
    dry_run,
    output,
    several,
    told,
)
from srm_spark.cli.prefixes import PrefixedCommand
from srm_spark.core.filters import split_list
from srm_spark.core.list_changes import problems_of
from srm_spark.core.lists import Change, ListKind, change_between
from srm_spark.core.wording import escaped
from srm_spark.errors import PatternError
from srm_spark.flow.listing import ListPlace, change_lists, file_rules

_F = TypeVar("_F", bound=Callable[..., Any])


def _list(*names: str, text: str) -> Callable[[_F], _F]:
    return click.option(*names, multiple=True, metavar="LIST", help=text)


LISTS = several(
    config("As for srm-driver; repeatable.", required=False),
    DEFINES,
    CLIENTS,
    click.option("--source", metavar="ALIAS", help="Where records come from."),
    click.option("--target", metavar="ALIAS", help="Where the lists lie."),
    _list("--add", "--add-allowlist", "add", text="Add these names or Java regexes, with commas between them."),
    _list("--remove", "--remove-allowlist", "remove", text="Take these entries off the list."),
    _list("--add-blacklist", "--add-denylist", "add_deny", text="Leave these out, whatever else takes them."),
    _list("--remove-blacklist", "--remove-denylist", "remove_deny", text="Leave these out no more."),
    click.option("--list", "is_list", is_flag=True, help="Print both lists; -o wide: with what each entry matches."),
    click.option("--export", "is_export", is_flag=True, help="Print both lists for --import."),
    click.option("--import", "import_file", type=FILE, help="Make the lists what this file says."),
    click.option("--history", "is_history", is_flag=True, help="Print who changed what, when and why."),
    click.option("--reason", default="", metavar="TEXT", help="Why; it is kept with the change."),
    dry_run("Print what would begin and stop; change nothing."),
    output("text", "wide", "json", former=False),
)


_C = TypeVar("_C", bound=click.Command)


def list_manual(*examples: str) -> Callable[[_C], _C]:
    """What the commands say that change lists."""
    return manual(
        *examples,
        reads="mm2-control.A.internal of the target; with a file, for -o wide and --dry-run, what the source has.",
        writes="a change, as an act to mm2-control.A.internal of the target, which is made where there is none.",
        different=NOT_EVERYTHING,
    )


@dataclass(frozen=True, kw_only=True)
class Asked(ClientOptions):
    """The command line: what is asked of the lists, and how their target is reached."""

    files: Sequence[Path]
    defines: Sequence[str] = field(repr=False)
    """These may hold passwords."""
    source: str | None
    target: str | None
    add: Sequence[str]
    remove: Sequence[str]
    add_deny: Sequence[str]
    remove_deny: Sequence[str]
    is_list: bool
    is_export: bool
    import_file: Path | None
    is_history: bool
    reason: str
    dry_run: bool
    output: str

    @property
    def wanted(self) -> list[Sequence[str]]:
        """The lists of entries."""
        return [one for one in (self.add, self.remove, self.add_deny, self.remove_deny) if one]

    def check(self) -> None:
        """Raises UsageError where it makes no sense as a whole."""
        actions = [bool(self.wanted), self.is_list, self.is_export, self.import_file is not None, self.is_history]
        if sum(actions) != 1:
            written = "several of these" if any(actions) else "nothing to do"
            raise click.UsageError(
                f"{written}: write --add, --remove, --add-blacklist or --remove-blacklist; or --list, --export, "
                "--import FILE or --history"
            )
        changes = bool(self.wanted) or self.import_file is not None
        for is_given, option in ((self.dry_run, "--dry-run"), (bool(self.reason), "--reason")):
            if is_given and not changes:
                raise click.UsageError(f"{option} goes with a change of the lists only")
        check_reason(self.reason)
        if self.output == "wide" and not self.is_list:
            raise click.UsageError("-o wide goes with --list only")
        if self.source is None:
            raise click.UsageError("write --source ALIAS")


def steer(kind: ListKind, asked: Asked) -> None:
    """What such a command does."""
    asked.check()
    wanted = _wanted(asked)
    with told():
        place = _place(asked, kind)
        view = View(kind, place.settings.flow, asked.output, is_dry_run=asked.dry_run, has_file=place.file is not None)
        with place.writer() as lists:
            state = lists.state()
            for remark in lists.remarks():
                click.echo(f"note: {remark}", err=True)
            if asked.is_history:
                view.history(state.acts)
            elif asked.is_export:
                click.echo(exported(kind, place.settings.flow, state.of(kind)))
            elif asked.is_list:
                entries = (*state.of(kind).allow, *state.of(kind).deny)
                view.lists(state, place.file, lambda: place.matches(kind, entries))
            else:
                before = state.of(kind)
                if asked.import_file is not None:
                    wanted = change_between(before, imported(kind, asked.import_file))
                may_count = interrupted_with("the change may count all the same: --list says")
                with nullcontext() if asked.dry_run else may_count, _pattern_told():
                    done = change_lists(
                        place,
                        lists,
                        kind,
                        wanted,
                        before=before,
                        who=who(),
                        why=asked.reason,
                        is_dry_run=asked.dry_run,
                    )
                view.changed(done.decision, done.after, done.effect, done.warnings)
                if done.decision.declined:
                    raise SystemExit(DIFFERENT)


@contextmanager
def _pattern_told() -> Iterator[None]:
    """A pattern that cannot be used is a mistake of the command line."""
    try:
        yield
    except PatternError as error:
        raise click.UsageError(f"{error.pattern}: {error.construct}: {error.rewrite}") from error


def _wanted(asked: Asked) -> Change:
    """What is to change. Raises UsageError with every entry that cannot be used."""
    lists: list[tuple[str, ...]] = []
    problems: list[str] = []
    named = (
        ("--add", asked.add),
        ("--remove", asked.remove),
        ("--add-blacklist", asked.add_deny),
        ("--remove-blacklist", asked.remove_deny),
    )
    for option, texts in named:
        try:
            lists.append(tuple(dict.fromkeys(entry for text in texts for entry in split_list(text))))
            if texts and not lists[-1]:
                problems.append(f"{option}: an empty list")
        except PatternError as error:
            problems.append(f"{option}: {error}")
            lists.append(())
    change = Change(*lists)
    if problems := [*problems, *problems_of(change)]:
        raise click.UsageError("\n".join(problems))
    return change


def _place(asked: Asked, kind: ListKind) -> ListPlace:
    if asked.files and asked.target is None:
        raise click.UsageError("write --target ALIAS")
    found = place_of(asked.files, asked.defines, asked.source or "source", asked.target or "target", asked)
    rules = file_rules(found.loaded, found.settings, kind) if asked.files else None
    flows = found.loaded.settings.flows
    return ListPlace(found.settings, rules, flows, asked.producer, asked.consumer, found.is_enabled)


def check_reason(reason: str) -> None:
    """Raises UsageError for one that cannot be shown in a line of a log."""
    if not reason.isprintable():
        raise click.UsageError(f"--reason {escaped(reason)}: it has characters that cannot be shown")


def who() -> str:
    """Who runs this command, as the machine says: user@host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


@list_manual(
    "srm-control topics --config srm.properties --source A --target B --add 'orders,payments.*' --dry-run",
    "srm-control topics --bootstrap-servers b1.example.com:9092 --source A --add-blacklist payments-test",
)
@click.command(cls=PrefixedCommand)
@LISTS
def topics(**asked: Any) -> None:
    """Says which topics flow, while drivers run: the lists of SRM.

    A topic flows where a pattern of the file or an entry of the allow list matches it, and no exclusion of the file nor
    entry of the deny list does.
    """
    steer(ListKind.TOPICS, Asked(**asked))


@list_manual(
    "srm-control reverse-checkpointed-topics --config srm.properties --source A --target B --add B.orders",
)
@click.command("reverse-checkpointed-topics", cls=PrefixedCommand)
@LISTS
def reverse_checkpointed_topics(**asked: Any) -> None:
    """Says for which remote topics positions of groups go back to the topics that they are copies of.

    With an empty allow list for all; else for those that an entry matches, by the remote name or by the other one;
    never for those that an entry of the deny list matches.
    """
    steer(ListKind.REVERSE, Asked(**asked))
