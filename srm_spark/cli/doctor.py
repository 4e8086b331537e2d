"""`srm-driver doctor`: prints what `srm_spark.doctor` found; `srm-service doctor` prints alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console
from rich.text import Text

from srm_spark.cli.manual import manual
from srm_spark.cli.options import DEFINES, ERROR, FLOWS, OK, OUTPUT, config, pairs
from srm_spark.core.wording import count
from srm_spark.doctor import Finding, Health, examine

_STYLES = {Health.OK: "green", Health.WARNED: "yellow", Health.FAILED: "bold red", Health.UNKNOWN: "yellow"}


@manual(
    "srm-driver doctor --config srm.properties",
    "srm-driver doctor --config srm.properties --flow 'A->B' -o json",
    reads="this machine; with --config the clusters of each flow, too: brokers, topics, permissions.",
    ok="nothing failed; unknown is not failed",
    error="something failed, and its remedy is printed",
)
@click.command()
@config("The file to check; repeatable.", required=False)
@FLOWS
@DEFINES
@OUTPUT
@click.pass_context
def doctor(
    context: click.Context, *, files: tuple[Path, ...], flows: tuple[str, ...], defines: tuple[str, ...], output: str
) -> None:
    """Check this machine, and with --config a configuration and its clusters; change nothing."""
    before = context.parent.params if context.parent else {}
    files = (*before.get("files", ()), *files)
    flows, defines = (*before.get("flows", ()), *flows), (*before.get("defines", ()), *defines)
    answer(examine(files, pairs(defines), flows), output)


def answer(findings: Sequence[Finding], output: str) -> NoReturn:
    """Print what was found, as text or JSON, and end with the exit code that says whether something failed."""
    if output == "json":
        click.echo(json.dumps([{**asdict(finding), "health": finding.health.value} for finding in findings], indent=2))
    else:
        _print(findings)
    raise SystemExit(ERROR if any(finding.health is Health.FAILED for finding in findings) else OK)


def _print(findings: Sequence[Finding]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        mark = Text(f"{finding.health.value:<8}", style=_STYLES[finding.health])
        console.print(mark + Text(f"{finding.check}: {finding.found}", style=""))
        if finding.remedy:
            console.print(Text(f"{'':8}→ {finding.remedy}"))
    numbers = {health: sum(finding.health is health for finding in findings) for health in Health}
    words = {health: f"{number} {health.value}" for health, number in numbers.items()}
    words[Health.WARNED] = count(numbers[Health.WARNED], Health.WARNED.value)
    console.print(", ".join(words.values()))
