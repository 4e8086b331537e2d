"""How soon the first records are copied, by a program that starts. `python -m srm_spark.bench.start`"""

from __future__ import annotations

import time

import click

from srm_spark.bench.contenders import CONTENDERS, OURS, THEIRS
from srm_spark.bench.figures import spread
from srm_spark.bench.idle import Load, laid_out
from srm_spark.bench.processes import end_in_order


def starts(name: str, load: Load) -> list[float]:
    """Seconds until each partition has its record, from the very first start and from one behind a clean end."""
    seconds = []
    with laid_out(load) as (bed, job, names):
        for records in (1, 2):
            began = time.monotonic()
            with CONTENDERS[name](job):
                bed.await_copied(names, load.partitions, records)
                seconds.append(time.monotonic() - began)
            bed.write(names, load.partitions)
    return seconds


@click.command()
@click.option("--partitions", default=6, show_default=True, help="Of the one topic; a record waits in each of them.")
@click.option("--rounds", default=3, show_default=True, help="Of each program, in turns.")
def main(*, partitions: int, rounds: int) -> None:
    """Measure both programs, each on brokers of its own."""
    end_in_order()
    measured: dict[str, list[list[float]]] = {THEIRS: [], OURS: []}
    for _ in range(rounds):
        for name, of_program in measured.items():
            of_program.append(starts(name, Load(partitions=partitions)))
    for name, of_program in measured.items():
        first, again = (spread([one[number] for one in of_program]) for number in (0, 1))
        click.echo(f"{name:>14}: first start {_words(first)}, start behind a clean end {_words(again)}")


def _words(figures: dict[str, float]) -> str:
    return f"{figures['median']:.1f} s ({figures['min']:.1f} to {figures['max']:.1f})"


if __name__ == "__main__":
    main()
