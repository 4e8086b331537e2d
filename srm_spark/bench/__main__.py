"""`make bench`: the contenders in turn, some rounds, on the same two brokers; JSON, plots and docs/benchmarks.md."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from srm_spark.bench.contenders import FROM_A_BACKLOG, OURS, THEIRS
from srm_spark.bench.figures import merged
from srm_spark.bench.groups import Size, measure_groups
from srm_spark.bench.idle import Load, measure_idle
from srm_spark.bench.latency import RATES, SECONDS, latencies, with_half_of_maximum
from srm_spark.bench.page import render
from srm_spark.bench.processes import end_in_order
from srm_spark.bench.records import measure_workloads
from srm_spark.bench.regression import ratios, regressions
from srm_spark.bench.store import PAGE, keep, kept, machine
from srm_spark.bench.workloads import BY_NAME, short

PARTS = ("records", "latency", "idle", "groups")
QUICK = ("100 B", "1 KB")
QUICK_SCALE = 0.25
_QUICK_ROUNDS = 1


def chosen_in(text: str) -> list[str]:
    """Names of parts, and of workloads as they stand on the page or in short, with commas between them.

    Raises click.BadParameter for a name that there is not.
    """
    known = {**{part: part for part in PARTS}, **{short(name): name for name in BY_NAME}}
    names = [short(one) for one in text.split(",") if one.strip()]
    if unknown := [one for one in names if one not in known]:
        raise click.BadParameter(f"there is no {', no '.join(unknown)}; there are {', '.join(known)}")
    return [known[one] for one in names]


@click.command()
@click.option(
    "--only",
    "chosen",
    callback=lambda _context, _option, value: chosen_in(value),
    default=",".join(PARTS),
    show_default=True,
    help="These parts and workloads alone, with commas between them. Workloads are those of records: "
    f"{', '.join(map(short, BY_NAME))}.",
)
@click.option("--rate", "rates", type=int, multiple=True, help=f"Of latency. [default: {RATES}, half of the maximum]")
@click.option("--rounds", default=3, show_default=True, help="Runs of each contender.")
@click.option("--scale", default=1.0, show_default=True, help="Share of records, groups and seconds: a quick look.")
@click.option("--page", type=click.Path(path_type=Path), help="Bring this page, and the JSON beside it, up to date.")
@click.option("--quick", is_flag=True, help=f"Few records; fails where the ratios are worse than those beside {PAGE}.")
def bench(
    *,
    chosen: Collection[str],
    rates: tuple[int, ...],
    rounds: int,
    scale: float,
    page: Path | None,
    quick: bool,
) -> None:
    """Compare srm-spark with MirrorMaker 2. Each part, workload and rate is kept as soon as it is measured."""
    end_in_order()
    if quick:
        _quick(page)
        return
    figures: dict[str, Any] = {"machine": machine()}
    failed: list[str] = []

    def note(**part: Any) -> None:
        figures.update(merged(figures, part))
        if page is not None:
            keep(page, {"machine": figures["machine"], **part})

    workloads = [one for name, one in BY_NAME.items() if name in chosen or "records" in chosen]
    if workloads:
        for name, workload in measure_workloads(workloads, FROM_A_BACKLOG, rounds, scale, failed):
            note(workloads={name: workload})
    if "latency" in chosen:
        known = merged(kept(PAGE), figures).get("workloads", {})
        for rate in rates or with_half_of_maximum(known):
            note(latency={f"{rate}": latencies(rate, rounds, SECONDS * scale)})
    if "idle" in chosen:
        note(idle=measure_idle(Load(partitions=max(1, int(500 * scale)))))
    if "groups" in chosen:
        many = Size(topics=max(1, int(100 * scale)), partitions=100, groups=max(1, int(1000 * scale)))
        note(groups={**asdict(many), **asdict(measure_groups(many))})
    click.echo(render(figures))
    if failed:
        raise click.ClickException(f"not measured: {', '.join(failed)}; see above")


def _quick(page: Path | None) -> None:
    workloads = [BY_NAME[name] for name in QUICK]
    measured = ratios(dict(measure_workloads(workloads, (THEIRS, OURS), _QUICK_ROUNDS, QUICK_SCALE)))
    click.echo(json.dumps(measured, indent=2))
    if page is not None:
        keep(page, {"quick": measured})
        return
    known = kept(PAGE).get("quick")
    if known is None:
        raise click.ClickException(f"{PAGE.with_suffix('.json')} has no quick run; --quick --page {PAGE} keeps one")
    if worse := list(regressions(measured, known)):
        raise click.ClickException("\n".join(worse))


if __name__ == "__main__":
    bench()
