"""`srm-control status`: how flows are, asked of their clusters from any machine; also as a table that stays current."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import click
import yaml
from rich.console import Console
from rich.live import Live
from rich.text import Text

from srm_spark.cli.interrupts import heard
from srm_spark.cli.manual import manual
from srm_spark.cli.options import (
    CONFIG,
    DEFINES,
    DIFFERENT,
    ERROR,
    FLOW,
    INTERRUPTED,
    flows_of,
    output,
    print_json,
    told,
)
from srm_spark.cli.status_view import clock, documents, text
from srm_spark.look.flows import FlowLook, FlowReport, look_at

_WATCH_SECONDS = 2.0


@manual(
    "srm-control status --config srm.properties --watch",
    "srm-control status --config srm.properties --flow 'A->B' -o json",
    reads="progress and what drivers say, on the targets; how far topics go, on the sources.",
    different="a cluster does not answer, and what only it knows is unknown",
    interrupted="--watch, ended by Ctrl-C",
)
@click.command()
@CONFIG
@DEFINES
@FLOW
@click.option("--watch", "is_watch", is_flag=True, help="Show it again every 2 seconds, until Ctrl-C.")
@output("text", "wide", "json", "yaml", former=False)
def status(*, files: Sequence[Path], defines: Sequence[str], name: str | None, is_watch: bool, output: str) -> None:
    """Prints how flows are: who runs them, how far they are behind, what stands still and why; wide: each partition.

    Asks the clusters alone: no driver has to run, and the source may be down. What nobody knows now is unknown, with
    the moment since when, and never 0.
    """
    if is_watch and output not in ("text", "wide"):
        raise click.UsageError("--watch is a table: leave out -o, or write -o wide")
    with told(), looking(files, defines, name) as look:
        if is_watch:
            watch(look, is_wide=output == "wide")
            return
        reports = look()
    if output == "json":
        print_json(documents(reports))
    elif output == "yaml":
        click.echo(yaml.safe_dump(documents(reports), sort_keys=False, allow_unicode=True), nl=False)
    else:
        click.echo(text(reports, is_wide=output == "wide"))
    if not all(report.is_whole for report in reports):
        raise SystemExit(DIFFERENT)


@contextmanager
def looking(
    files: Sequence[Path], defines: Sequence[str], name: str | None
) -> Iterator[Callable[[], tuple[FlowReport, ...]]]:
    """What looks at the flows of the files, as often as it is called."""
    with ExitStack() as stack:
        looks = [
            stack.enter_context(closing(FlowLook(flow))) for flow in flows_of(files, defines, name, exit_code=ERROR)
        ]
        yield lambda: look_at(looks)


def watch(
    look: Callable[[], Sequence[FlowReport]],
    *,
    is_wide: bool,
    console: Console | None = None,
    rounds: Iterable[object] = itertools.count(),
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Show what `look` finds, once per round; on a terminal in place, else one below the other."""
    console = console or Console(file=sys.stdout, highlight=False, markup=False)
    with ExitStack() as stack:
        live = stack.enter_context(Live(console=console, auto_refresh=False)) if console.is_terminal else None
        try:
            for _ in rounds:
                with heard():
                    shown = f"{clock(int(time.time() * 1000))}\n{text(look(), is_wide=is_wide)}"
                if live is None:
                    console.out(shown, highlight=False)
                else:
                    live.update(Text(shown), refresh=True)
                wait(_WATCH_SECONDS)
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
