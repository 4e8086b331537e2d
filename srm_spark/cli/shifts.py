"""`srm-control offsets set|rewind|skip`: partitions of a flow go on at another place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from srm_spark.cli.commands import REASON
from srm_spark.cli.lists import check_reason, who
from srm_spark.cli.manual import NOT_EVERYTHING, manual
from srm_spark.cli.options import (
    CONFIG,
    DEFINES,
    DIFFERENT,
    OUTPUT,
    YES,
    dry_run,
    flow,
    flow_of,
    print_json,
    several,
    told,
    type_to_go_on,
)
from srm_spark.cli.positions import commanding_of, standing_as_json
from srm_spark.core.answers import Answer
from srm_spark.core.goals import Goal, Way, goal_of
from srm_spark.core.wording import count
from srm_spark.flow.commanding import ANSWER_SECONDS
from srm_spark.flow.shifting import Shifting, Wanted

_C = TypeVar("_C", bound=click.Command)

_SHARED = several(
    CONFIG,
    DEFINES,
    flow("The flow."),
    click.option("--topic", required=True, metavar="NAME", help="The topic, by its name on the source."),
    click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Only this partition."),
    click.option("--to", metavar="OFFSET|earliest|latest|TIMESTAMP", help="Where: a time as 2026-01-31T12:00:00Z."),
)
_BY = click.option("--by", type=click.IntRange(min=1), metavar="N", help="By so many source offsets.")
_REST = several(REASON, dry_run(), YES, OUTPUT)
_UNANSWERED = (
    "{partition}: no driver has said within {seconds:g} s what came of it: one that runs, or starts, carries it out as "
    "long as the pause lasts"
)


def _manual(*examples: str) -> Callable[[_C], _C]:
    """What the commands say that change positions."""
    return manual(
        *examples,
        reads="progress, offset map, acts and answers of drivers on the target; the ends of the topic on the source.",
        writes="acts to mm2-control.A.internal on the target; the driver that owns the flow records the new position.",
        different=NOT_EVERYTHING,
    )


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

    They have to be paused. Says first how much that is, and asks. Groups are translated to the first copies until all
    are there twice, then to the second ones.
    """
    _run(Way.REWIND, **options)


@_manual("srm-control offsets skip --config srm.properties --flow 'A->B' --topic orders --partition 0 --by 10")
@click.command()
@_SHARED
@_BY
@_REST
def skip(**options: Any) -> None:
    """Lets partitions go on further ahead: what lies between is not copied, and is told as a loss.

    They have to be paused. Says first how much that is, and asks. Not of what is just being copied again.
    """
    _run(Way.SKIP, **options)


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
    check_reason(reason)
    with told(), commanding_of(flow_of(files, defines, name)) as commanding:
        shifting = Shifting(commanding)
        found = shifting.standings(topic, partition)
        if not found:
            which = topic if partition is None else f"{topic}-{partition}"
            raise click.ClickException(f"no position of {which} is recorded: it begins by itself once the flow runs")
        every = shifting.wanted(found, way, goal)
        chosen = [one for one in every if one.is_change]
        for one in every:
            click.echo(_told(one), err=True)
        acts: list[str] = []
        if chosen and not dry_run:
            if not yes:
                type_to_go_on(name)
            acts = shifting.write(chosen, who(), reason)
        answers = commanding.shifted(acts) if acts else {}
    of_each = {one.standing.partition: answers.get(act) for one, act in zip(chosen, acts, strict=False)}
    if output == "json":
        print_json(_document(every, of_each, is_written=bool(acts)))
    elif acts:
        for one in chosen:
            click.echo(_outcome(one, of_each[one.standing.partition]))
    elif not chosen:
        click.echo("nothing was changed", err=True)
    is_done = all(answer is not None and answer.declined is None for answer in answers.values())
    if any(one.refusal is not None for one in every) or len(answers) < len(acts) or not is_done:
        raise SystemExit(DIFFERENT)


def _goal(way: Way, to: str | None, by: int | None) -> Goal:
    try:
        return goal_of(way, to, by)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _told(one: Wanted) -> str:
    """What it would do."""
    partition, shift = one.standing.partition, one.shift
    if shift is None:
        return f"{partition}: not done: {one.refusal}"
    if one.again:
        then = "second copies among them, and all once more then" if one.is_amid else "and twice then"
        return (
            f"{partition}: from {shift.start} back to {shift.end}: {count(one.again, 'offset')} copied again, of which "
            f"the target has {count(one.copied, 'record')} now, {then}"
        )
    if one.left_out:
        return (
            f"{partition}: from {shift.start} ahead to {shift.end}: {count(one.left_out, 'offset')} left out; what "
            "records they are does not come to the target, and is told as lost"
        )
    return f"{partition}: it stands at {shift.start} already"


def _outcome(one: Wanted, answer: Answer | None) -> str:
    partition, shift = one.standing.partition, one.shift
    assert shift is not None
    if answer is None:
        return _UNANSWERED.format(partition=partition, seconds=ANSWER_SECONDS)
    if answer.declined is not None:
        return f"{partition}: not done, says {answer.driver}: {answer.declined}"
    return f"{partition}: goes on at {shift.end} once it is resumed, says {answer.driver}"


def _document(every: Sequence[Wanted], answers: Mapping[Any, Answer | None], *, is_written: bool) -> dict[str, object]:
    partitions = []
    for one in every:
        answer = answers.get(one.standing.partition)
        declined = one.refusal if answer is None else answer.declined
        partitions.append(
            {
                **standing_as_json(one.standing),
                "to": None if one.shift is None else one.shift.end,
                "copied_again": one.again,
                "records_there": one.copied,
                "left_out": one.left_out,
                "declined": declined,
                "carried_out_by": answer.driver if answer is not None and declined is None else None,
            }
        )
    return {"is_written": is_written, "partitions": partitions}
