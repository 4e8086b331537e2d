"""`srm-control pause`, `resume`, `restart`: flows are steered while they run. `history`: everything that was done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from srm_spark.cli.interrupts import interrupted_with
from srm_spark.cli.lists import check_reason, who
from srm_spark.cli.manual import manual
from srm_spark.cli.options import (
    CONFIG,
    DEFINES,
    DIFFERENT,
    FLOW,
    OUTPUT,
    flow,
    flow_of,
    flows_of,
    print_json,
    several,
    told,
)
from srm_spark.core.acts import AnyAct, Command, CommandKind, Scope
from srm_spark.core.answers import Answer
from srm_spark.core.lists import Act, in_brackets
from srm_spark.core.model import Flow
from srm_spark.core.moments import time_of
from srm_spark.core.wording import escaped
from srm_spark.flow.commanding import ANSWER_SECONDS, Acted, Commanded
from srm_spark.flow.commanding import command as carry_out
from srm_spark.flow.commanding import history as acts_of

_F = TypeVar("_F", bound=Callable[..., Any])
_DONE = {
    CommandKind.PAUSE: "paused: {scope}",
    CommandKind.RESUME: "resumed: {scope}",
    CommandKind.RESTART: "to start anew: {scope}",
}
_TAKEN = {
    CommandKind.PAUSE: "{driver} copies nothing more of it",
    CommandKind.RESUME: "{driver} goes on where it stood",
    CommandKind.RESTART: "{driver} takes it",
}
_NOT_TAKEN = "no driver has said within {seconds:g} s that it took it: "
_LATER = {
    CommandKind.PAUSE: "one that runs takes it when its batch is over, and it counts for whoever starts",
    CommandKind.RESUME: "one that runs takes it when its batch is over, and it counts for whoever starts",
    CommandKind.RESTART: "one that runs takes it when its batch is over; whoever starts does so anyway",
}

_READS = "mm2-control.A.internal, progress and answers of drivers, on the target."
_WRITES = "an act to mm2-control.A.internal on the target."

REASON = click.option("--reason", default="", metavar="TEXT", help="Why; it is kept with the act.")
_SCOPE = several(
    CONFIG,
    DEFINES,
    flow("The flow."),
    click.option("--topic", metavar="NAME", help="Only this topic, by its name on the source."),
    click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Only this partition of it."),
    REASON,
    OUTPUT,
)


@manual(
    "srm-control pause --config srm.properties --flow 'A->B' --topic orders --reason maintenance",
    reads=_READS,
    writes=_WRITES,
    ok="it is paused, by this command or before",
)
@click.command()
@_SCOPE
def pause(**options: Any) -> None:
    """Lets a flow, a topic or a partition stand still until it is resumed, whatever driver runs it.

    The batch in progress is ended and recorded; lag goes on to be counted. Needs no driver and no source.
    """
    _run(CommandKind.PAUSE, **options)


@manual(
    "srm-control resume --config srm.properties --flow 'A->B' --topic orders",
    reads=_READS,
    writes=_WRITES,
    different="it was not paused",
)
@click.command()
@_SCOPE
def resume(**options: Any) -> None:
    """Ends a pause: what was paused goes on exactly where it stood.

    What the source has deleted meanwhile is told as a loss.
    """
    _run(CommandKind.RESUME, **options)


@manual(
    "srm-control restart --config srm.properties --flow 'A->B' --reason 'new certificates'",
    reads=_READS,
    writes=_WRITES,
    different="no driver has said that it does",
)
@click.command()
@CONFIG
@DEFINES
@flow("The flow.")
@REASON
@OUTPUT
def restart(**options: Any) -> None:
    """Lets a running driver begin the run of a flow anew, with new connections; also where it waits to try again."""
    _run(CommandKind.RESTART, topic=None, partition=None, **options)


def _run(
    kind: CommandKind,
    *,
    files: Sequence[Path],
    defines: Sequence[str],
    name: str,
    topic: str | None,
    partition: int | None,
    reason: str,
    output: str,
) -> None:
    if topic is None and partition is not None:
        raise click.UsageError("--partition goes with --topic NAME")
    check_reason(reason)
    command = Command(kind, Scope(topic, partition), int(time.time() * 1000), who(), reason)
    with told():
        settings = flow_of(files, defines, name)
        with interrupted_with("it may count all the same: srm-control history says"):
            done = carry_out(settings, command)
    decision, answer = done.decision, done.answer
    if output == "json":
        print_json(
            {
                "flow": str(settings.flow),
                "command": kind.value,
                "topic": topic,
                "partition": partition,
                "is_changed": decision.is_due,
                "remarks": decision.remarks,
                "declined": decision.declined,
                "taken_by": None if answer is None else {"driver": answer.driver, "at": time_of(answer.at)},
            }
        )
    else:
        _print(command, done)
    if decision.declined is not None or (kind is CommandKind.RESTART and answer is None):
        raise SystemExit(DIFFERENT)


def _print(command: Command, done: Commanded) -> None:
    for remark in done.decision.remarks:
        click.echo(f"note: {remark}", err=True)
    if done.decision.declined is not None:
        click.echo(f"not done: {done.decision.declined}", err=True)
    elif not done.decision.is_due:
        click.echo("nothing was changed", err=True)
    else:
        click.echo(_DONE[command.kind].format(scope=command.scope))
        click.echo(_taken(command.kind, done.answer))


def _taken(kind: CommandKind, answer: Answer | None) -> str:
    if answer is None:
        return _NOT_TAKEN.format(seconds=ANSWER_SECONDS) + _LATER[kind]
    return _TAKEN[kind].format(driver=answer.driver)


@manual(
    "srm-control history --config srm.properties --flow 'A->B'",
    reads="mm2-control.A.internal, and answers of drivers, on the target of each flow.",
)
@click.command()
@CONFIG
@DEFINES
@FLOW
@OUTPUT
def history(*, files: Sequence[Path], defines: Sequence[str], name: str | None, output: str) -> None:
    """Prints everything that was done to flows by srm-control, the oldest first: lists, pauses, restarts, offsets.

    With who did it, on which host, when and why; and of offsets what came of it.
    """
    acted: list[tuple[Flow, Acted]] = []
    with told():
        for settings in flows_of(files, defines, name):
            acted += [(settings.flow, one) for one in acts_of(settings)]
    acted.sort(key=lambda each: each[1].act.at)
    if output == "json":
        print_json([_as_json(flow, one) for flow, one in acted])
        return
    for of_flow, one in acted:
        click.echo(f"{time_of(one.act.at)} {of_flow} {escaped(one.act.who)} {_said(one.act)}{_outcome(one)}")
    if not acted:
        click.echo("nobody has done anything", err=True)


def _said(act: AnyAct) -> str:
    what = f"{act.kind.value} {act.change}" if isinstance(act, Act) else act.said
    return what + in_brackets(act.why)


def _outcome(one: Acted) -> str:
    if isinstance(one.act, Act) or one.act.shift is None:
        return ""
    if one.answer is None:
        return ": waits for a driver" if one.is_waiting else ": not done: no driver took it while the pause lasted"
    if one.answer.declined is not None:
        return f": not done: {escaped(one.answer.declined)}"
    return f": carried out by {escaped(one.answer.driver)}"


def _as_json(flow: Flow, one: Acted) -> dict[str, object]:
    act, answer = one.act, one.answer
    document: dict[str, object] = {
        "flow": str(flow),
        "at": time_of(act.at),
        "who": act.who,
        "why": act.why,
        "kind": act.kind.value,
    }
    if isinstance(act, Act):
        names = ("add", "remove", "add_deny", "remove_deny")
        return {**document, **{name: getattr(act.change, name) for name in names}}
    document |= {"topic": act.scope.topic, "partition": act.scope.partition}
    if act.host:
        document |= {"host": act.host}
    if act.shift is not None:
        document |= {
            "from": act.shift.start,
            "to": act.shift.end,
            "is_waiting": one.is_waiting,
            "answered_by": None if answer is None else {"driver": answer.driver, "at": time_of(answer.at)},
            "declined": None if answer is None else answer.declined,
        }
    return document
