"""`srm-control losses`: everything that a flow has found to be lost, as exact ranges of offsets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import click

from srm_spark.cli.manual import manual
from srm_spark.cli.options import CONFIG, DEFINES, ERROR, OUTPUT, flow, flow_of, told
from srm_spark.core.model import KeptLoss
from srm_spark.flow.topics.losses import kept_losses


@manual(
    "srm-control losses --config srm.properties --flow 'A->B' -o json",
    reads="mm2-offset-map.A.internal on the target.",
)
@click.command()
@CONFIG
@DEFINES
@flow("Whose losses.")
@OUTPUT
def losses(*, files: Sequence[Path], defines: Sequence[str], name: str, output: str) -> None:
    """Prints what a flow has found to be lost, oldest first; the source may be down.

    deleted: the source deleted records before they were replicated. diverged: the target holds copies of records that
    the source has no longer. target: copies are gone on the target. skipped: somebody has set the position behind them.
    """
    with told():
        losses_kept = kept_losses(flow_of(files, defines, name, exit_code=ERROR))
    if output == "json":
        click.echo(json.dumps([_document(kept) for kept in losses_kept], indent=2))
        return
    for kept in losses_kept:
        target = kept.loss.target
        where = "" if target is None else f", target offsets {target.start} to {target.end - 1}"
        click.echo(f"{_time(kept)} {kept.partition}: {kept.loss.cause.value}: offsets {kept.loss}{where}")
    if not losses_kept:
        click.echo("nothing was lost")


def _time(kept: KeptLoss) -> str:
    return datetime.fromtimestamp(kept.found_at / 1000, timezone.utc).isoformat(timespec="milliseconds")


def _document(kept: KeptLoss) -> dict[str, object]:
    """Offsets `start` (included) to `end` (excluded); `target` is null where nothing was copied."""
    source, target = kept.loss.offsets, kept.loss.target
    return {
        "topic": kept.partition.topic,
        "partition": kept.partition.partition,
        "topic_id": kept.topic_id,
        "cause": kept.loss.cause.value,
        "source": {"start": source.start, "end": source.end},
        "target": None if target is None else {"start": target.start, "end": target.end},
        "found_at": _time(kept),
    }
