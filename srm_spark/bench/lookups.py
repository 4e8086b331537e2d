"""`python -m srm_spark.bench.lookups`: what the translation of many groups costs. Synthetic maps, no cluster."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import click
import psutil

from srm_spark.core.checkpoints import translate
from srm_spark.core.model import Interval, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap, split
from srm_spark.core.translation import IntervalMap

_STEP = 10
"""Source offsets from one interval to the next: nine records and a marker."""


def synthetic(intervals: int, first: int) -> PartitionMap:
    """The map of a partition of transactions: `intervals` of nine records from target offset `first`, with markers."""
    intervals_made = tuple(Interval(_STEP * n, first + (_STEP - 1) * n, _STEP - 1) for n in range(intervals))
    source, target_end = OffsetRange(0, _STEP * intervals), first + (_STEP - 1) * intervals
    made = PartitionMap("id")
    for part in split(IntervalMap(source, target_end, intervals_made)):
        made.put(part)
    return made


def measure(maps: Sequence[PartitionMap], groups: int) -> list[float]:
    """CPU seconds of each group, which stands on every partition, each group somewhere else."""
    took = []
    for group in range(groups):
        share = (group + 1) / (groups + 1)
        began = time.process_time()
        for chain in maps:
            source, end = chain.source, chain.target_end
            assert source is not None
            assert end is not None
            if translate(chain, int(source.end * share), end).downstream is None:
                raise AssertionError("a position within the map has no translation")
        took.append(time.process_time() - began)
    return took


@click.command()
@click.option("--partitions", default=10_000, show_default=True)
@click.option("--groups", default=1_000, show_default=True, help="Each stands on all partitions.")
@click.option("--intervals", default=1, show_default=True, help="Of each partition; one is a partition without gaps.")
def lookups(*, partitions: int, groups: int, intervals: int) -> None:
    """Make maps, translate every group on every partition, and print CPU time and memory."""
    process = psutil.Process()
    before = _mebibytes(process)
    maps = {TopicPartition("t", number): synthetic(intervals, number) for number in range(partitions)}
    click.echo(f"{_mebibytes(process) - before:10.1f} MiB for {partitions} maps of {intervals} intervals")
    took = measure(list(maps.values()), groups)
    click.echo(f"{statistics.median(took) * 1e3:10.1f} ms to translate a group on {partitions} partitions (median)")
    click.echo(f"{sum(took):10.1f} s for {groups} groups, {partitions * groups} positions")
    click.echo(f"{sum(took) / partitions / groups * 1e6:10.2f} µs for one position")
    click.echo(f"{_mebibytes(process) - before:10.1f} MiB more than before the maps were made")


def _mebibytes(process: psutil.Process) -> float:
    return float(process.memory_info().rss / 2**20)


if __name__ == "__main__":
    lookups()
