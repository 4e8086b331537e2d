"""What a flow costs that has nothing to copy, and how soon a new topic flows. `python -m srm_spark.bench.idle`"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from srm_spark.bench.bed import ALIAS, Bed
from srm_spark.bench.contenders import CONTENDERS, OURS, THEIRS, Job, srm_spark
from srm_spark.bench.figures import spread
from srm_spark.bench.processes import cpu_by_process, end_in_order, memory_mib
from srm_spark.testing import LocalKafka

COPIED, OTHER = "copied", "other"
_NEW_TOPICS = 3


@dataclass(frozen=True)
class Idle:
    """A contender with everything copied."""

    first_seconds: float
    """From its start until one record of each partition was copied."""
    again_seconds: float
    """Until one more of each was."""
    cores: float
    """Of it and everything below it, while it waits."""
    memory_mib: float
    """Resident, while it waits."""


@dataclass(frozen=True)
class Load:
    """What there is, and how long it is watched."""

    topics: int = 1
    """That are copied."""
    partitions: int = 500
    """Of each of them."""
    others: int = 0
    """More topics of the source, which the filter leaves out."""
    warm_up: float = 90.0
    """Seconds for the JVM to compile what it has just run."""
    seconds: float = 30.0
    """How long CPU is measured."""


@contextmanager
def laid_out(load: Load, heap: str = "2g") -> Iterator[tuple[Bed, Job, list[str]]]:
    """Brokers with the topics, one record in each partition."""
    names = [f"{COPIED}-{number}" for number in range(load.topics)]
    with (
        tempfile.TemporaryDirectory(prefix="srm-idle-") as folder,
        LocalKafka(ALIAS, heap=heap, jvm_options=()) as source,
        LocalKafka("target", heap=heap, jvm_options=()) as target,
    ):
        bed = Bed(source.bootstrap_servers, target.bootstrap_servers)
        bed.create([f"{OTHER}-{number}" for number in range(load.others)], 1)
        bed.create(names, load.partitions)
        bed.write(names, load.partitions)
        yield bed, Job(ALIAS, f"{COPIED}-.*", source.bootstrap_servers, target.bootstrap_servers, Path(folder)), names


def watch(pid: int, bed: Bed, names: list[str], load: Load) -> Idle:
    """The process that copies `names`, from its start."""
    first = bed.await_copied(names, load.partitions)
    bed.write(names, load.partitions)
    again = bed.await_copied(names, load.partitions, records=2)
    time.sleep(load.warm_up)
    return Idle(first, again, cores(pid, load.seconds), memory_mib(pid))


def new_topic(bed: Bed) -> float:
    """Seconds from the creation of a topic until its first record was copied."""
    fresh = [f"{COPIED}-{time.time_ns()}"]
    began = time.monotonic()
    bed.create(fresh, 1)
    bed.write(fresh, 1)
    bed.await_copied(fresh, 1)
    return time.monotonic() - began


def cores(pid: int, seconds: float) -> float:
    """CPU seconds of a process tree per second of the clock; Spark ends a worker now and then, which counts as 0."""
    before, began = cpu_by_process(pid), time.monotonic()
    time.sleep(seconds)
    after = cpu_by_process(pid)
    return sum(spent - before.get(process, 0.0) for process, spent in after.items()) / (time.monotonic() - began)


def measure_idle(load: Load) -> dict[str, object]:
    """Both programs without anything to copy, and a new topic of ours. MirrorMaker 2 looks for one every 600 s."""
    figures: dict[str, object] = {"partitions": load.topics * load.partitions}
    for name in (THEIRS, OURS):
        with laid_out(load) as (bed, job, names), CONTENDERS[name](job) as pid:
            figures[name] = asdict(watch(pid, bed, names, load))
            if name == OURS:
                figures["new_topic"] = spread([new_topic(bed) for _ in range(_NEW_TOPICS)])
    return figures


@click.command()
@click.option("--topics", default=1, show_default=True, help="Topics that are copied.")
@click.option("--partitions", default=500, show_default=True, help="Partitions of each of them.")
@click.option("--others", default=0, show_default=True, help="More topics of the source, which the filter leaves out.")
@click.option("--heartbeats", is_flag=True, help="With heartbeats, as by default: a record every second is copied.")
@click.option("--warm-up", default=90.0, show_default=True, help="Seconds before it: the first tables are written.")
@click.option("--seconds", default=30.0, show_default=True, help="How long is measured.")
def idle(*, heartbeats: bool, **numbers: Any) -> None:
    """Copy one record of each partition, then measure a driver that has nothing left to do."""
    end_in_order()
    load = Load(**numbers)
    keys = {"emit.heartbeats.enabled": str(heartbeats).lower()}
    with laid_out(load) as (bed, job, names), srm_spark(job, keys) as pid:
        watched = watch(pid, bed, names, load)
        click.echo(f"{watched.first_seconds:8.1f} s until every partition was copied")
        click.echo(f"{watched.again_seconds:8.1f} s until one more record of each was copied")
        click.echo(f"{watched.cores:8.3f} cores of the driver and everything below it")
        click.echo(f"{watched.memory_mib:8.0f} MiB of memory")
        for _ in range(_NEW_TOPICS):
            click.echo(f"{new_topic(bed):8.1f} s until a new topic was copied")


if __name__ == "__main__":
    idle()
