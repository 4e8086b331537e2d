"""`srm-control plan`: what the next start of the flows would do that cannot be taken back, and what to decide first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from srm_spark.cli.options import CONFIG, DEFINES, DIFFERENT, ERROR, FLOW, OUTPUT, flows_of, told
from srm_spark.plan.renames import Rename, is_open, plan_renames


@click.command()
@CONFIG
@DEFINES
@FLOW
@OUTPUT
def plan(*, files: Sequence[Path], defines: Sequence[str], name: str | None, output: str) -> None:
    """Says what a changed replication policy means: remote topics of another name, what is kept, what is copied again.

    Touches nothing. Exit code 3 where a flow waits until target.renamed.policy says which way to go.
    """
    with told():
        renames_of = {str(one.flow): plan_renames(one) for one in flows_of(files, defines, name, exit_code=ERROR)}
    if output == "json":
        click.echo(
            json.dumps({flow: [asdict(one) for one in renames] for flow, renames in renames_of.items()}, indent=2)
        )
    else:
        for flow, renames in renames_of.items():
            click.echo(f"{flow}: {'no remote topic has another name than before' if not renames else ''}".rstrip())
            for one in renames:
                _print(one)
    if any(is_open(renames) for renames in renames_of.values()):
        raise SystemExit(DIFFERENT)


def _print(one: Rename) -> None:
    there = "is not there yet" if one.there is None else f"is there, with {one.there:,} offsets"
    stays = f"the {one.kept:,} in {one.before} stay there"
    ways = {
        "stop": "the topic waits, and nothing is written",
        "resume": f"{one.to_come:,} source offsets go to {one.now}; {stays}, and their readers have to end there first",
        "recopy": f"{one.all_there:,} source offsets, all there are, go to {one.now}; {stays}",
    }
    click.echo(f"  {one.topic}: {one.before} -> {one.now}, which {there}")
    for way, what in ways.items():
        click.echo(f"    {'*' if way == one.way else ' '} target.renamed.policy = {way}: {what}")
