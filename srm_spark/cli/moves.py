"""`srm-control failover`, `failback` and `switchover`: guided moves of consumer groups to another cluster and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

import click
from click.core import ParameterSource

from srm_spark.cli.manual import manual
from srm_spark.cli.moves_view import plan_text, site_plan_text, site_text, statement_text, undo_text
from srm_spark.cli.options import (
    CONFIG,
    DEFINES,
    DIFFERENT,
    FILE,
    GROUP,
    OK,
    OUTPUT,
    YES,
    dry_run,
    flow,
    settings_of,
    several,
    told,
    type_to_go_on,
)
from srm_spark.core.filters import split_list
from srm_spark.errors import MoveError
from srm_spark.files import write_whole
from srm_spark.plan import Move, MoveKind, Plan, Statement, Switchover, Undo
from srm_spark.plan.document import (
    plan_document,
    site_plan_document,
    site_statement_document,
    statement_document,
    undo_document,
)
from srm_spark.plan.state import OTHER_PLACE

PLANNED = click.option("--planned", is_flag=True, help="A is there: copy everything first, so that nothing is missing.")
_ALL_MOVES = several(
    CONFIG,
    DEFINES,
    GROUP,
    click.option("--fence", metavar="COMMAND", help="A shell command that stops the producers and consumers."),
    click.option(
        "--wait", "wait_seconds", type=click.FloatRange(min=0), default=300.0, show_default=True, metavar="SECONDS",
        help="How long a planned move waits for the last records, and of a site each flow of it.",
    ),
    click.option("--undo", is_flag=True, help="Give up a move that has not ended: groups stand where they stood."),
    dry_run("Print what was found and what would be done; change nothing."),
    YES,
)  # fmt: skip
_SHARED = several(
    _ALL_MOVES,
    flow("The flow over which the groups went, or go."),
    click.option("--state", "state", type=FILE, help="The state file; by default one named after the flow."),
    click.option(
        "--verified", type=FILE, help="What srm-control verify --statement kept: goes into the signed statement."
    ),
    OUTPUT,
)  # fmt: skip
_READS = "both clusters: ends of topics, groups, progress, the offset map, checkpoints, quarantine; the state file."
_FILES = "the state file and the statement, signed where statement.key is set; runs the command of --fence."
_LEFT = "something was declined, not moved or not safe"


@manual(
    "srm-control failover --config srm.properties --flow 'A->B' --dry-run",
    "srm-control failover --config srm.properties --flow 'A->B' --planned",
    reads=_READS,
    writes=f"positions of groups on B, {_FILES}",
    ok="everything moved",
    different=_LEFT,
)
@click.command()
@PLANNED
@_SHARED
def failover(*, planned: bool, fence: str | None, **options: Any) -> None:
    """Moves consumer groups of A to B, each to the first record that it has not read.

    Without --planned, A may be gone. The plan is printed, and nothing happens before the flow's name is typed. Each
    stage is written to a state file first: run the same command again to go on where it stopped. Groups with members
    on B stay where they are, and no group is set backward.
    """
    if fence is not None and not planned:
        raise click.UsageError("--fence is for planned moves: add --planned")
    _run(MoveKind.PLANNED_FAILOVER if planned else MoveKind.FAILOVER, fence=fence, **options)


@manual(
    "srm-control failback --config srm.properties --flow 'A->B'",
    reads=_READS,
    writes=f"positions of groups on A, {_FILES}",
    ok="everything moved",
    different=_LEFT,
)
@click.command()
@_SHARED
def failback(**options: Any) -> None:
    """Moves consumer groups back from B to A: a planned move over the flow B->A, which must be configured.

    What a group has read of A.orders on B becomes its position on orders on A. See failover for the rest.
    """
    _run(MoveKind.FAILBACK, **options)


@manual(
    "srm-control switchover --config srm.properties --site A --dry-run",
    "srm-control switchover --config srm.properties --site A --fence ./stop-all.sh",
    reads="what failover reads, of each flow that begins at the site.",
    writes="positions of groups on the targets, a state file and a statement per flow; runs the command of --fence.",
    ok="everything moved",
    different=_LEFT,
)
@click.command()
@click.option("--site", required=True, metavar="ALIAS", help="The cluster that is left.")
@click.option("--to", "targets", multiple=True, metavar="ALIAS", help="Over flows to this one alone; repeatable.")
@click.option("--gone", is_flag=True, help="The site is gone: nothing is waited for.")
@_ALL_MOVES
@click.option(
    "--folder", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", show_default=True,
    help="Where state files and statements lie.",
)  # fmt: skip
@OUTPUT
def switchover(
    *,
    site: str,
    targets: Sequence[str],
    gone: bool,
    files: Sequence[Path],
    defines: Sequence[str],
    names: str,
    fence: str | None,
    wait_seconds: float,
    undo: bool,
    dry_run: bool,
    yes: bool,
    folder: Path,
    output: str,
) -> None:
    """Moves consumer groups off a whole site: over all flows that begin there, stage by stage.

    All flows are looked at first, and if one refuses, nothing is touched. The fence runs once; every flow is drained
    before a group of any is moved. Each flow has its state file, as with failover --planned: run the same command again
    to go on where it stopped, or finish one flow by itself.
    """
    if fence is not None and gone:
        raise click.UsageError("--fence is for sites that are there: leave out --gone")
    kind = MoveKind.FAILOVER if gone else MoveKind.PLANNED_FAILOVER
    with (
        told(),
        Switchover(
            settings_of(files, defines), site, targets=targets, kind=kind, groups=split_list(names), fence=fence,
            folder=folder, wait_seconds=wait_seconds, tell=_tell,
        ) as site_move,
    ):  # fmt: skip
        if undo:
            _undo(site_move.undo, site_move.moves, site, output, dry_run=dry_run, yes=yes)
        plan = site_move.plan()
        if dry_run:
            click.echo(json.dumps(site_plan_document(plan), indent=2) if output == "json" else site_plan_text(plan))
            raise SystemExit(DIFFERENT if plan.unsafe else OK)
        click.echo(site_plan_text(plan), err=True)
        if not plan.refusals and not yes:
            type_to_go_on(site)
        done = site_move.apply(plan)
        click.echo(json.dumps(site_statement_document(done), indent=2) if output == "json" else site_text(done))
        _tell_all_files(done.statements, site_move.moves)
    raise SystemExit(DIFFERENT if done.unsafe else OK)


def _run(
    kind: MoveKind,
    *,
    files: Sequence[Path],
    defines: Sequence[str],
    name: str,
    names: str,
    fence: str | None,
    wait_seconds: float,
    undo: bool,
    dry_run: bool,
    yes: bool,
    state: Path | None,
    verified: Path | None,
    output: str,
) -> None:
    with (
        told(),
        Move(
            settings_of(files, defines), name, kind, groups=split_list(names), fence=fence, state=state,
            wait_seconds=wait_seconds, verified=verified, tell=_tell,
        ) as move,
    ):  # fmt: skip
        if undo:
            _undo(lambda *, commits: (move.undo(commits=commits),), [move], name, output, dry_run=dry_run, yes=yes)
        plan = move.plan()
        if dry_run:
            _print_plan(plan, output)
            raise SystemExit(DIFFERENT if plan.unsafe else OK)
        click.echo(plan_text(plan), err=True)
        if not plan.refusals and not yes:
            type_to_go_on(name)
        statement = move.apply(plan)
        _print_statement(statement, move, output)
    raise SystemExit(DIFFERENT if statement.unsafe else OK)


class _Undoing(Protocol):
    def __call__(self, *, commits: bool) -> tuple[Undo, ...]: ...


def _undo(undoing: _Undoing, moves: Iterable[Move], name: str, output: str, *, dry_run: bool, yes: bool) -> NoReturn:
    given = click.get_current_context().get_parameter_source
    for option in ("fence", "wait_seconds", "verified"):
        if given(option) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{option.partition('_')[0]} is for a move that goes on, and --undo gives it up")
    found = undoing(commits=False)
    if not dry_run:
        click.echo(undo_text(found, is_done=False), err=True)
        if not yes:
            type_to_go_on(name)
        found = undoing(commits=True)
    if output == "json":
        click.echo(json.dumps([undo_document(one) for one in found], indent=2))
    else:
        click.echo(undo_text(found, is_done=not dry_run))
    _tell_all_files((one.statement for one in found if one.statement is not None), moves)
    raise SystemExit(DIFFERENT if any(one.left for one in found) else OK)


def _print_plan(plan: Plan, output: str) -> None:
    click.echo(json.dumps(plan_document(plan), indent=2) if output == "json" else plan_text(plan))


def _print_statement(statement: Statement, move: Move, output: str) -> None:
    text = statement_text(statement)
    click.echo(json.dumps(statement_document(statement), indent=2) if output == "json" else text)
    _tell_files(text, move)


def _tell_all_files(statements: Iterable[Statement], moves: Iterable[Move]) -> None:
    by_flow = {move.flow: move for move in moves}
    for statement in statements:
        _tell_files(statement_text(statement), by_flow[statement.flow])


def _tell_files(text: str, move: Move) -> None:
    if move.statement_path.exists():
        path = move.statement_path.with_suffix(".txt")
        write_whole(path, text + "\n", MoveError, OTHER_PLACE)
        signed = "" if move.signed_path is None else f", signed in {move.signed_path.name}"
        click.echo(f"this statement is in {path} and {move.statement_path.name}{signed}", err=True)
    if move.state_path.exists():
        click.echo(f"the state of the move is in {move.state_path}", err=True)


def _tell(text: str) -> None:
    click.echo(f"  {text}", err=True)
