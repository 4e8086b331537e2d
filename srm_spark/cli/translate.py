"""`srm-control offsets translate`: a file of offsets that are kept outside of Kafka, for the other side of a flow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from srm_spark.cli.manual import manual
from srm_spark.cli.options import (
    CONFIG,
    DEFINES,
    DIFFERENT,
    ERROR,
    FILE,
    OK,
    SOURCE,
    TARGET,
    flow_of,
    output,
    print_json,
    told,
)
from srm_spark.core.offset_files import FORMATS, KeptPosition, OffsetFile, parse_offsets
from srm_spark.core.wording import count
from srm_spark.errors import OffsetFileError
from srm_spark.flow.groups.kept_outside import TranslatedPositions, translate_positions


@manual(
    "srm-control offsets translate --config srm.properties --source A --target B --file here.json --to there.json",
    reads="the file, and the offset map on the target; of topics that go back that on the source, too.",
    writes="the file of --to.",
    error="an error, or there was nothing to translate",
    different="something could not be translated",
)
@click.command()
@CONFIG
@DEFINES
@SOURCE
@TARGET
@click.option(
    "--file",
    "origin",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="What to translate.",
)
@click.option("--format", "kind", type=click.Choice(FORMATS), default="auto", show_default=True, help="Of the file.")
@click.option("--to", "path", type=FILE, help="Write to this file instead of printing.")
@output("text", "json", former=False)
@click.option("--partial", "is_partial", is_flag=True, help="Leave out what cannot be translated, and write the rest.")
def translate(
    *,
    files: Sequence[Path],
    defines: Sequence[str],
    source: str,
    target: str,
    origin: Path,
    kind: str,
    path: Path | None,
    output: str,
    is_partial: bool,
) -> None:
    """Translates offsets of Spark, Flink or Kafka Connect that are kept in a file, by the exact offset map.

    Takes a file from offsets/ of a Spark checkpoint, {"topic":{"partition":offset}} as JSON (startingOffsets) or YAML,
    or what GET /connectors/NAME/offsets of Kafka Connect answers; prints the same with the topics and offsets of the
    target. An offset is the next record to be read. The source may be down, unless its remote topics go back.

    Where something cannot be translated nothing is written without --partial. With -o json it prints what became of
    each position instead, and the file is written with --to only.
    """
    with told():
        flow = flow_of(files, defines, f"{source}->{target}")
        try:
            file = parse_offsets(origin.read_text(encoding="utf-8"), kind)
        except (OffsetFileError, UnicodeDecodeError) as error:
            raise click.ClickException(f"{origin}: {error}") from error
        done = translate_positions(flow, file.positions)
    refusals = len(file.problems) + len(done.refusals)
    is_written = bool(done.translated) and (is_partial or not refusals)
    if output == "json":
        print_json(_as_json(file, done))
    else:
        _tell(origin, file, done)
    if not is_written:
        click.echo("nothing was written", err=True)
        raise SystemExit(DIFFERENT if refusals else ERROR)
    text = file.render(done.translated)
    if path is None:
        click.echo("" if output == "json" else text, nl=False)
    else:
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
        click.echo(f"{count(len(done.translated), 'offset')} written to {path}", err=True)
    raise SystemExit(DIFFERENT if refusals else OK)


def _as_json(file: OffsetFile, done: TranslatedPositions) -> dict[str, object]:
    """Each position of the source with its own of the target (null: none), and why; entries that are none beside it."""
    positions: list[dict[str, object]] = []
    for position in file.positions:
        remark = done.refusals.get(position, done.remarks.get(position))
        there = done.translated.get(position)
        positions.append({**_place(position), "target": None if there is None else _place(there), "reason": remark})
    return {"positions": positions, "problems": list(file.problems)}


def _place(position: KeptPosition) -> dict[str, object]:
    (topic, partition), offset = position
    return {"topic": topic, "partition": partition, "offset": offset}


def _tell(origin: Path, file: OffsetFile, done: TranslatedPositions) -> None:
    """Say everything at once."""
    for problem in file.problems:
        click.echo(f"{origin}: {problem}", err=True)
    for (partition, offset), why in done.refusals.items():
        click.echo(f"{origin}: {partition} at {offset} cannot be translated: {why}", err=True)
    for (partition, offset), remark in done.remarks.items():
        click.echo(f"{origin}: {partition} at {offset}: {remark}", err=True)
