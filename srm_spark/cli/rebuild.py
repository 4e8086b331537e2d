"""`srm-control offsets rebuild`: an offset map that was lost is made again from the records of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from srm_spark.cli.groups import SOURCE, TARGET, flow_of
from srm_spark.cli.options import CONFIG, DEFINES, DIFFERENT, pairs
from srm_spark.config import load_settings
from srm_spark.core.filters import NameFilter, split_list
from srm_spark.core.wording import count
from srm_spark.errors import SrmError
from srm_spark.flow.rebuild import rebuild_map


@click.command()
@CONFIG
@DEFINES
@SOURCE
@TARGET
@click.option("--topic", "names", default=".*", show_default=True, metavar="LIST", help="Source topics, or regexes.")
def rebuild(*, files: Sequence[Path], defines: Sequence[str], source: str, target: str, names: str) -> None:
    """Makes the exact offset map of a stopped flow again where its topic was lost, from the records of both sides.

    Reads what both sides still have, up to where the map begins or progress stands. Only a match that ends exactly
    there counts; exit code 3 where there was none, and then nothing is written for that partition.
    """
    try:
        settings = load_settings(files, pairs(defines))
        done = rebuild_map(flow_of(settings.flows, source, target), NameFilter(split_list(names), ()))
    except SrmError as error:
        raise click.ClickException(str(error)) from error
    for one in done:
        if one.refusal is not None:
            click.echo(f"{one.partition}: not rebuilt: {one.refusal}")
        elif one.source.start == one.source.end:
            click.echo(f"{one.partition}: nothing is missing")
        else:
            offsets = f"source offsets {one.source.start} to {one.source.end - 1}"
            click.echo(f"{one.partition}: {count(one.records, 'record')}, {offsets}")
    if any(one.refusal is not None for one in done):
        raise SystemExit(DIFFERENT)
