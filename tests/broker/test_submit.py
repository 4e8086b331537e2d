"""spark-submit.sh against real brokers: local, and with executors that have nothing but what is sent to them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from srm_spark.cli.pack import pack
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker import spark_cluster
from tests.broker.mirror import assert_copied, write_config
from tests.kafka_io import Kafka, numbered, records

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SLOW = 300.0
"""Seconds for a cluster of Spark's own to start, unpack the environment and run its first batch on a loaded machine."""


@pytest.fixture
def spark_home(tmp_path: Path) -> Iterator[Path]:
    """That of the wheel, under a path of this test."""
    home = spark_cluster.spark_home(tmp_path)
    yield home
    shutil.rmtree(home)


@dataclass(frozen=True)
class Job:
    """A flow of a topic or two, and the folder where it runs."""

    source: Kafka
    target: Kafka
    topic: str
    flow: str
    config: Path

    @property
    def live(self) -> str:
        """Another topic of it."""
        return f"{self.topic}-live"

    @property
    def reports(self) -> str:
        """The topic in which tasks of the real-time lane report."""
        return f"mm2-realtime.{self.flow.partition('->')[0]}.internal"

    def remote(self, topic: str = "") -> str:
        """The copy of a topic."""
        return f"{self.flow.partition('->')[0]}.{topic or self.topic}"

    @property
    def log(self) -> str:
        """What spark-submit.sh has printed so far."""
        return (self.config.parent / "log").read_text()

    @property
    def states(self) -> list[str]:
        """What it printed of the flow's states and of what went wrong: Spark's own lines are hundreds."""
        return [line for line in self.log.splitlines() if " state=" in line or " WARNING " in line]

    @contextmanager
    def submitted(self, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        """A running spark-submit.sh; it ends with the block."""
        folder = self.config.parent
        with (folder / "log").open("wb") as log:
            script = str(ROOT / "spark-submit.sh")
            command = [script, "--config", str(self.config), *spark_cluster.QUICK, *arguments]
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env={**os.environ, **environment})
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait(SLOW)


@pytest.fixture
def job(primary: KafkaCluster, secondary: KafkaCluster, unique: str, tmp_path: Path) -> Job:
    """From primary to secondary."""
    topic, flow = f"t-{unique}", f"a{unique}->b{unique}"
    clusters = {f"a{unique}": primary, f"b{unique}": secondary}
    config = write_config(tmp_path / "srm.properties", clusters, [flow], {"topics": f"{topic},{topic}-live"})
    return Job(Kafka(primary), Kafka(secondary), topic, flow, config)


@pytest.mark.timeout(2 * SLOW + 60)
@pytest.mark.parametrize("master", ["local[2]", "local-cluster[1,4,1024]"])
def test_topics_are_copied_and_sigterm_ends_cleanly(master: str, job: Job, spark_home: Path) -> None:
    """In executors, whose slots are enough for it, one of them in real time."""
    topics = [job.topic]
    if master.startswith("local-cluster"):
        pack(ROOT)  # spark-submit.sh would, too, but its time is not Spark's
        topics.append(job.live)
        with job.config.open("a") as file:
            file.write(f"mode = realtime\nrealtime.topics = {job.live}\n")
    for topic in topics:
        job.source.create(topic, 3)
    job.source.write(job.topic, numbered(300, 3))
    with job.submitted("--master", master, SPARK_HOME=str(spark_home)) as process:
        assert_copied(job.source, job.topic, job.target, job.remote(), SLOW)
        if job.live in topics:
            await_until(lambda: job.reports in job.target.topics(), SLOW, lambda: f"the lane to begin: {job.states}")
        for topic in topics:
            job.source.write(topic, numbered(30, 3, "more"))
            assert_copied(job.source, topic, job.target, job.remote(topic), SLOW)
        process.send_signal(signal.SIGTERM)
        process.wait(SLOW)
    assert process.returncode == 0, job.states
    assert f"--master '{master}'" in job.log, "the command is printed"
    assert job.states[-1].endswith(f"flow={job.flow} state=stopped"), job.states
    assert (job.reports in job.target.topics()) == (job.live in topics)
    for topic in topics:
        assert records(job.target.read(job.remote(topic))) == records(job.source.read(topic))


def test_sigterm_while_spark_starts_is_not_lost(job: Job) -> None:
    with job.submitted("--master", "local[1]") as process:
        await_until(lambda: "spark-submit" in job.log, SLOW, "the command is printed")
        process.send_signal(signal.SIGTERM)
        process.wait(SLOW)
    assert process.returncode == 0, job.log
    assert "state=running" not in job.log


def test_a_driver_whose_jvm_dies_ends_and_frees_its_flow(job: Job) -> None:
    job.source.create(job.topic)
    with job.submitted("--master", "local[1]") as process:
        await_until(lambda: "state=running" in job.log, SLOW, lambda: job.log)
        (jvm,) = psutil.Process(process.pid).children()
        living = [child for child in jvm.children() if child.status() != psutil.STATUS_ZOMBIE]
        named = [child for child in living if "srm_driver.py" in " ".join(child.cmdline())]
        driver = min(named, key=lambda child: child.create_time())  # what it starts has its name for a moment
        jvm.kill()
        assert process.wait(SLOW) == 128 + signal.SIGKILL
        driver.wait(SLOW)  # what it prints goes through the JVM, so it ends unheard
