"""Where the time of a small micro-batch goes, by Spark's phases, and what a flow takes that has little to copy.

`python -m srm_spark.bench.phases`
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

import click

from srm_spark import Driver, load_settings
from srm_spark.bench.bed import ALIAS, Bed
from srm_spark.bench.contenders import Job
from srm_spark.bench.latency import PARTITIONS, TOPIC, write_evenly
from srm_spark.bench.processes import cpu_seconds
from srm_spark.testing import LocalKafka


@click.command()
@click.option("--rate", default=100, show_default=True, help="Records per second, all partitions together.")
@click.option("--warm", default=60.0, show_default=True, help="Seconds before it is measured.")
@click.option("--seconds", default=60.0, show_default=True, help="How long it is measured.")
@click.option("--interval", default="200", show_default=True, help="`trigger.interval.ms` of the flow.")
def main(*, rate: int, warm: float, seconds: float, interval: str) -> None:
    """Sample the micro-batches of a flow under an even load."""
    stop = threading.Event()
    with (
        tempfile.TemporaryDirectory(prefix="srm-phases-") as folder,
        LocalKafka("source", jvm_options=()) as source,
        LocalKafka("target", jvm_options=()) as target,
    ):
        Bed(source.bootstrap_servers, target.bootstrap_servers).create([TOPIC], PARTITIONS)
        job = Job(ALIAS, TOPIC, source.bootstrap_servers, target.bootstrap_servers, Path(folder))
        writer = threading.Thread(target=write_evenly, args=(source.bootstrap_servers, rate, stop, []), daemon=True)
        with Driver(load_settings(job.config({"trigger.interval.ms": interval}))) as driver:
            writer.start()
            time.sleep(warm)
            pids = [os.getpid(), source.pid, target.pid]
            began, before = time.monotonic(), [cpu_seconds(pid) for pid in pids]
            samples = sample(driver, seconds)
            passed, used = time.monotonic() - began, [cpu_seconds(pid) for pid in pids]
            stop.set()
            writer.join()
    for phase, values in sorted(samples.items(), key=lambda item: -statistics.median(item[1])):
        click.echo(f"{phase:>18} {statistics.median(values):6.0f} ms, {min(values)} to {max(values)}")
    everything, *brokers = [(after - earlier) / passed for after, earlier in zip(used, before, strict=True)]
    click.echo(f"{everything - sum(brokers):.2f} cores of the driver and of who writes the records")
    click.echo("{:.2f} and {:.2f} cores of the brokers of source and target".format(*brokers))


def sample(driver: Driver, seconds: float) -> dict[str, list[int]]:
    """Phase → milliseconds in each of the batches that the status has shown meanwhile."""
    samples: dict[str, list[int]] = defaultdict(list)
    end, seen = time.monotonic() + seconds, None
    while time.monotonic() < end:
        phases = driver.status()[0].batch_ms
        if phases is not seen:
            seen = phases
            for phase, value in phases.items():
                samples[phase].append(value)
        time.sleep(0.2)
    return dict(samples)


if __name__ == "__main__":
    main()
