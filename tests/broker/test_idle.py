"""A flow with nothing to copy costs next to nothing, however many partitions it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.bench.idle import cores
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import await_count
from tests.broker.process import srm_driver
from tests.kafka_io import Record

PARTITIONS = 500
MOST_CORES = 0.15
"""0.04 is what a quiet machine shows; asking for ends without a pause takes a quarter of a core or more."""
MEASURED_SECONDS = 8.0
SETTLE_SECONDS = 120.0
"""Until the JVM has compiled what it ran."""


@pytest.mark.slow
def test_500_idle_partitions(pair: Pair, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), PARTITIONS)
    pair.source.write(pair.topic(), [Record(b"k", b"v", number) for number in range(PARTITIONS)])
    found: list[float] = []

    def is_idle(pid: int) -> bool:
        found.append(cores(pid, MEASURED_SECONDS))
        return found[-1] < MOST_CORES

    with srm_driver(tmp_path, pair.clusters, [pair.flow], {**pair.keys, "refresh.topics.interval.seconds": "5"}) as run:
        await_count(pair.target, pair.remote(), PARTITIONS, 180)
        await_until(lambda: is_idle(run.pid), SETTLE_SECONDS, lambda: f"below {MOST_CORES} cores, but {found}")
        assert run.poll() is None
