"""`python -m srm_spark.bench.scale`: what a flow of many partitions costs, most of them idle; and one more flow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from srm_spark.bench.bed import Bed
from srm_spark.bench.contenders import Job, srm_spark
from srm_spark.bench.figures import Spread, spread
from srm_spark.bench.flows import measure_flows
from srm_spark.bench.idle import Load, cores, laid_out
from srm_spark.bench.page import SCALE_FIGURES
from srm_spark.bench.processes import end_in_order, memory_mib
from srm_spark.bench.store import keep, machine
from srm_spark.config import load_settings
from srm_spark.core.model import TopicPartition
from srm_spark.flow.clusters import Clusters, connect
from srm_spark.flow.topics.remote_topics import RemoteTopics

PARTITIONS = 100
"""Of each topic."""
_KEYS = {"admin.timeout.ms": "180000"}
_SAMPLE_SECONDS = 0.5
_TRIES = 10


Figure = tuple[str, float | Spread]


class Peak:
    """Watches a process tree from a thread, once entered."""

    def __init__(self, pid: int) -> None:
        self.memory_mib = 0.0
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            self.memory_mib = max(self.memory_mib, memory_mib(self._pid))


def measure_scale(partitions: int, warm_up: float, seconds: float) -> Iterator[Figure]:
    """A flow of `partitions` partitions in topics of 100, on brokers of one node: `SCALE_FIGURES` as they are measured.

    Raises SrmError when the flow stands.
    """
    load = Load(topics=max(1, partitions // PARTITIONS), partitions=min(partitions, PARTITIONS))
    with laid_out(load) as (bed, job, names):
        with srm_spark(job, _KEYS) as pid, Peak(pid) as peak:
            yield "first_seconds", bed.await_copied(names, load.partitions)
            bed.write(names, load.partitions)
            yield "all_seconds", bed.await_copied(names, load.partitions, records=2)
            ends = _connected(job)
            copied = _Copied(ends, bed, names, load.partitions)
            yield "one_seconds", spread([_timed(copied.one_more) for _ in range(_TRIES)])
            yield "look_seconds", spread([_timed(lambda: _look(ends)) for _ in range(_TRIES)])
            time.sleep(warm_up)
            yield "cores", cores(pid, seconds)
            yield "idle_memory_mib", memory_mib(pid)
            yield "memory_mib", peak.memory_mib
        with srm_spark(job, _KEYS):
            yield "restart_seconds", _timed(copied.one_more)


class _Copied:
    """One record more in the last partition, again and again."""

    def __init__(self, clusters: Clusters, bed: Bed, names: Sequence[str], partitions: int) -> None:
        self._clusters = clusters
        self._bed = bed
        self._topic = names[-1]
        self._remote = TopicPartition(RemoteTopics(clusters).remote_name(self._topic), partitions - 1)
        self._end = 2

    def one_more(self) -> None:
        self._bed.write_one(TopicPartition(self._topic, self._remote.partition))
        self._end += 1
        self._bed.await_end(self._remote, self._end)


def _connected(job: Job) -> Clusters:
    (flow,) = load_settings([job.config(_KEYS)]).flows
    return connect(flow)


def _look(clusters: Clusters) -> None:
    remote = RemoteTopics(clusters)
    topics = remote.select()
    clusters.source.topic_ids(topics)
    clusters.target.topic_ids([remote.remote_name(topic) for topic in topics])
    clusters.source.end_offsets(TopicPartition(topic, n) for topic, count in topics.items() for n in range(count))


def _timed(action: Callable[[], None]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


@click.command()
@click.option("--partitions", "sizes", type=int, multiple=True, default=(100, 1000, 10_000), show_default=True)
@click.option("--flows", "counts", type=int, multiple=True, default=(1, 10), show_default=True, help="In one driver.")
@click.option("--warm-up", default=90.0, show_default=True, help="Seconds before it: the first tables are written.")
@click.option("--seconds", default=20.0, show_default=True, help="How long CPU is measured.")
@click.option("--page", type=click.Path(path_type=Path), help="Bring this page, and the JSON beside it, up to date.")
def main(*, sizes: tuple[int, ...], counts: tuple[int, ...], warm_up: float, seconds: float, page: Path | None) -> None:
    """Measure flows of many partitions, and drivers of many flows; 0 is none. Each figure is kept at once."""
    end_in_order()

    def note(part: str, number: int, figures: Mapping[str, Any]) -> None:
        if page is not None:
            keep(page, {"machine": machine(), part: {f"{number}": figures}})

    for size in filter(None, sizes):
        figures: dict[str, float | Spread] = {}
        for name, value in measure_scale(size, warm_up, seconds):
            click.echo(f"{size:7,} partitions: {SCALE_FIGURES[name]}: {value}")
            figures[name] = value
            note("scale", size, figures)
    for count in filter(None, counts):
        several = measure_flows(count, warm_up, seconds)
        click.echo(f"{count:7,} flows: {several}")
        note("flows", count, asdict(several))


if __name__ == "__main__":
    main()
