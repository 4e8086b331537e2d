"""Where the time of a small micro-batch goes, by Spark's phases. `python -m srm_spark.bench.phases`"""

from __future__ import annotations

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
from srm_spark.testing import LocalKafka


@click.command()
@click.option("--rate", default=100, show_default=True, help="Records per second, all partitions together.")
@click.option("--warm", default=60.0, show_default=True, help="Seconds before it is measured.")
@click.option("--seconds", default=60.0, show_default=True, help="How long it is measured.")
def main(*, rate: int, warm: float, seconds: float) -> None:
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
        with Driver(load_settings(job.config({}))) as driver:
            writer.start()
            time.sleep(warm)
            samples = sample(driver, seconds)
            stop.set()
            writer.join()
    for phase, values in sorted(samples.items(), key=lambda item: -statistics.median(item[1])):
        click.echo(f"{phase:>18} {statistics.median(values):6.0f} ms, {min(values)} to {max(values)}")


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
