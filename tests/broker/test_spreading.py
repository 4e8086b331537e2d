"""Several drivers that run the same file: each has its share of the flows, and a host is drained."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from srm_spark.driver import Driver
from srm_spark.flow.status import FlowState
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Start
from tests.broker.mirror import SOON, assert_copied, await_lag_zero, write_config
from tests.kafka_io import Kafka, numbered

COUNT = 4


class Flows:
    """Four flows from aliases of one cluster, with a topic each."""

    def __init__(self, primary: KafkaCluster, secondary: KafkaCluster, unique: str, start: Start, folder: Path) -> None:
        self.source, self.target, self.start = Kafka(primary), Kafka(secondary), start
        self.aliases = [f"a{number}{unique}" for number in range(COUNT)]
        self.clusters = {**dict.fromkeys(self.aliases, primary), f"b{unique}": secondary}
        self.flows = [f"{alias}->b{unique}" for alias in self.aliases]
        self.topic = f"t-{unique}"
        self.keys = {"topics": self.topic}
        self.file = write_config(folder / "srm.properties", self.clusters, self.flows, self.keys)
        self.source.create(self.topic, 2)
        self.written = 0

    def driver(self, host: str) -> Driver:
        """One more, as if on another machine."""
        with patch("srm_spark.flow.share.socket.gethostname", lambda: host):
            return self.start(self.clusters, self.flows, self.keys)

    def write(self) -> None:
        """Some more records."""
        self.source.write(self.topic, numbered(20, 2, f"r{self.written}-"))
        self.written += 1

    def assert_copied_once(self) -> None:
        """By all of the flows."""
        for alias in self.aliases:
            assert_copied(self.source, self.topic, self.target, f"{alias}.{self.topic}")

    def control(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`srm-control drivers`."""
        program = Path(sys.executable).with_name("srm-control")
        command = [str(program), "drivers", *arguments, "--config", str(self.file)]
        return subprocess.run(command, capture_output=True, text=True, timeout=SOON, check=False)


def running(driver: Driver) -> int:
    """How many flows it has."""
    return sum(status.state is FlowState.RUNNING for status in driver.status())


def has(driver: Driver, count: int) -> Callable[[], bool]:
    return lambda: running(driver) == count


@pytest.fixture
def flows(primary: KafkaCluster, secondary: KafkaCluster, unique: str, start: Start, tmp_path: Path) -> Flows:
    return Flows(primary, secondary, unique, start, tmp_path)


@pytest.mark.slow
def test_a_driver_that_comes_gets_its_share_and_all_of_it_goes_back_when_its_host_is_drained(flows: Flows) -> None:
    flows.write()
    first = flows.driver("h1")
    await_until(has(first, COUNT), SOON, "one driver has all")
    flows.write()
    second = flows.driver("h2")
    await_until(has(second, COUNT // 2), SOON, lambda: f"half of them, but it is {second.status()}")
    await_until(has(first, COUNT // 2), SOON, "the other half")
    flows.write()
    flows.assert_copied_once()

    # The lease of a run may name the machine that this is: so the command may wait for nothing.
    done = flows.control("drain", "h2", "--reason", "new kernel")
    assert done.returncode == 0, done.stdout + done.stderr
    for flow, line in zip(flows.flows, done.stdout.splitlines(), strict=True):
        assert line.startswith(f"{flow}: not at h2")
        assert line.endswith(f" pid {os.getpid()} has it")
    await_until(has(first, COUNT), SOON, lambda: f"all of them, but it is {first.status()}")
    assert running(second) == 0
    flows.write()
    flows.assert_copied_once()

    assert flows.control("return", "h2").returncode == 0
    await_until(has(second, COUNT // 2), SOON, lambda: f"half of them again, but it is {second.status()}")
    first.stop()
    await_until(has(second, COUNT), SOON, "who is left has all")
    flows.write()
    await_lag_zero(second)
    flows.assert_copied_once()
