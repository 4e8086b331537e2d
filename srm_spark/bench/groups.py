"""`python -m srm_spark.bench.groups`: what a round over all consumer groups costs, on real brokers.

The flow copies one record of every partition; then rounds are measured here, in a process that does nothing else.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from srm_spark.bench.bed import ALIAS, Bed
from srm_spark.bench.contenders import Job, srm_spark
from srm_spark.bench.idle import COPIED
from srm_spark.bench.processes import end_in_order
from srm_spark.config import load_settings
from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Committed, Groups
from srm_spark.core.model import TopicPartition
from srm_spark.errors import SrmError, TargetUnavailable
from srm_spark.flow.clusters import connect
from srm_spark.flow.groups.consumer_groups import ConsumerGroups
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.testing import LocalKafka


@dataclass(frozen=True)
class Size:
    """How much there is."""

    topics: int
    partitions: int
    """Of each topic."""
    groups: int
    """Each stands on all partitions of one topic."""


@dataclass(frozen=True)
class Rounds:
    """Seconds of the clock of three rounds, and the memory of the process that made them."""

    positions: int
    """Groups times the partitions that each one stands on."""
    first: float
    """Reads the offset map, and writes a checkpoint of every position."""
    quiet: float
    """Nothing has moved."""
    moved: float
    """Every tenth group has moved."""
    memory_mib: float
    """Most resident memory, without the child process that asks for offsets."""


def measure_groups(size: Size) -> Rounds:
    """Rounds over all groups of a flow."""
    names, partitions = [f"{COPIED}-{number}" for number in range(size.topics)], size.partitions
    with (
        tempfile.TemporaryDirectory(prefix="srm-groups-") as folder,
        LocalKafka(ALIAS, heap="3g", jvm_options=()) as source,
        LocalKafka("target", heap="3g", jvm_options=()) as target,
    ):
        bed = Bed(source.bootstrap_servers, target.bootstrap_servers)
        bed.create(names, partitions)
        bed.write(names, partitions)
        job = Job(ALIAS, f"{COPIED}-.*", source.bootstrap_servers, target.bootstrap_servers, Path(folder))
        keys = {"emit.checkpoints.enabled": "false", "admin.timeout.ms": "180000"}
        with srm_spark(job, keys):
            bed.await_copied(names, partitions)
        (flow,) = load_settings([job.config({**keys, "emit.checkpoints.enabled": "true"})]).flows
        return _rounds(flow, list(_positions(names, partitions, size.groups)))


CommittedGroup = tuple[str, dict[TopicPartition, Committed]]


def _positions(names: list[str], partitions: int, groups: int) -> Iterator[CommittedGroup]:
    for number in range(groups):
        topic = names[number % len(names)]
        yield f"group-{number}", {TopicPartition(topic, p): Committed(0) for p in range(partitions)}


def _rounds(flow: FlowSettings, positions: list[CommittedGroup]) -> Rounds:
    clusters = connect(flow)
    maps = OffsetMaps(clusters.target, flow.map_topic, "bench", TargetUnavailable)
    there, rounds = clusters.source.groups("READ"), ConsumerGroups(clusters, maps)
    there.active([group for group, _ in positions])  # waits until there are coordinators; a commit does not
    for group, offsets in positions:
        _commit(there, group, offsets)
    first, quiet = _timed(rounds), _timed(rounds)
    for group, offsets in positions[::10]:
        _commit(there, group, dict.fromkeys(offsets, Committed(1)))
    moved = _timed(rounds)
    assert rounds.report is not None
    translated = sum(position.checkpoint is not None for position in rounds.report.positions.known)
    wanted = sum(len(offsets) for _, offsets in positions)
    if translated != wanted:
        raise SrmError(f"{translated} of {wanted} positions were translated")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rounds.close()
    maps.close()
    return Rounds(wanted, first, quiet, moved, memory)


def _commit(groups: Groups, group: str, offsets: dict[TopicPartition, Committed]) -> None:
    refused = {str(partition): why for partition, why in groups.commit(group, offsets).items() if why is not None}
    if refused:
        raise SrmError(f"{group}: {next(iter(refused.items()))}")


def _timed(rounds: ConsumerGroups) -> float:
    began = time.monotonic()
    rounds.round()
    return time.monotonic() - began


@click.command()
@click.option("--topics", default=100, show_default=True)
@click.option("--partitions", default=100, show_default=True, help="Partitions of each topic.")
@click.option("--groups", default=1000, show_default=True, help="Each stands on all partitions of one topic.")
def main(*, topics: int, partitions: int, groups: int) -> None:
    """Measure rounds over consumer groups."""
    end_in_order()
    measured = measure_groups(Size(topics, partitions, groups))
    click.echo(f"{topics * partitions} partitions, {groups} groups, {measured.positions} positions")
    click.echo(f"{measured.first:8.1f} s for the first round, which writes a checkpoint of each position")
    click.echo(f"{measured.quiet:8.1f} s for a round in which nothing has moved")
    click.echo(f"{measured.moved:8.1f} s for a round in which every tenth group has moved")
    click.echo(f"{measured.memory_mib:8.0f} MiB of memory")


if __name__ == "__main__":
    main()
