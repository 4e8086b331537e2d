"""A driver of its own process that says every second how its flows are: `python -m tests.broker.quick_driver FILE`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from srm_spark.config import load_settings
from srm_spark.config.settings import Timings
from srm_spark.driver import Driver
from srm_spark.testing import KafkaCluster
from tests.broker.mirror import write_config

STATUS_SECONDS = 1.0


@contextmanager
def quick_driver(
    folder: Path, clusters: Mapping[str, KafkaCluster], flows: Sequence[str], keys: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """It runs, and is killed at the end of the block if it still lives; its log is `folder`/driver.log."""
    folder.mkdir()
    path = write_config(folder / "driver.properties", clusters, flows, keys)
    with (folder / "driver.log").open("wb") as log:
        command = [sys.executable, "-m", "tests.broker.quick_driver", str(path)]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            yield process
        except BaseException:
            print((folder / "driver.log").read_text(errors="replace")[-20_000:])
            raise
        finally:
            process.kill()
            process.wait(60)


def main(path: Path) -> None:
    """Run until SIGTERM."""
    settings = load_settings([path])
    timings = Timings(status_seconds=STATUS_SECONDS)
    settings = replace(settings, flows=tuple(replace(flow, timings=timings) for flow in settings.flows))
    driver = Driver(settings, spark_later=True)
    signal.signal(signal.SIGTERM, lambda *_: driver.request_stop())
    with driver:
        driver.wait()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
