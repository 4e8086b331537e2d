"""`srm-control quarantine`: records that a flow put aside, because its target or Spark would not take them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from srm_spark.cli.manual import manual, overview
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
from srm_spark.core.moments import time_of
from srm_spark.core.quarantine import QuarantinedRecord
from srm_spark.core.wording import count
from srm_spark.flow.refused.replay import Replayed, drop_from_quarantine, list_quarantine
from srm_spark.flow.refused.replay import replay as replay_quarantine

_SHARED = several(CONFIG, DEFINES, flow("The flow that put the records aside."), TOPIC)
_READS = "mm2-quarantine.A.internal on the target."


@overview("srm-control quarantine list --config srm.properties --flow 'A->B'")
@click.group()
def quarantine() -> None:
    """Records that were put aside by `refused.record.policy = park` instead of being copied."""


@manual(
    "srm-control quarantine list --config srm.properties --flow 'A->B' --topic 'orders,payments.*'",
    reads=_READS,
)
@quarantine.command("list")
@_SHARED
@OUTPUT
def list_(*, files: Sequence[Path], defines: Sequence[str], name: str, names: str, output: str) -> None:
    """Prints what is in quarantine, and why."""
    with told():
        entries = list_quarantine(flow_of(files, defines, name), topics_of(names))
    if output == "json":
        print_json([_as_json(entry) for entry in entries])
        return
    for entry in entries:
        click.echo(
            f"{_place(entry)}: in quarantine since {time_of(entry.quarantined_at)}, {entry.size} bytes: {entry.why}"
        )
    if not entries:
        click.echo("nothing is in quarantine", err=True)


@manual(
    "srm-control quarantine replay --config srm.properties --flow 'A->B' --topic orders --dry-run",
    reads="mm2-quarantine.A.internal, progress, the offset map and the ends of remote topics on the target.",
    writes="remote topics, progress, and what is taken out of mm2-quarantine.A.internal, on the target.",
    different="the target still refuses a record, which stays there",
)
@quarantine.command()
@_SHARED
@dry_run()
@OUTPUT
def replay(*, files: Sequence[Path], defines: Sequence[str], name: str, names: str, dry_run: bool, output: str) -> None:
    """Writes records in quarantine to their remote topics, each once, and takes them out of quarantine.

    They lie at the end, behind what was copied since. The flow must be stopped; the source may be down. A record that
    the target still refuses stays there.
    """
    done: list[Replayed] = []
    with told():
        try:
            for one in replay_quarantine(flow_of(files, defines, name), topics_of(names), is_dry_run=dry_run):
                done.append(one)
                if output == "text":
                    click.echo(f"{_place(one.entry)}: {_outcome(one, dry_run)}")
        finally:  # what was replayed before an error stays so, and is told
            if output == "json":
                print_json([_replayed_as_json(one) for one in done])
    if any(one.refusal is not None for one in done):
        raise SystemExit(DIFFERENT)


@manual(
    "srm-control quarantine drop --config srm.properties --flow 'A->B' --topic orders",
    reads=_READS,
    writes="what is taken out of mm2-quarantine.A.internal on the target.",
)
@quarantine.command()
@_SHARED
@dry_run()
@YES
@OUTPUT
def drop(
    *, files: Sequence[Path], defines: Sequence[str], name: str, names: str, dry_run: bool, yes: bool, output: str
) -> None:
    """Forgets records in quarantine for good: they will not be on the target."""
    is_text = output == "text"
    with told():
        settings = flow_of(files, defines, name)
        entries = list_quarantine(settings, topics_of(names))
        for entry in entries:
            click.echo(f"{_place(entry)}: {entry.why}", err=not is_text)
        is_forgotten = bool(entries) and not dry_run
        if is_forgotten:
            if not yes:
                click.confirm(f"Forget {count(len(entries), 'record')}?", abort=True, err=not is_text)
            drop_from_quarantine(settings, entries)
    if not is_text:
        print_json({"is_forgotten": is_forgotten, "records": [_as_json(entry) for entry in entries]})
    elif is_forgotten:
        click.echo(f"forgotten: {count(len(entries), 'record')}")


def _place(entry: QuarantinedRecord) -> str:
    return f"{entry.place.partition} offset {entry.place.offset}"


def _outcome(done: Replayed, is_dry_run: bool) -> str:
    if done.refusal is not None:
        return f"stays in quarantine: {done.refusal}"
    if done.downstream is None:
        return f"would be written to {done.remote}"
    end = "would be taken out of quarantine" if is_dry_run else "is out of quarantine"
    return f"is at offset {done.downstream} of {done.remote} and {end}"


def _as_json(entry: QuarantinedRecord) -> dict[str, object]:
    place = entry.place
    return {
        "flow": str(place.flow),
        "topic": place.partition.topic,
        "topic_id": place.topic_id,
        "partition": place.partition.partition,
        "offset": place.offset,
        "timestamp": entry.timestamp if entry.timestamp >= 0 else None,
        "timestamp_type": "LogAppendTime" if entry.is_append_time else "CreateTime",
        "size": entry.size,
        "parked_at": entry.quarantined_at,
        "reason": entry.why.sentence,
        "kind": entry.why.kind.value,
    }


def _replayed_as_json(done: Replayed) -> dict[str, object]:
    """`target_offset` is null where there is no copy, or none yet; `refusal` says why a record stays."""
    return {
        **_as_json(done.entry),
        "target_topic": done.remote.topic,
        "target_offset": done.downstream,
        "refusal": done.refusal,
    }
