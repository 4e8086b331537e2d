"""`srm-control quarantine`: records that a flow parked, because its target or Spark would not take them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

import click

from srm_spark.cli.groups import flow_of
from srm_spark.cli.options import CONFIG, DEFINES, DIFFERENT, OUTPUT, pairs
from srm_spark.config import load_settings
from srm_spark.config.settings import FlowSettings
from srm_spark.core.filters import NameFilter, split_list
from srm_spark.core.quarantine import Parked
from srm_spark.core.wording import count
from srm_spark.errors import SrmError
from srm_spark.flow.refused.replay import Replayed, drop_parked, list_parked
from srm_spark.flow.refused.replay import replay as replay_parked

_Command = TypeVar("_Command", bound=Callable[..., None])
_SHARED = (
    CONFIG,
    DEFINES,
    click.option("--flow", required=True, metavar="A->B", help="The flow that parked the records."),
    click.option(
        "--topic", "names", default=".*", show_default=True, metavar="LIST", help="Source topics, or regexes."
    ),
)
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")


def _shared(command: _Command) -> _Command:
    for option in reversed(_SHARED):
        command = option(command)
    return command


@click.group()
def quarantine() -> None:
    """Records that were parked by `refused.record.policy = park` instead of being copied."""


@quarantine.command("list")
@_shared
@OUTPUT
def list_(*, files: Sequence[Path], defines: Sequence[str], flow: str, names: str, output: str) -> None:
    """Prints what is parked, and why."""
    try:
        found = list_parked(_settings(files, defines, flow), _topics(names))
    except SrmError as error:
        raise click.ClickException(str(error)) from error
    if output == "json":
        click.echo(json.dumps([_as_json(parked) for parked in found], indent=2))
        return
    for parked in found:
        click.echo(f"{_place(parked)}: parked {_time(parked.parked_at)}, {parked.size} bytes: {parked.why}")
    if not found:
        click.echo("nothing is parked", err=True)


@quarantine.command()
@_shared
@_DRY_RUN
def replay(*, files: Sequence[Path], defines: Sequence[str], flow: str, names: str, dry_run: bool) -> None:
    """Writes parked records to their remote topics, each once, and takes them out of quarantine.

    They lie at the end, behind what was copied since. The flow must be stopped; the source may be down. A record that
    the target still refuses stays parked; exit code 3 where there was one.
    """
    is_whole = True
    try:
        for done in replay_parked(_settings(files, defines, flow), _topics(names), is_dry_run=dry_run):
            is_whole = is_whole and done.refusal is None
            click.echo(f"{_place(done.parked)}: {_outcome(done, dry_run)}")
    except SrmError as error:
        raise click.ClickException(str(error)) from error
    if not is_whole:
        raise SystemExit(DIFFERENT)


@quarantine.command()
@_shared
@_DRY_RUN
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop(*, files: Sequence[Path], defines: Sequence[str], flow: str, names: str, dry_run: bool, yes: bool) -> None:
    """Forgets parked records for good: they will not be on the target."""
    try:
        settings = _settings(files, defines, flow)
        found = list_parked(settings, _topics(names))
        for parked in found:
            click.echo(f"{_place(parked)}: {parked.why}")
        if dry_run or not found:
            return
        if not yes:
            click.confirm(f"Forget {count(len(found), 'record')}?", abort=True)
        drop_parked(settings, found)
    except SrmError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"forgotten: {count(len(found), 'record')}")


def _settings(files: Sequence[Path], defines: Sequence[str], flow: str) -> FlowSettings:
    source, _, target = flow.partition("->")
    return flow_of(load_settings(files, pairs(defines)).flows, source, target)


def _topics(names: str) -> NameFilter:
    return NameFilter(split_list(names), ())


def _place(parked: Parked) -> str:
    return f"{parked.place.partition} offset {parked.place.offset}"


def _outcome(done: Replayed, is_dry_run: bool) -> str:
    if done.refusal is not None:
        return f"stays parked: {done.refusal}"
    if done.downstream is None:
        return f"would be written to {done.remote}"
    end = "would be taken out of quarantine" if is_dry_run else "is out of quarantine"
    return f"is at offset {done.downstream} of {done.remote} and {end}"


def _as_json(parked: Parked) -> dict[str, object]:
    place = parked.place
    return {
        "flow": str(place.flow),
        "topic": place.partition.topic,
        "topic_id": place.topic_id,
        "partition": place.partition.partition,
        "offset": place.offset,
        "timestamp": parked.timestamp if parked.timestamp >= 0 else None,
        "timestamp_type": "LogAppendTime" if parked.is_append_time else "CreateTime",
        "size": parked.size,
        "parked_at": parked.parked_at,
        "reason": parked.why.sentence,
        "kind": parked.why.kind.value,
    }


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="seconds")
