"""`srm-control offsets rebuild`: an offset map that was lost is made again from the records of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from srm_spark.cli.manual import manual
from srm_spark.cli.options import (
    CONFIG,
    DEFINES,
    DIFFERENT,
    OUTPUT,
    SOURCE,
    TARGET,
    TOPIC,
    flow_of,
    print_json,
    told,
    topics_of,
)
from srm_spark.core.wording import count
from srm_spark.flow.rebuild import Rebuilt, rebuild_map


@manual(
    "srm-control offsets rebuild --config srm.properties --source A --target B --topic orders",
    reads="records of the topics on the source and of their remote topics; progress and the offset map on the target.",
    writes="mm2-offset-map.A.internal on the target.",
    different="a partition was not rebuilt",
)
@click.command()
@CONFIG
@DEFINES
@SOURCE
@TARGET
@TOPIC
@OUTPUT
def rebuild(
    *, files: Sequence[Path], defines: Sequence[str], source: str, target: str, names: str, output: str
) -> None:
    """Makes the exact offset map of a stopped flow again where its topic was lost, from the records of both sides.

    Reads what both sides still have, up to where the map begins or progress stands. Only a match that ends exactly
    there counts; where there is none, nothing is written for that partition.
    """
    with told():
        done = rebuild_map(flow_of(files, defines, f"{source}->{target}"), topics_of(names))
    if output == "json":
        print_json([_as_json(one) for one in done])
    else:
        _print(done)
    if any(one.refusal is not None for one in done):
        raise SystemExit(DIFFERENT)


def _print(done: Sequence[Rebuilt]) -> None:
    for one in done:
        if one.refusal is not None:
            click.echo(f"{one.partition}: not rebuilt: {one.refusal}")
        elif one.source.start == one.source.end:
            click.echo(f"{one.partition}: nothing is missing")
        else:
            offsets = f"source offsets {one.source.start} to {one.source.end - 1}"
            click.echo(f"{one.partition}: {count(one.records, 'record')}, {offsets}")


def _as_json(one: Rebuilt) -> dict[str, object]:
    """Source offsets `start` (included) to `end` (excluded) are what the map knows in addition."""
    topic, partition = one.partition
    source = {"start": one.source.start, "end": one.source.end}
    return {"topic": topic, "partition": partition, "source": source, "records": one.records, "reason": one.refusal}
