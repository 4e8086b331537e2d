"""`srm-control offsets` and `srm-control groups`: where consumer groups stand on both sides of a flow."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem
from rich.console import Console
from rich.table import Table

from srm_spark.cli.clients import CLIENTS, ClientOptions, place_of
from srm_spark.cli.later import Later
from srm_spark.cli.lists import LISTS, Asked, list_manual, steer
from srm_spark.cli.manual import manual, overview
from srm_spark.cli.options import (
    CONFIG,
    DEFINES,
    ERROR,
    FILE,
    GROUP,
    OUTPUT,
    SOURCE,
    TARGET,
    config,
    flow_of,
    output,
    refuse_untaken,
    told,
)
from srm_spark.cli.prefixes import PrefixedCommand, PrefixedGroup
from srm_spark.core.filters import NameFilter, split_list
from srm_spark.core.lists import ListKind
from srm_spark.core.wording import count
from srm_spark.flow.groups.report import GroupReport, GroupRow, report_checkpoints, report_groups

EXPORT = "export"
_SHOWN = 5
"""Names of groups in one line."""
_BELOW_OFFSETS = {
    "list": ("positions", "list_"),
    "rebuild": ("rebuild", "rebuild"),
    "rewind": ("shifts", "rewind"),
    "set": ("shifts", "set_"),
    "skip": ("shifts", "skip"),
    "translate": ("translate", "translate"),
}
"""Beside `--export`."""


class _Offsets(click.Group):
    """`offsets --export …` is a command of its own, without a name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and ctx.resilient_parsing:  # a shell asks what there is
            return super().parse_args(ctx, args)
        first = args[0] if args else ""
        command = self.commands.get(first)
        if command is not None:
            in_front = [name for name, value in ctx.find_root().params.items() if value]
            refuse_untaken(f"offsets {first}", {each.name for each in command.params}, in_front)
        is_named = command is not None or first in ctx.help_option_names
        return super().parse_args(ctx, args if is_named else [EXPORT, *args])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Beside the names of commands the options of the one without a name."""
        items = super().shell_complete(ctx, incomplete)
        known = {item.value for item in items}
        return [*items, *(i for i in self.commands[EXPORT].shell_complete(ctx, incomplete) if i.value not in known)]


@overview(
    "srm-control offsets --export --config srm.properties --source A --target B > offsets.csv",
    "srm-control offsets list --config srm.properties --flow 'A->B'",
)
@click.group(cls=_Offsets, commands=Later(_BELOW_OFFSETS), options_metavar="[--export …]")
def offsets() -> None:
    """Where readers go on on the target: consumer groups, and offsets that are kept outside of Kafka.

    list, set, rewind and skip are about the flow itself: where it goes on on the source.

    offsets --export prints what kafka-consumer-groups can import; offsets --export --help says more.
    """


@manual(
    "srm-control offsets --export --config srm.properties --source A --target B --group 'billing.*' --to offsets.csv",
    reads="groups of both clusters, the offset map and checkpoints on the target.",
    writes="the file of --to.",
    error="an error, or nothing could be exported",
)
@offsets.command(EXPORT, hidden=True, cls=PrefixedCommand)
@config("As for srm-driver; repeatable. Without: --bootstrap-servers.", required=False)
@DEFINES
@CLIENTS
@SOURCE
@TARGET
@GROUP
@click.option(
    "--export",
    "is_export",
    is_flag=True,
    required=True,
    expose_value=False,
    help="Print what kafka-consumer-groups can import.",
)
@output("csv", "json")
@click.option("--to", "path", type=FILE, help="Write it to this file instead.")
def export(
    *,
    files: Sequence[Path],
    defines: Sequence[str],
    source: str,
    target: str,
    names: str,
    output: str,
    path: Path | None,
    **clients: Any,
) -> None:
    """Prints where groups go on on the target: group, topic, partition, offset.

    Import them with: kafka-consumer-groups --reset-offsets --from-file FILE --execute --group G. Works while the source
    is down, too: then from the newest checkpoints; so it does without a file, from --bootstrap-servers of the target.
    """
    with told():
        place = place_of(files, defines, source, target, ClientOptions(**clients))
        if not place.is_enabled:
            click.echo(f"{place.settings.flow} is not enabled in these files", err=True)
        ask = report_groups if files else report_checkpoints
        report = _said(ask(place.settings, NameFilter(split_list(names))))
    rows = [row for row in report.rows if row.downstream is not None]
    text = _csv(rows) if output == "csv" else json.dumps([_as_json(row) for row in rows], indent=2) + "\n"
    if path is None:
        click.echo(text, nl=False)
    else:
        path.write_text(text)
        click.echo(f"{count(len(rows), 'offset')} written to {path}", err=True)
    for row in report.rows:
        if row.downstream is None:
            click.echo(f"left out: group {row.group} on {row.remote}: {row.translation}", err=True)
    if not rows:
        click.echo(f"error: no offset of a group that matches {names} could be exported", err=True)
        raise SystemExit(ERROR)


@list_manual(
    "srm-control groups --config srm.properties --source A --target B --add billing --reason 'the shop moves'",
    "srm-control groups --config srm.properties --source A --target B --list -o wide",
)
@click.group(cls=PrefixedGroup, invoke_without_command=True, subcommand_metavar="[status …]")
@LISTS
@click.pass_context
def groups(context: click.Context, /, **asked: Any) -> None:
    """Says which consumer groups are taken, while drivers run, by the lists of SRM; or looks at them: groups status.

    A group is taken where a pattern of the file or an entry of the allow list matches it, and no exclusion of the file
    nor entry of the deny list does.
    """
    if context.invoked_subcommand is None:
        steer(ListKind.GROUPS, Asked(**asked))
    elif any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in asked):
        raise click.UsageError(f"write options behind {context.invoked_subcommand}, or lists without it")


@manual(
    "srm-control groups status --config srm.properties --source A --target B --group 'billing.*'",
    reads="groups of both clusters, the offset map and checkpoints on the target.",
)
@groups.command()
@CONFIG
@DEFINES
@SOURCE
@TARGET
@GROUP
@OUTPUT
def status(*, files: Sequence[Path], defines: Sequence[str], source: str, target: str, names: str, output: str) -> None:
    """Prints where groups stand on both sides, with their lag, how well they translate, and why one is not synced.

    Groups that the flow does not take are named below the table, with the rule that leaves them out.
    """
    report = _report(files, defines, source, target, names)
    if output == "json":
        document = {"positions": [_as_json(row) for row in report.rows], "not_taken": report.left_out}
        click.echo(json.dumps(document, indent=2))
        return
    if report.rows:
        _print(report.rows, source, target)
    else:
        click.echo(
            f"no group of {source} that matches {names} has committed an offset on a topic of {source}->{target}"
        )
    for line in _left_out(report.left_out):
        click.echo(line)


def _print(rows: Sequence[GroupRow], source: str, target: str) -> None:
    table = Table("group", "topic", box=None)
    numbers = ("partition", f"on {source}", "lag", f"goes on on {target} at", f"committed on {target}", "lag there")
    for title in numbers:
        table.add_column(title, justify="right")
    table.add_column("translation")
    table.add_column("group offset sync")
    for row in rows:
        here, there = (row.upstream, row.source_lag), (row.downstream, row.target_offset, row.target_lag)
        cells = ["-" if number is None else str(number) for number in (row.remote.partition, *here, *there)]
        table.add_row(row.group, row.remote.topic, *cells, row.translation, row.sync or "-")
    Console(width=None if sys.stdout.isatty() else 240).print(table)


def _left_out(groups: Mapping[str, str]) -> Iterator[str]:
    """One line per reason: how many groups, and the first of them."""
    reasons: dict[str, list[str]] = {}
    for group, why in sorted(groups.items()):
        reasons.setdefault(why, []).append(group)
    for why, names in sorted(reasons.items()):
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield f"not taken ({why}): {', '.join(names[:_SHOWN])}{more}"


def _report(files: Sequence[Path], defines: Sequence[str], source: str, target: str, names: str) -> GroupReport:
    with told():
        return _said(report_groups(flow_of(files, defines, f"{source}->{target}"), NameFilter(split_list(names))))


def _said(report: GroupReport) -> GroupReport:
    """Tell what is not known."""
    if report.source_down is not None:
        click.echo(f"from checkpoints, since the source does not answer: {report.source_down}", err=True)
    for refusal in report.refusals:
        click.echo(f"not known: group {refusal}", err=True)
    return report


def _csv(rows: Sequence[GroupRow]) -> str:
    text = io.StringIO()
    written = csv.writer(text, lineterminator="\n")
    written.writerows((row.group, row.remote.topic, row.remote.partition, row.downstream) for row in rows)
    return text.getvalue()


def _as_json(row: GroupRow) -> dict[str, object]:
    document = asdict(row)
    document["topic"], document["partition"] = document.pop("remote")
    document["standing"] = document.pop("translation")
    return document
