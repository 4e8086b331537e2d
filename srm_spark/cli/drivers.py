"""`srm-control drivers`: lead flows away from a host before it is taken down, and let it have some again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from srm_spark.cli.commands import REASON
from srm_spark.cli.interrupts import interrupted_with
from srm_spark.cli.lists import check_reason, who
from srm_spark.cli.manual import manual, overview
from srm_spark.cli.options import CONFIG, DEFINES, DIFFERENT, FLOW, OUTPUT, flows_of, print_json, several, told
from srm_spark.core.acts import Command, CommandKind, Scope
from srm_spark.core.wording import escaped
from srm_spark.flow.draining import Drained
from srm_spark.flow.draining import drain as carry_out

_READS = "mm2-control.A.internal, progress, and mm2-leases.A.internal, on the target of each flow."
_WRITES = "an act to mm2-control.A.internal on the target of each flow."
_OF_A_HOST = several(click.argument("host"), CONFIG, DEFINES, FLOW, REASON, OUTPUT)


@overview("srm-control drivers drain h1 --config srm.properties --reason 'new kernel'")
@click.group()
def drivers() -> None:
    """Says which drivers shall have no flows. Who has which is in `srm-control status`."""


@manual(
    "srm-control drivers drain h1 --config srm.properties --reason 'new kernel'",
    reads=_READS,
    writes=_WRITES,
    ok="no driver on that host has one of these flows",
    different="one of them stays there, or that is not known; which, and why, is printed",
)
@drivers.command()
@_OF_A_HOST
def drain(**options: Any) -> None:
    """Leads flows away from the drivers of HOST, to others that stand by; none comes back there until `return`.

    HOST is as `srm-control status` spells it. A flow for which nobody else stands by stays, and goes as soon as
    somebody does.
    """
    found = _run(CommandKind.DRAIN, **options)
    if any(one.waits is not None or one.failure is not None for one in found):
        raise SystemExit(DIFFERENT)


@manual(
    "srm-control drivers return h1 --config srm.properties",
    reads=_READS,
    writes=_WRITES,
    different="it was not drained for one of them, or that is not known",
)
@drivers.command("return")
@_OF_A_HOST
def take_back(**options: Any) -> None:
    """Ends a drain: drivers of HOST stand by for flows as all others do, and get their share."""
    found = _run(CommandKind.RETURN, **options)
    if any(one.decision is None or one.decision.declined is not None for one in found):
        raise SystemExit(DIFFERENT)


def _run(
    kind: CommandKind,
    *,
    host: str,
    files: Sequence[Path],
    defines: Sequence[str],
    name: str | None,
    reason: str,
    output: str,
) -> list[Drained]:
    check_reason(reason)
    if not host or host != host.strip() or not host.isprintable():
        raise click.UsageError(f"{host!r} is no name of a host; srm-control status has those of drivers")
    command = Command(kind, Scope(), int(time.time() * 1000), who(), reason, host=host)
    with told():
        flows = flows_of(files, defines, name)
        with interrupted_with("it may count all the same: srm-control history says"):
            found = carry_out(flows, command)
    if output == "json":
        print_json([_as_json(one, command) for one in found])
    else:
        for one in found:
            click.echo(f"{one.flow}: {_said(one, command)}")
    return found


def _said(one: Drained, command: Command) -> str:
    host = escaped(command.host)
    if one.decision is None or one.failure is not None:
        return f"not known: {one.failure}"
    if one.decision.declined is not None:
        return f"not done: {one.decision.declined}"
    if command.kind is CommandKind.RETURN:
        return f"{host} may have it again"
    if one.waits is not None:
        return f"stays at {one.owner}: {one.waits}"
    known = "" if one.is_known else ", of which no driver is heard"
    return f"not at {host}{known}; " + ("no driver has it" if one.owner is None else f"{one.owner} has it")


def _as_json(one: Drained, command: Command) -> dict[str, object]:
    decision = one.decision
    return {
        "flow": str(one.flow),
        "command": command.kind.value,
        "host": command.host,
        "is_changed": decision is not None and decision.is_due,
        "declined": None if decision is None else decision.declined,
        "owner": one.owner,
        "waits": one.waits,
        "is_known": one.is_known,
        "failure": one.failure,
    }
