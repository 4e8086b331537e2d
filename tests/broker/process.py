"""srm-driver as a process of its own, as service managers run it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from srm_spark.testing import KafkaCluster
from tests.broker.mirror import write_config

SRM_DRIVER = Path(sys.executable).parent / "srm-driver"
END_SECONDS = 60
_TOLD = 20_000
"""Characters of the log that a failed test shows."""


@contextmanager
def srm_driver(
    folder: Path,
    clusters: Mapping[str, KafkaCluster],
    flows: Sequence[str],
    keys: Mapping[str, str],
    *,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] = {},
    command: Path = SRM_DRIVER,
) -> Iterator[subprocess.Popen[bytes]]:
    """A running srm-driver, killed at the end of the block if it still lives; its log is `folder`/driver.log."""
    path = write_config(folder / "driver.properties", clusters, flows, keys)
    with (folder / "driver.log").open("wb") as log:
        process = subprocess.Popen(
            [str(command), "--config", str(path), *arguments],
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, **environment},
            start_new_session=True,  # so that a terminal's Ctrl-C can be sent to the whole group
        )
        try:
            yield process
        except BaseException:
            print((folder / "driver.log").read_text(errors="replace")[-_TOLD:])
            raise
        finally:
            process.kill()
            process.wait(END_SECONDS)


def kill_all_of(process: subprocess.Popen[bytes]) -> None:
    """The driver and its children at one moment, as with their machine."""
    first = psutil.Process(process.pid)
    for one in [*first.children(recursive=True), first]:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    process.wait(END_SECONDS)
