"""`srm-control offsets list|set|rewind|skip`: where the partitions of a flow stand, and other places for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table

from srm_spark.cli.commands import REASON
from srm_spark.cli.lists import who
from srm_spark.cli.manual import NOT_EVERYTHING, manual
from srm_spark.cli.options import (
    CONFIG,
    DEFINES,
    DIFFERENT,
    OUTPUT,
    TOPIC,
    YES,
    dry_run,
    flow,
    flow_of,
    print_json,
    several,
    told,
    topics_of,
)
from srm_spark.config.settings import FlowSettings
from srm_spark.core.answers import Answer
from srm_spark.core.goals import Goal, Way, goal_of
from srm_spark.core.wording import count
from srm_spark.flow.commanding import ANSWER_SECONDS, Commanding
from srm_spark.flow.shifting import Shifting, Standing, Wanted

_C = TypeVar("_C", bound=click.Command)

_PARTITION = click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Only this partition.")
_TO = click.option("--to", metavar="OFFSET|earliest|latest|TIMESTAMP", help="Where: a time as 2026-01-31T12:00:00Z.")
_BY = click.option("--by", type=click.IntRange(min=1), metavar="N", help="By so many source offsets.")
_SHARED = several(
    CONFIG,
    DEFINES,
    flow("The flow."),
    click.option("--topic", required=True, metavar="NAME", help="The topic, by its name on the source."),
    _PARTITION,
    _TO,
)
_REST = several(REASON, dry_run(), YES, OUTPUT)


def _manual(*examples: str) -> Callable[[_C], _C]:
    """What the commands say that change positions."""
    return manual(
        *examples,
        reads="progress, acts and answers of drivers on the target; the ends of the topic on the source.",
        writes="an act to mm2-control.A.internal on the target; the owner of the flow records the new position.",
        different=NOT_EVERYTHING,
    )


@manual(
    "srm-control offsets list --config srm.properties --flow 'A->B' --topic 'orders,payments.*'",
    reads="progress and acts on the target; the ends of topics on the source.",
)
@click.command("list")
@CONFIG
@DEFINES
@flow("The flow.")
@TOPIC
@_PARTITION
@OUTPUT
def list_(
    *, files: Sequence[Path], defines: Sequence[str], name: str, names: str, partition: int | None, output: str
) -> None:
    """Prints where each partition stands: its position, what the source has, and how far it is behind.

    Works while the source is down, too: then without its offsets.
    """
    with told(), commanding_of(flow_of(files, defines, name)) as commanding:
        found = Shifting(commanding).standings(topics_of(names).matches, partition)
    if output == "json":
        print_json({"partitions": [_as_json(one) for one in found.found], "source_unknown": found.unknown})
        return
    table = Table("topic", box=None)
    for title in ("partition", "goes on at", "source begins", "source ends", "lag"):
        table.add_column(title, justify="right")
    table.add_column("")
    for one in found.found:
        source = (None, None) if one.source is None else (one.source.start, one.source.end)
        numbers = (one.partition.partition, one.position, *source, one.lag)
        cells = ["?" if number is None else str(number) for number in numbers]
        waiting = None if one.waiting is None else f"to go on at {one.waiting} once a driver carries that out"
        table.add_row(one.partition.topic, *cells, "; ".join(filter(None, (one.paused, waiting))))
    if table.rows:
        Console(width=None if sys.stdout.isatty() else 240).print(table, markup=False)
    else:
        click.echo(f"no position of a topic that matches {names} is recorded", err=True)
    if found.unknown is not None:
        click.echo(f"the source does not answer: {found.unknown}", err=True)


@_manual(
    "srm-control offsets set --config srm.properties --flow 'A->B' --topic orders --to 2026-01-31T12:00:00Z --dry-run"
)
@click.command("set")
@_SHARED
@_REST
def set_(**options: Any) -> None:
    """Lets partitions go on at another place, in whichever direction. See rewind and skip."""
    _run(Way.SET, by=None, **options)


@_manual("srm-control offsets rewind --config srm.properties --flow 'A->B' --topic orders --partition 1 --to 90")
@click.command()
@_SHARED
@_BY
@_REST
def rewind(**options: Any) -> None:
    """Lets partitions go on further back: what the target has of that, it has twice then.

    A running driver must have paused them. Says first how much that is, and asks; groups go on at the newest copies.
    """
    _run(Way.REWIND, **options)


@_manual("srm-control offsets skip --config srm.properties --flow 'A->B' --topic orders --partition 0 --by 10")
@click.command()
@_SHARED
@_BY
@_REST
def skip(**options: Any) -> None:
    """Lets partitions go on further ahead: what lies between is never copied, and is told as a loss.

    A running driver must have paused them. Says first how much that is, and asks.
    """
    _run(Way.SKIP, **options)


def commanding_of(settings: FlowSettings) -> Commanding:
    """What such a command reaches the flow by."""
    return Commanding(settings)


def _run(
    way: Way,
    *,
    files: Sequence[Path],
    defines: Sequence[str],
    name: str,
    topic: str,
    partition: int | None,
    to: str | None,
    by: int | None,
    reason: str,
    dry_run: bool,
    yes: bool,
    output: str,
) -> None:
    goal = _goal(way, to, by)
    with told(), commanding_of(flow_of(files, defines, name)) as commanding:
        shifting = Shifting(commanding)
        standings = shifting.standings(lambda one: one == topic, partition)
        if standings.unknown is not None:
            raise click.ClickException(f"the source does not answer: {standings.unknown}")
        if not standings.found:
            which = topic if partition is None else f"{topic}-{partition}"
            raise click.ClickException(f"no position of {which} is recorded: it begins by itself once the flow runs")
        every = shifting.wanted(standings.found, way, goal)
        chosen = [one for one in every if one.again or one.left_out]
        for one in every:
            click.echo(_told(one), err=True)
        act, answer, owner = None, None, None
        if chosen and not dry_run:
            if not yes:
                _ask(name)
            owner = commanding.owner()
            act = shifting.write(chosen, who(), reason)
            answer = None if owner is None else commanding.carried_out(act)
    declined = {} if answer is None else dict(answer.declined)
    if output == "json":
        print_json(_document(every, act, answer))
    elif act is not None:
        for line in _outcome(chosen, owner, answer):
            click.echo(line)
    elif not chosen:
        click.echo("nothing was changed", err=True)
    if declined or any(one.refusal is not None for one in every):
        raise SystemExit(DIFFERENT)


def _goal(way: Way, to: str | None, by: int | None) -> Goal:
    try:
        return goal_of(way, to, by)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _ask(flow: str) -> None:
    if click.prompt(f"Type {flow} to go on", err=True) != flow:
        raise click.ClickException("that is not the flow's name; nothing was changed")


def _told(one: Wanted) -> str:
    """What it would do."""
    partition, position = one.standing.partition, one.standing.position
    if one.refusal is not None:
        return f"{partition}: not done: {one.refusal}"
    if one.again:
        return (
            f"{partition}: from {position} back to {one.end}: {count(one.again, 'offset')} copied again; what the "
            "target has of them it has twice then"
        )
    if one.left_out:
        return (
            f"{partition}: from {position} ahead to {one.end}: {count(one.left_out, 'offset')} left out; they do not "
            "come to the target, and are told as lost"
        )
    return f"{partition}: it stands at {position} already"


def _outcome(chosen: Sequence[Wanted], owner: str | None, answer: Answer | None) -> list[str]:
    if answer is None and owner is None:
        return ["no driver runs the flow: the one that starts carries it out first"]
    if answer is None:
        return [f"{owner} has not said within {ANSWER_SECONDS:g} s what came of it: see srm-control history"]
    return [
        f"{one.standing.partition}: not done: {answer.declined[one.standing.partition.partition]}"
        if one.standing.partition.partition in answer.declined
        else f"{one.standing.partition}: goes on at {one.end}, says {answer.driver}"
        for one in chosen
    ]


def _document(every: Sequence[Wanted], act: str | None, answer: Answer | None) -> dict[str, object]:
    declined = {} if answer is None else answer.declined
    return {
        "is_written": act is not None,
        "carried_out_by": None if answer is None else answer.driver,
        "partitions": [
            {
                **_as_json(one.standing),
                "to": one.end,
                "copied_again": one.again,
                "left_out": one.left_out,
                "declined": one.refusal or declined.get(one.standing.partition.partition),
            }
            for one in every
        ],
    }


def _as_json(one: Standing) -> dict[str, object]:
    """Source offsets `start` (included) to `end` (excluded); what is not known is null."""
    source = None if one.source is None else {"start": one.source.start, "end": one.source.end}
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "position": one.position,
        "source": source,
        "lag": one.lag,
        "paused": one.paused,
        "waiting": one.waiting,
    }
