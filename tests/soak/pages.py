"""`python -m tests.soak.pages`: how long the service takes for pages and lists of many partitions, and its memory.

Synthetic samples, no cluster, no socket. Each partition has a sample each five minutes, and each topic one each minute.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
from fastapi import FastAPI
from starlette.types import Message

from srm_spark.api.app import make_app
from srm_spark.config.settings import HistorySettings
from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import FlowSample, GroupSample, Histogram, PartitionSample, Sample, TopicMeta
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.look.board import Board
from srm_spark.past.reading import History
from tests.unit.history_tables import write

_FLOW = Flow("A", "B")
_MINUTE_MS = 60_000
_STEPS = 5
_PATHS = (
    "/",
    "/?range=LAST_SIX_HOURS",
    "/?open=A-%3EB&range=LAST_SIX_HOURS",
    "/flows/A/B",
    "/flows/A/B?sort=lag",
    "/flows/A/B?sort=throughput",
    "/flows/A/B?sort=throughput&range=LAST_SIX_HOURS",
    "/flows/A/B?sort=replication-latency&range=LAST_ONE_WEEK",
    "/v3/flows",
    "/v3/flows/A/B?hours=6",
    "/v3/flows/A/B/topics",
    "/v3/flows/A/B/topics?sort=throughput",
    "/v3/flows/A/B/topics?sort=throughput&hours=6",
    "/v3/flows/A/B/topics?search=9&limit=1000",
    "/v3/flows/A/B/partitions?limit=1000",
    "/v3/flows/A/B/partitions?topic=topic-7",
    "/v3/flows/A/B/groups",
    "/v3/flows/A/B/history/byte-rate?hours=6",
    "/v3/flows/A/B/history/byte-rate?hours=6&topic=topic-7&partition=0",
    "/replications",
    "/metrics",
)


def samples(topics: int, partitions: int, groups: int, start: int, end: int) -> Iterator[Sample]:
    """Of so many partitions, spread over the topics, from `start` to `end` in milliseconds since the epoch."""
    latencies = [Histogram.of([5.0, 10.0 * number + 1]) for number in range(50)]
    for minute, at in enumerate(range(start, end + 1, _MINUTE_MS)):
        yield FlowSample(
            _FLOW,
            "host/1/A",
            at,
            60.0,
            60.0 * _STEPS,
            FlowState.RUNNING,
            since=start,
            topics=topics,
            partitions=partitions,
            groups=groups,
            lag_records=7,
            lag_seconds=1.5,
        )
        for number in range(partitions):
            if number // topics % _STEPS == minute % _STEPS:
                partition = TopicPartition(f"topic-{number % topics}", number // topics)
                yield PartitionSample(
                    _FLOW,
                    at,
                    60.0 * _STEPS,
                    partition,
                    f"A.{partition.topic}",
                    records=3000,
                    bytes=300_000,
                    latency=latencies[number % 50],
                    lag_records=number % 7,
                    lag_seconds=0.5,
                    state="running",
                )
        for number in range(groups):
            yield GroupSample(_FLOW, at, 60.0, f"group-{number}", (f"topic-{number % topics}",), latencies[0], "synced")


async def ask(app: FastAPI, path: str, tag: str | None = None) -> tuple[int, int, str]:
    """Status, bytes and tag of an answer."""
    where, _, query = path.partition("?")
    headers = [(b"host", b"localhost"), *([] if tag is None else [(b"if-none-match", tag.encode())])]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": where,
        "raw_path": where.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 6670),
    }
    said: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        said.append(message)

    await app(scope, receive, send)
    found = {name.decode(): value.decode() for name, value in said[0]["headers"]}
    return said[0]["status"], sum(len(one.get("body", b"")) for one in said), found.get("etag", "")


async def measure(app: FastAPI, path: str, times: int) -> None:
    """Ask so often, and print the first time, the median and the 95th percentile in milliseconds; that of CPU, too,
    which other programs of a machine that is busy do not change."""
    took, used = [], []
    for number in range(times + 1):
        began, cpu = time.perf_counter(), time.process_time()
        status, size, tag = await ask(app, path)
        took.append((time.perf_counter() - began) * 1000)
        used.append((time.process_time() - cpu) * 1000)
        if status != 200:
            raise SystemExit(f"{path}: {status}")
        await asyncio.sleep(0.01 * (number % 2))
    last = max(0, round(0.95 * times) - 1)
    median, p95 = (sorted(took[1:])[index] for index in (times // 2, last))
    began = time.perf_counter()
    status, _, _ = await ask(app, path, tag or None)
    known = f"{(time.perf_counter() - began) * 1000:8.1f}" if status == 304 else "       -"
    figures = (took[0], median, p95, sorted(used[1:])[last])
    click.echo(f"{' '.join(f'{one:8.1f}' for one in figures)} {known} {size / 1000:9.1f}  {path}")


@click.command()
@click.option("--partitions", default=10_000, show_default=True)
@click.option("--topics", default=500, show_default=True)
@click.option("--groups", default=100, show_default=True)
@click.option("--hours", default=6, show_default=True, help="Of history; 0: none is kept.")
@click.option("--times", default=40, show_default=True, help="How often each path is asked.")
def pages(*, partitions: int, topics: int, groups: int, hours: int, times: int) -> None:
    """Fill a service, ask it for pages and lists, and print milliseconds and its memory."""
    now = int(time.time() * 1000)
    with tempfile.TemporaryDirectory() as folder:
        past = None
        if hours:
            if (child := os.fork()) == 0:  # what writing takes is none of the service's memory
                write(Path(folder), samples(topics, partitions, groups, now - hours * 60 * _MINUTE_MS, now))
                os._exit(0)
            if os.waitpid(child, 0)[1]:
                raise SystemExit("history could not be written")
            past = History(HistorySettings(folder))
        board = Board([_FLOW], past=past)
        for one in samples(topics, partitions, groups, now - 120 * _MINUTE_MS, now):
            board.take(one, one.at)
        for number in range(topics):
            name = f"topic-{number}"
            board.take_meta(_FLOW, name, TopicMeta(_FLOW, name, f"A.{name}", partitions // topics, name))
        board.read("B")
        board.take(FlowSample(_FLOW, "host/1/A", now + 1, 60.0, 300.0, FlowState.RUNNING, partitions=partitions), now)
        app = make_app(board)
        click.echo(f"{partitions} partitions of {topics} topics, {groups} groups, {hours} hours of history")
        click.echo("   first   median      p95  p95 cpu      304        kB")
        for path in _PATHS:
            asyncio.run(measure(app, path, times))
        click.echo(f"{_mebibytes():.0f} MiB are resident")


def _mebibytes() -> float:
    pages_held = int(Path("/proc/self/statm").read_text().split()[1])
    return pages_held * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    sys.exit(pages())
