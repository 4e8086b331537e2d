"""`srm-control bundle`: everything that a machine without a network installs srm-spark from; asks no cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from srm_spark.cli.manual import manual
from srm_spark.cli.options import FILE, OUTPUT, print_json, told
from srm_spark.jars.bundle import bundle as make

EXTRAS = ("api", "compiled", "connect", "notebooks", "pkcs11")


@manual(
    "srm-control bundle --out srm-spark-bundle",
    "srm-control bundle --out srm-spark-bundle --extra compiled --extra api -o json",
    reads="pip's index, and the repository of the jars where they are not there yet.",
    writes="wheels below --out.",
    error="the folder is there already, or something cannot be downloaded; nothing was written",
)
@click.command()
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="A folder that is new.")
@click.option(
    "--extra",
    "extras",
    multiple=True,
    type=click.Choice(EXTRAS),
    default=("compiled",),
    show_default=True,
    help="With what `srm-spark[EXTRA]` needs, too; repeatable. `api` is that of srm-service.",
)
@click.option("--wheel", type=FILE, help="The wheel of srm-spark; else it is made of where this one came from.")
@OUTPUT
def bundle(*, out: Path, extras: tuple[str, ...], wheel: Path | None, output: str) -> None:
    """Writes srm-spark, what it needs and its jars as wheels, for machines without a network.

    They fit this Python on this kind of machine. Java is not in it.
    """
    click.echo("makes wheels of srm-spark, pyspark and all that they need; takes some minutes", err=True)
    with told():
        made = make(out, extras, wheel)
    if output == "json":
        print_json(
            {
                "folder": str(made.folder),
                "wheels": list(made.wheels),
                "bytes": made.bytes,
                "requirement": made.requirement,
                "command": made.command,
            }
        )
        return
    click.echo(f"{made.folder}: {len(made.wheels)} wheels, {made.bytes / 1e6:.0f} MB")
    python = ".".join(map(str, sys.version_info[:2]))
    click.echo(f"next, where it is to run, with Python {python}:\n  {made.command}")
