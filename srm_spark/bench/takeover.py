"""How soon another driver copies on when the one that owns a flow is gone. `python -m srm_spark.bench.takeover`

Two processes run the same file. Whoever copies is killed with all that belongs to it, or stopped, and a record goes
into each partition right behind that: what is measured is how long it takes until all of these are copied.
MirrorMaker 2's two processes are one cluster of its distributed mode; the tasks of one that is gone are given to the
other after five minutes (`scheduled.rebalance.max.delay.ms`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial

import click
import psutil
from confluent_kafka import Consumer, TopicPartition

from srm_spark.bench.contenders import OURS, THEIRS, Contender, Job, mirror_maker, srm_spark
from srm_spark.bench.figures import spread
from srm_spark.bench.idle import Load, laid_out
from srm_spark.bench.processes import end_in_order, killed, suspended
from srm_spark.errors import SrmError
from srm_spark.testing.ports import free_ports

_KILLED, _STOPPED = "killed with kill -9", "stopped with SIGSTOP"
_SETTLE_SECONDS = 15.0
"""For a second driver to start its Spark and wait; behind the last round for what comes too late to be doubled."""
_LONGEST_SECONDS, _LOOK_SECONDS = 900.0, 0.05


class Node:
    """One of the two processes."""

    def __init__(self, job: Job, start: Contender) -> None:
        self._job, self._start, self._stack = job, start, ExitStack()
        self.begin()

    def begin(self) -> None:
        """Start it."""
        self.pid = self._stack.enter_context(self._start(self._job))

    def is_owner(self) -> bool:
        """Whether it copies, by what its log said last."""
        text = self._job.log_path.read_text(errors="replace")
        return text.rfind(" state=running") > text.rfind(" state=waiting")

    def kill(self) -> Callable[[], None]:
        """End it as a machine ends that loses power; what starts it again."""
        killed(self.pid)
        self.close()
        return self.begin

    def stop(self) -> Callable[[], None]:
        """Let it stand still as a machine does that hangs; what lets it go on."""
        frozen = suspended(self.pid)

        def again() -> None:
            for process in frozen:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

        return again

    def close(self) -> None:
        """End it, where it is there."""
        self._stack.close()


@contextmanager
def two_nodes(name: str, job: Job) -> Iterator[list[Node]]:
    """Both processes, the first one started first."""
    nodes = list[Node]()
    try:
        for number, port in enumerate(free_ports(2), 1):
            folder = job.folder / str(number)
            folder.mkdir()
            nodes.append(Node(replace(job, folder=folder), _contender(name, port)))
        yield nodes
    finally:
        for node in nodes:
            node.close()


def takeovers(name: str, how: str, rounds: int, load: Load) -> tuple[list[float], int]:
    """Seconds of each round, and how many records were copied more than once. Raises SrmError where one is missing."""
    seconds = list[float]()
    with laid_out(load) as (bed, job, names), two_nodes(name, job) as nodes:
        bed.await_copied(names, load.partitions)
        with closing(_Copies(job.target, f"{job.alias}.{names[0]}", load.partitions)) as copies:
            copies.await_each(1)
            for number in range(rounds):
                time.sleep(_SETTLE_SECONDS)
                owner = nodes[0] if name == THEIRS else next(node for node in nodes if node.is_owner())
                again = owner.kill() if how == _KILLED else owner.stop()
                began = time.monotonic()
                bed.write(names, load.partitions)
                copies.await_each(number + 2)
                seconds.append(time.monotonic() - began)
                again()
            time.sleep(_SETTLE_SECONDS)
            copies.look()
    return seconds, sum(copies.found.values()) - (rounds + 1) * load.partitions


class _Copies:
    """Counts the records of a remote topic as its readers see them: ends count markers, too."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.found = dict.fromkeys(range(partitions), 0)
        options = {"bootstrap.servers": servers, "group.id": "srm-takeover", "auto.offset.reset": "earliest"}
        self._consumer = Consumer({**options, "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])

    def await_each(self, records: int) -> None:
        """Until each partition has so many."""
        deadline = time.monotonic() + _LONGEST_SECONDS
        while min(self.found.values()) < records:
            if time.monotonic() > deadline:
                raise SrmError(f"not {records} records of each partition in {_LONGEST_SECONDS:g} s: {self.found}")
            self.look()

    def look(self) -> None:
        """Count what has come."""
        for message in self._consumer.consume(100, _LOOK_SECONDS):
            partition = message.partition()
            if message.error() is None and partition is not None:
                self.found[partition] += 1

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()


def _contender(name: str, port: int) -> Contender:
    extra = {"dedicated.mode.enable.internal.rest": "true", "listeners": f"http://127.0.0.1:{port}"}
    return srm_spark if name == OURS else partial(mirror_maker, extra=extra)


@click.command()
@click.option("--partitions", default=6, show_default=True, help="Of the one topic; a record goes into each of them.")
@click.option("--rounds", default=10, show_default=True, help="Of each kind.")
@click.option("--theirs", default=1, show_default=True, help="Rounds of MirrorMaker 2, of more than five minutes each.")
def main(*, partitions: int, rounds: int, theirs: int) -> None:
    """Measure takeovers of a flow, each kind on brokers of its own."""
    end_in_order()
    load = Load(partitions=partitions)
    for name, how, count in ((OURS, _KILLED, rounds), (OURS, _STOPPED, rounds), (THEIRS, _KILLED, theirs)):
        if count:
            seconds, doubled = takeovers(name, how, count, load)
            found = spread(seconds)
            words = f"{found['median']:.1f} s ({found['min']:.1f} to {found['max']:.1f}), rounds: {count}"
            click.echo(f"{name:>14} {how}: {words}, records copied twice: {doubled}")


if __name__ == "__main__":
    main()
