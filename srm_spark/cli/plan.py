"""`srm-control plan`, `apply` and `drift`: what would be changed on the clusters, the doing of it, and what differs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import click

from srm_spark.change.apply import Ready, apply_plan, check, is_all_done
from srm_spark.change.document import load_plan, plans_document, save_plan
from srm_spark.change.look import Rights, make_plan, rights_of
from srm_spark.change.planning import ChangePlan
from srm_spark.change.report import RunReport, load_report, report_document, report_path
from srm_spark.cli.interrupts import heard
from srm_spark.cli.manual import manual
from srm_spark.cli.options import (
    CONFIG,
    DEFINES,
    DIFFERENT,
    ERROR,
    FILE,
    FLOW,
    INTERRUPTED,
    OK,
    OUTPUT,
    YES,
    flow_in,
    flows_in,
    print_json,
    settings_of,
    told,
)
from srm_spark.cli.plan_view import drift_lines, plan_lines, report_lines, steps_lines
from srm_spark.config.settings import FlowSettings, HeartbeatSettings
from srm_spark.errors import SrmError
from srm_spark.flow.clusters import Clusters, connect

_NEVER = "no topic and no partition is ever deleted"


@manual(
    "srm-control plan --config srm.properties --flow 'A->B' --out plan.json",
    reads="topics, configs and ACLs of both clusters.",
    writes="the file of --out; nothing on a cluster.",
    different="a flow waits until target.renamed.policy says which way to go",
)
@click.command()
@CONFIG
@DEFINES
@FLOW
@click.option("--out", type=FILE, help="Write the plan to this file, for srm-control apply.")
@click.option("--prune", is_flag=True, help="Take back what was made here and whose source is gone.")
@OUTPUT
def plan(
    *, files: Sequence[Path], defines: Sequence[str], name: str | None, out: Path | None, prune: bool, output: str
) -> None:
    """Says what would be created and changed on the clusters, what is left out, and what is lost.

    Internal topics, remote topics, partitions, configs and ACLs, each with its reason; what a changed replication
    policy means. No plan ever deletes a topic.
    """
    with told():
        settings = settings_of(files, defines)
        flows = flows_in(settings, name, exit_code=ERROR)
        plans = [_planned(one, settings.heartbeats, prune=prune, rights=rights_of)[1] for one in flows]
        document = plans_document(plans, prune=prune)
        if out is not None:
            save_plan(out, document)
    if output == "json":
        print_json(document)
    else:
        for one in plans:
            click.echo("\n".join(plan_lines(one)))
        click.echo(_NEVER)
    if out is not None:
        click.echo(f"the plan is in {out}; srm-control apply {out} does it", err=True)
    raise SystemExit(DIFFERENT if any(one.is_open for one in plans) else OK)


@manual(
    "srm-control drift --config srm.properties -o json",
    reads="topics, configs and ACLs of both clusters.",
    ok="nothing differs",
    different="something differs",
)
@click.command()
@CONFIG
@DEFINES
@FLOW
@OUTPUT
def drift(*, files: Sequence[Path], defines: Sequence[str], name: str | None, output: str) -> None:
    """Says what differs now.

    What apply would change, what was set by hand and is kept, and configs that lose records.
    """
    with told():
        settings = settings_of(files, defines)
        flows = flows_in(settings, name, exit_code=ERROR)
        plans = [_planned(one, settings.heartbeats, prune=False)[1] for one in flows]
    if output == "json":
        print_json(plans_document(plans, prune=False))
    else:
        for one in plans:
            click.echo("\n".join(drift_lines(one)))
    raise SystemExit(OK if all(one.is_alike for one in plans) else DIFFERENT)


@manual(
    "srm-control apply plan.json --config srm.properties",
    reads="the plan and the report beside it, and both clusters.",
    writes="topics, configs and ACLs of the target, internal topics of both clusters, and the report.",
    ok="everything is done",
    different="a step was refused",
    interrupted="stopped by Ctrl-C; the same command goes on",
)
@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="PLAN")
@CONFIG
@DEFINES
@YES
@OUTPUT
def apply(*, file: Path, files: Sequence[Path], defines: Sequence[str], yes: bool, output: str) -> None:
    """Does what a plan of srm-control plan --out says, and nothing else, if it is still true.

    Stage by stage: internal topics, remote topics, partitions, configs, ACLs, quotas. A report beside the plan is
    written before and after each one: run the same command again to finish what was interrupted or refused. Where the
    clusters or the configuration are others than when the plan was made, nothing is changed.
    """
    with told():
        planned = load_plan(file)
        path = report_path(file)
        before = load_report(path, planned.id)
        settings = settings_of(files, defines)
        flows = [flow_in(settings, one.flow, exit_code=ERROR) for one in planned.flows]
        ready = [Ready(*_planned(one, settings.heartbeats, prune=planned.prune)) for one in flows]
        report = check(planned, before, {str(one.fresh.world.flow): one.fresh for one in ready})
        if is_all_done(ready, before):
            _print(report, output, "nothing is left to do; nothing was changed")
            raise SystemExit(OK)
        if any(one.fresh.steps for one in ready):
            for one in ready:
                click.echo("\n".join(steps_lines(one.fresh)), err=True)
            click.echo(_NEVER, err=True)
            if not yes and not click.confirm("Do this?", err=True):
                raise click.ClickException("nothing was changed")
        else:
            click.echo("every step is done; what an earlier run had to record is recorded", err=True)
        try:
            with heard():
                report = apply_plan(ready, report, path, lambda text: click.echo(f"  {text}", err=True))
        except (KeyboardInterrupt, SrmError) as stop:
            click.echo(f"stopped; {path} says how far it came, and the same command goes on", err=True)
            if isinstance(stop, SrmError):
                raise
            raise SystemExit(INTERRUPTED) from None
    _print(report, output, f"the report is in {path}")
    raise SystemExit(DIFFERENT if report.refused else OK)


def _planned(
    settings: FlowSettings, beats: Collection[HeartbeatSettings], *, prune: bool, rights: Rights = lambda _: ()
) -> tuple[Clusters, ChangePlan]:
    clusters = connect(settings)
    return clusters, make_plan(clusters, prune=prune, rights=rights, heartbeats=beats)


def _print(report: RunReport, output: str, end: str) -> None:
    if output == "json":
        print_json(report_document(report))
    for line in report_lines(report) if output == "text" else ():
        click.echo(line)
    click.echo(end, err=output == "json")
