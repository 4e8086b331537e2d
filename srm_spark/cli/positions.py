"""`srm-control offsets list`: where the partitions of a flow stand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from srm_spark.cli.manual import manual
from srm_spark.cli.options import CONFIG, DEFINES, OUTPUT, TOPIC, flow, flow_of, print_json, told, topics_of
from srm_spark.config.settings import FlowSettings
from srm_spark.flow.commanding import Commanding
from srm_spark.flow.standings import Standing, standings


@manual(
    "srm-control offsets list --config srm.properties --flow 'A->B' --topic 'orders,payments.*'",
    reads="progress and acts on the target; the ends of topics on the source.",
)
@click.command("list")
@CONFIG
@DEFINES
@flow("The flow.")
@TOPIC
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Only this partition.")
@OUTPUT
def list_(
    *, files: Sequence[Path], defines: Sequence[str], name: str, names: str, partition: int | None, output: str
) -> None:
    """Prints where each partition stands: its position, what the source has, and how far it is behind.

    Works while the source is down, too: then without its offsets.
    """
    with told(), commanding_of(flow_of(files, defines, name)) as commanding:
        found = standings(commanding, topics_of(names).matches, partition)
    if output == "json":
        print_json({"partitions": [standing_as_json(one) for one in found.found], "source_unknown": found.unknown})
        return
    table = Table("topic", box=None)
    for title in ("partition", "goes on at", "source begins", "source ends", "lag"):
        table.add_column(title, justify="right")
    table.add_column("")
    for one in found.found:
        source = (None, None) if one.source is None else (one.source.start, one.source.end)
        numbers = (one.partition.partition, one.position, *source, one.lag)
        cells = ["?" if number is None else str(number) for number in numbers]
        waiting = None if one.waiting is None else f"to go on at {one.waiting} once a driver takes it"
        table.add_row(one.partition.topic, *cells, "; ".join(filter(None, (one.paused, waiting))))
    if table.rows:
        Console(width=None if sys.stdout.isatty() else 240).print(table, markup=False)
    else:
        click.echo(f"no position of a topic that matches {names} is recorded", err=True)
    if found.unknown is not None:
        click.echo(f"the source does not answer: {found.unknown}", err=True)


def commanding_of(settings: FlowSettings) -> Commanding:
    """What such a command reaches the flow by."""
    return Commanding(settings)


def standing_as_json(one: Standing) -> dict[str, object]:
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
