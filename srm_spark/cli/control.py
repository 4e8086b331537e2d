"""`srm-control`: commands for people. They render what the packages below report and decide nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from srm_spark.cli.groups import groups, offsets
from srm_spark.cli.losses import losses
from srm_spark.cli.moves import failback, failover
from srm_spark.cli.options import CONFIG, DEFINES, ERROR, FILE, OUTPUT, VERSION, pairs
from srm_spark.cli.plan import plan
from srm_spark.cli.quarantine import quarantine
from srm_spark.cli.rebuild import rebuild
from srm_spark.cli.reload import read_pid, signal_driver
from srm_spark.cli.translate import translate
from srm_spark.config.document import json_schema, template
from srm_spark.config.explain import Explanation, explain, resolved
from srm_spark.config.load import Loaded, load
from srm_spark.config.rights import rights_of_flow, rights_of_heartbeats
from srm_spark.core.model import Flow
from srm_spark.core.wording import count
from srm_spark.errors import ConfigError, SrmError

FILES = click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE…"
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", "files", multiple=True, type=FILE, help="For offsets and groups, where it may also stand.")
@VERSION
@click.pass_context
def main(context: click.Context, files: Sequence[Path]) -> None:
    """Looks at and steers srm-spark."""
    if files:  # SRM's scripts write it in front of the command
        of_offsets = {"export": {"files": files}, "translate": {"files": files}}
        parked = {name: {"files": files} for name in ("list", "replay", "drop")}
        moves = {"failover": {"files": files}, "failback": {"files": files}}
        context.default_map = {
            "offsets": of_offsets,
            "groups": {"status": {"files": files}},
            "losses": {"files": files},
            "plan": {"files": files},
            "quarantine": parked,
            **moves,
        }


main.add_command(failback)
main.add_command(failover)
main.add_command(groups)
main.add_command(losses)
main.add_command(offsets)
main.add_command(plan)
main.add_command(quarantine)
offsets.add_command(rebuild)
offsets.add_command(translate)


@main.group()
def config() -> None:
    """Checks and explains configuration files; touches no cluster."""


def _load(files: Sequence[Path], defines: Sequence[str], *, strict: bool = False) -> Loaded:
    return load(files, pairs(defines), strict=strict)


@config.command()
@FILES
@DEFINES
@click.option("--strict", is_flag=True, help="An unknown key is a problem, not a warning.")
@OUTPUT
def validate(*, files: Sequence[Path], defines: Sequence[str], strict: bool, output: str) -> None:
    """Prints every problem of the files at once. Exit code 0: usable, 1: not, 2: wrong command line."""
    loaded = _load(files, defines, strict=strict)
    problems = [str(problem) for problem in loaded.report.problems]
    warnings = loaded.report.warnings
    flows = [str(flow.flow) for flow in loaded.settings.flows]
    if output == "json":
        answer = {"problems": problems, "warnings": warnings, "dialect": loaded.settings.dialect, "flows": flows}
        click.echo(json.dumps(answer, indent=2))
    else:
        for warning in warnings:
            click.echo(f"warning: {warning}", err=True)
        for problem in problems:
            click.echo(f"error: {problem}", err=True)
        if not problems:
            click.echo(f"usable: {count(len(flows), 'flow')} ({', '.join(flows)}), dialect {loaded.settings.dialect}")
    raise SystemExit(1 if problems else 0)


@config.command()
@FILES
@DEFINES
@click.option("--flow", "flow_name", metavar="A->B", help="Only this flow.")
@click.option("--explain", "key", metavar="KEY", help="Only this property, with everything that wanted to set it.")
@click.option("--resolved/--written", default=True, help="What counts in the end (default), or the lines of the files.")
@OUTPUT
def show(
    *,
    files: Sequence[Path],
    defines: Sequence[str],
    flow_name: str | None,
    key: str | None,
    resolved: bool,
    output: str,
) -> None:
    """Prints what counts for each flow, and which level of which line decided it. Secrets are masked."""
    loaded = _load(files, defines)
    if not resolved:
        for entry in loaded.sources.entries.values():
            click.echo(f"{entry.place}: {entry.key} = {entry.shown}")
        return
    try:
        found = _explanations(loaded, flow_name, key)
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    if output == "json":
        click.echo(json.dumps([_as_json(explanation) for explanation in found], indent=2))
    else:
        _print(found, with_losers=key is not None)


def _explanations(loaded: Loaded, flow_name: str | None, key: str | None) -> list[Explanation]:
    aliases = list(loaded.settings.clusters)
    flows = [flow.flow for flow in loaded.settings.flows]
    if flow_name is not None:
        known = {str(Flow(source, target)): Flow(source, target) for source in aliases for target in aliases}
        if flow_name not in known:
            raise click.UsageError(f"--flow {flow_name}: the clusters are {', '.join(aliases) or 'not named'}")
        flows = [known[flow_name]]
    if key is not None:
        return [explain(loaded, flow, key) for flow in flows]
    return [explanation for flow in flows for explanation in resolved(loaded, flow)]


def _as_json(explanation: Explanation) -> dict[str, object]:
    def candidate(index: int) -> dict[str, str]:
        found = (explanation.won, *explanation.lost)[index]
        return {"value": found.value, "level": found.level, "key": found.key, "place": found.place}

    lost = [candidate(index + 1) for index in range(len(explanation.lost))]
    return {"flow": str(explanation.flow), "name": explanation.name, "won": candidate(0), "lost": lost}


def _print(found: Sequence[Explanation], *, with_losers: bool) -> None:
    width = max((len(explanation.name) for explanation in found), default=0)
    flow: Flow | None = None
    for explanation in found:
        if explanation.flow != flow:
            flow = explanation.flow
            click.echo(f"{flow}")
        for candidate in (explanation.won, *(explanation.lost if with_losers else ())):
            name = explanation.name if candidate is explanation.won else "  lost:"
            written = f"{candidate.key} at {candidate.place}" if candidate.key else ""
            click.echo(f"  {name:<{width}}  {candidate.value}  [{' '.join(filter(None, (candidate.level, written)))}]")


@config.command()
@FILES
@DEFINES
@OUTPUT
def rights(*, files: Sequence[Path], defines: Sequence[str], output: str) -> None:
    """Prints what each flow must be allowed to do on its clusters, as arguments of kafka-acls --add."""
    loaded = _load(files, defines)
    if loaded.report.problems:
        raise click.ClickException(str(loaded.report.problems[0]))
    beats = [right for beat in loaded.settings.heartbeats for right in rights_of_heartbeats(beat)]
    found = dict.fromkeys([right for flow in loaded.settings.flows for right in rights_of_flow(flow)] + beats)
    if output == "json":
        click.echo(json.dumps([asdict(right) for right in found], indent=2))
        return
    for alias in loaded.settings.clusters:
        for right in (right for right in found if right.alias == alias):
            click.echo(f"{alias}: {right.command}  # {right.why}")


@config.command()
@CONFIG
@DEFINES
@click.option("--pid", type=int, help="The driver's process id.")
@click.option("--pid-file", type=FILE, help="Where srm-driver --pid-file wrote it.")
def apply(*, files: Sequence[Path], defines: Sequence[str], pid: int | None, pid_file: Path | None) -> None:
    """Checks the files of a running driver and lets it read them again; files with a problem change nothing."""
    if (pid is None) == (pid_file is None):
        raise click.UsageError("write --pid N or --pid-file FILE")
    loaded = _load(files, defines)
    for warning in loaded.report.warnings:
        click.echo(f"warning: {warning}", err=True)
    for problem in loaded.report.problems:
        click.echo(f"error: {problem}", err=True)
    if loaded.report.problems:
        click.echo("nothing was changed", err=True)
        raise SystemExit(ERROR)
    try:
        number = read_pid(pid_file) if pid_file is not None else int(pid or 0)
        signal_driver(number, files)
    except SrmError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"driver {number} reads its files again; its log says what starts, stops and starts again")


@config.command("template")
@click.option("--json-schema", "schema", is_flag=True, help="A JSON schema for editors of YAML files instead.")
def print_template(schema: bool) -> None:
    """Prints a commented file with everything that can be set."""
    click.echo(json.dumps(json_schema(), indent=2) if schema else template(), nl=False)
