"""`srm-control config`: checks and explains configuration files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from srm_spark.cli.manual import manual, overview
from srm_spark.cli.options import (
    CONFIG,
    DEFINES,
    ERROR,
    FILE,
    FLOW,
    OUTPUT,
    loaded,
    print_json,
    told,
    unknown_flow,
)
from srm_spark.cli.reload import read_pid, signal_driver
from srm_spark.config.document import json_schema, template
from srm_spark.config.explain import Explanation, explain, resolved
from srm_spark.config.load import Loaded
from srm_spark.config.rights import rights_of_flow, rights_of_heartbeats, rights_to_steer
from srm_spark.core.model import Flow
from srm_spark.core.wording import count

FILES = click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE…"
)
_FILES_ONLY = "the files; no cluster."


@overview("srm-control config validate srm.properties")
@click.group()
def config() -> None:
    """Checks and explains configuration files; touches no cluster."""


@manual(
    "srm-control config validate srm.properties --strict",
    reads=_FILES_ONLY,
    ok="the files can be used",
    error="they cannot; every problem is printed",
)
@config.command()
@FILES
@DEFINES
@click.option("--strict", is_flag=True, help="An unknown key is a problem, not a warning.")
@OUTPUT
def validate(*, files: Sequence[Path], defines: Sequence[str], strict: bool, output: str) -> None:
    """Prints every problem of the files at once."""
    found = loaded(files, defines, strict=strict)
    problems = [str(problem) for problem in found.report.problems]
    warnings = found.report.warnings
    flows = [str(flow.flow) for flow in found.settings.flows]
    if output == "json":
        answer = {"problems": problems, "warnings": warnings, "dialect": found.settings.dialect, "flows": flows}
        print_json(answer)
    else:
        for warning in warnings:
            click.echo(f"warning: {warning}", err=True)
        for problem in problems:
            click.echo(f"error: {problem}", err=True)
        if not problems:
            click.echo(f"usable: {count(len(flows), 'flow')} ({', '.join(flows)}), dialect {found.settings.dialect}")
    raise SystemExit(1 if problems else 0)


@manual(
    "srm-control config show srm.properties --flow 'A->B' --explain topics",
    reads=_FILES_ONLY,
)
@config.command()
@FILES
@DEFINES
@FLOW
@click.option("--explain", "key", metavar="KEY", help="Only this property, with everything that wanted to set it.")
@click.option("--resolved/--written", default=True, help="What counts in the end (default), or the lines of the files.")
@OUTPUT
def show(
    *,
    files: Sequence[Path],
    defines: Sequence[str],
    name: str | None,
    key: str | None,
    resolved: bool,
    output: str,
) -> None:
    """Prints what counts for each flow, and which level of which line decided it. Secrets are masked."""
    found = loaded(files, defines)
    if not resolved:
        entries = found.sources.entries.values()
        if output == "json":
            print_json([{"place": each.place, "key": each.key, "value": each.shown} for each in entries])
        else:
            for entry in entries:
                click.echo(f"{entry.place}: {entry.key} = {entry.shown}")
        return
    with told():
        explanations = _explanations(found, name, key)
    if output == "json":
        print_json([_as_json(explanation) for explanation in explanations])
    else:
        _print(explanations, with_losers=key is not None)


def _explanations(loaded: Loaded, name: str | None, key: str | None) -> list[Explanation]:
    aliases = list(loaded.settings.clusters)
    flows = [flow.flow for flow in loaded.settings.flows]
    if name is not None:
        known = {str(Flow(here, there)): Flow(here, there) for here in aliases for there in aliases if here != there}
        if name not in known:
            raise unknown_flow(name, known, what="a flow between the clusters of these files")
        flows = [known[name]]
    if key is not None:
        return [explain(loaded, flow, key) for flow in flows]
    return [explanation for flow in flows for explanation in resolved(loaded, flow)]


def _as_json(explanation: Explanation) -> dict[str, object]:
    def candidate(index: int) -> dict[str, str]:
        chosen = (explanation.won, *explanation.lost)[index]
        return {"value": chosen.value, "level": chosen.level, "key": chosen.key, "place": chosen.place}

    lost = [candidate(index + 1) for index in range(len(explanation.lost))]
    return {
        "flow": str(explanation.flow),
        "name": explanation.name,
        "won": candidate(0),
        "lost": lost,
        "rule": explanation.rule or None,
    }


def _print(explanations: Sequence[Explanation], *, with_losers: bool) -> None:
    width = max((len(explanation.name) for explanation in explanations), default=0)
    flow: Flow | None = None
    for explanation in explanations:
        if explanation.flow != flow:
            flow = explanation.flow
            click.echo(f"{flow}")
        for candidate in (explanation.won, *(explanation.lost if with_losers else ())):
            name = explanation.name if candidate is explanation.won else "  lost:"
            written = f"{candidate.key} at {candidate.place}" if candidate.key else ""
            click.echo(f"  {name:<{width}}  {candidate.value}  [{' '.join(filter(None, (candidate.level, written)))}]")
        if with_losers and explanation.rule:
            click.echo(f"  rule: {explanation.rule}")


@manual("srm-control config rights srm.properties", reads=_FILES_ONLY)
@config.command()
@FILES
@DEFINES
@OUTPUT
def rights(*, files: Sequence[Path], defines: Sequence[str], output: str) -> None:
    """Prints what each flow, and who steers it, must be allowed on its clusters, as arguments of kafka-acls --add."""
    found = loaded(files, defines)
    if found.report.problems:
        raise click.ClickException(str(found.report.problems[0]))
    beats = [right for beat in found.settings.heartbeats for right in rights_of_heartbeats(beat)]
    flows = found.settings.flows
    of_flows = [right for flow in flows for right in (*rights_of_flow(flow), *rights_to_steer(flow))]
    needed = dict.fromkeys([*of_flows, *beats])
    if output == "json":
        print_json([asdict(right) for right in needed])
        return
    for alias in found.settings.clusters:
        for right in (right for right in needed if right.alias == alias):
            click.echo(f"{alias}: {right.command}  # {right.why}")


@manual(
    "srm-control config apply --config srm.properties --pid-file srm.pid",
    reads="the files, and the process id of the driver.",
    writes="nothing; sends SIGHUP to the driver, on this machine.",
    error="an error, or a problem of the files; the driver goes on as before",
)
@config.command()
@CONFIG
@DEFINES
@click.option("--pid", type=int, help="The driver's process id.")
@click.option("--pid-file", type=FILE, help="Where srm-driver --pid-file wrote it.")
@OUTPUT
def apply(
    *, files: Sequence[Path], defines: Sequence[str], pid: int | None, pid_file: Path | None, output: str
) -> None:
    """Checks the files of a running driver and lets it read them again; files with a problem change nothing."""
    if (pid is None) == (pid_file is None):
        raise click.UsageError("write --pid N or --pid-file FILE")
    found = loaded(files, defines)
    for warning in found.report.warnings:
        click.echo(f"warning: {warning}", err=True)
    for problem in found.report.problems:
        click.echo(f"error: {problem}", err=True)
    problems, warnings = [str(problem) for problem in found.report.problems], found.report.warnings
    if problems:
        click.echo("nothing was changed", err=True)
        if output == "json":
            print_json({"problems": problems, "warnings": warnings, "pid": None})
        raise SystemExit(ERROR)
    with told():
        number = read_pid(pid_file) if pid_file is not None else int(pid or 0)
        signal_driver(number, files)
    if output == "json":
        print_json({"problems": [], "warnings": warnings, "pid": number})
    else:
        click.echo(f"driver {number} reads its files again; its log says what starts, stops and starts again")


@manual(
    "srm-control config template > srm.properties",
    "srm-control config template --json-schema > srm.schema.json",
    reads="nothing.",
)
@config.command("template")
@click.option("--json-schema", "schema", is_flag=True, help="A JSON schema for editors of YAML files instead.")
def print_template(schema: bool) -> None:
    """Prints a commented file with everything that can be set."""
    click.echo(json.dumps(json_schema(), indent=2) if schema else template(), nl=False)
