"""`srm-control verify`: whether copies are what their records are, by content."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from srm_spark.cli.manual import manual
from srm_spark.cli.options import (
    CONFIG,
    DEFINES,
    DIFFERENT,
    ERROR,
    FILE,
    FLOW,
    OK,
    OUTPUT,
    TOPIC,
    flows_in,
    print_json,
    settings_of,
    told,
    topics_of,
)
from srm_spark.cli.statements import NO_KEY
from srm_spark.config.settings import FlowSettings, Settings
from srm_spark.core.model import TopicPartition
from srm_spark.core.moments import moment_of, time_of
from srm_spark.core.verification import GOOD, MOST_FINDINGS, Finding
from srm_spark.core.wording import count
from srm_spark.look.verification_document import sign_verification, verification_document
from srm_spark.look.verified_before import verified_before
from srm_spark.look.verify import Say, Verification, Verified
from srm_spark.look.verify import verify as verified
from srm_spark.statements import Seal, page_path, seal_of

_SAY_SECONDS = 5.0
_SHOWN = 20
"""Lines for differences of one partition."""


def _moment(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    try:
        return None if text is None else moment_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@manual(
    "srm-control verify --config srm.properties --flow 'A->B'",
    "srm-control verify --config srm.properties --topic orders --partition 3 -o json",
    "srm-control verify --config srm.properties --flow 'A->B' --state verified.json --statement today.intoto.jsonl",
    reads="all records of these topics on both sides, the offset map, lists and the quarantine.",
    writes="nothing, or the files of --state and --statement, and the page of the latter.",
    ok="every record that was copied, or of the sample, is equal to its copy, or it is explained why it has none",
    error="an error: a side that cannot be read is never taken for equal",
    different="there are differences, nothing was compared, or not everything that was copied",
)
@click.command()
@CONFIG
@DEFINES
@FLOW
@TOPIC
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Only this partition.")
@click.option("--since", metavar="TIME", callback=_moment, help="Only records from then on, as 2026-11-27T08:00:00Z.")
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Only N records, chosen by chance.")
@click.option("--limit", type=click.IntRange(min=1), metavar="BYTES", help="Read so many bytes a second at most.")
@click.option("--state", type=FILE, help="Go on where it says that everything was equal, and note how far this comes.")
@click.option("--statement", type=FILE, help="Sign what was found with statement.key, and keep it there.")
@OUTPUT
def verify(
    *,
    files: Sequence[Path],
    defines: Sequence[str],
    name: str | None,
    names: str,
    partition: int | None,
    since: int | None,
    sample: int | None,
    limit: int | None,
    state: Path | None,
    statement: Path | None,
    output: str,
) -> None:
    """Reads both sides and compares each record with its copy: key, value, headers, timestamp, and where it lies.

    The exact offset map says which record of the target is the copy of which one of the source. What is not equal is
    named: lost, changed, swapped, doubled or foreign. What has no copy for a reason that is known is counted by that
    reason. The driver may go on meanwhile.
    """
    if sample is not None and state is not None:
        raise click.UsageError("a sample is no stretch behind which a later one could go on: --sample or --state")
    if since is not None and state is not None:
        raise click.UsageError(
            "what lies in front of --since is not compared, so no later one may go on behind it: --since or --state"
        )
    with told():
        settings = settings_of(files, defines)
        flows = flows_in(settings, name, exit_code=ERROR)
        of_one = None if state is None else _one_flow(flows, "a state file").flow
        seal = None if statement is None else _seal(settings, flows, statement)
        before = None if state is None or of_one is None else verified_before(state, of_one, waits=seal is not None)
        takes = topics_of(names).matches
        found = [
            verified(
                one,
                takes,
                partition,
                since=since,
                rate=limit,
                roots=seal is not None and sample is None,
                sample=sample,
                before=before,
                say=_progress(),
            )
            for one in flows
        ]
    # In front of what may fail: what was found is worth more than its signature.
    if output == "json":
        print_json({"flows": [verification_document(one) for one in found]})
    else:
        for one in found:
            _show(one)
    with told():
        if seal is not None and statement is not None:
            asked: dict[str, object] = {
                "topics": names,
                "partition": partition,
                "since": None if since is None else time_of(since),
                "sample": sample,
                "goes_on": state is not None,
            }
            sign_verification(seal, statement, flows[0], found[0], asked)
            click.echo(f"the statement is {statement}, and its page {page_path(statement).name}", err=True)
            if before is not None:
                before.keep()
    raise SystemExit(OK if all(one.verdict in GOOD for one in found) else DIFFERENT)


def _seal(settings: Settings, flows: Sequence[FlowSettings], path: Path) -> Seal:
    """Everything that signing needs, before the first record is read."""
    _one_flow(flows, "a statement")
    if not path.absolute().parent.is_dir():
        raise click.UsageError(f"--statement {path}: there is no such directory")
    seal = seal_of(settings)
    if seal is None:
        raise click.UsageError(f"--statement needs a key: {NO_KEY}")
    return seal


def _one_flow(flows: Sequence[FlowSettings], what: str) -> FlowSettings:
    if len(flows) != 1:
        raise click.UsageError(f"{what} is of one flow: name it with --flow")
    return flows[0]


def _progress() -> Say:
    said_at = time.monotonic()

    def say(partition: TopicPartition, records: int) -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= _SAY_SECONDS:
            said_at = time.monotonic()
            click.echo(f"{partition}: {count(records, 'record')} read", err=True)

    return say


def _show(found: Verification) -> None:
    table = Table("topic", box=None)
    for title in ("partition", "from", "to", "equal", "explained", "different", "not yet copied"):
        table.add_column(title, justify="right")
    table.add_column("")
    for one in found.partitions:
        checked = one.checked
        numbers = (
            one.partition.partition,
            one.source.start,
            one.source.end,
            checked.equal,
            checked.explained.total(),
            checked.differences.total(),
            one.not_yet,
        )
        table.add_row(one.partition.topic, *map(str, numbers), one.unchecked or one.verdict.value)
    click.echo(f"flow {found.flow}")
    if table.rows:
        Console(width=None if sys.stdout.isatty() else 240).print(table, markup=False)
    for one in found.partitions:
        for line in lines(one):
            click.echo(line)
    records = count(sum(one.checked.equal for one in found.partitions), "record")
    click.echo(f"{found.verdict.value}: {records} of {count(len(found.partitions), 'partition')}, by content")
    if found.said_of_all is not None:
        click.echo(found.said_of_all)


def lines(one: Verified) -> list[str]:
    """What is to be said of a partition beside its numbers."""
    checked = one.checked
    said = [f"{one.partition}: {number} explained: {reason.value}" for reason, number in checked.explained.items()]
    found = _together(checked.findings)
    said += [f"{one.partition}: {each}" for each in found[:_SHOWN]]
    if checked.differences.total() > len(checked.findings) or len(found) > _SHOWN:
        total = ", ".join(f"{number} {kind.value}" for kind, number in checked.differences.items())
        said.append(f"{one.partition}: … in all {total}; -o json has the first {MOST_FINDINGS}, each by itself")
    if one.uncovered or checked.unknown:
        where = ", ".join(f"{hole.start} to {hole.end - 1}" for hole in one.uncovered)
        said.append(
            f"{one.partition}: not covered by the offset map: source offsets {where or 'none'}, "
            f"{count(checked.unknown, 'record')} met; somebody else has copied them; srm-control offsets rebuild may "
            "find where"
        )
    return said


def _together(findings: Iterable[Finding]) -> list[str]:
    """One line of those that follow one upon the other with the same words."""
    runs: list[list[Finding]] = []
    for one in findings:
        last = runs[-1][-1] if runs else None
        if last is not None and (last.kind, last.what) == (one.kind, one.what) and _follows(last, one):
            runs[-1].append(one)
        else:
            runs.append([one])
    return [_line(run[0], run[-1]) for run in runs]


def _follows(last: Finding, one: Finding) -> bool:
    return all(
        (before is None and after is None) or (before is not None and after == before + 1)
        for before, after in ((last.source, one.source), (last.target, one.target))
    )


def _line(first: Finding, last: Finding) -> str:
    places = [
        f"{side} offset {start}" if start == end else f"{side} offsets {start} to {end}"
        for side, start, end in (("source", first.source, last.source), ("target", first.target, last.target))
        if start is not None
    ]
    return f"{first.kind.value}: {', '.join(places)}: {first.what}"
