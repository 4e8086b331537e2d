"""Drivers for the broker tests: all in one Spark session, each stopped when its test ends."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from srm_spark.config import load_settings
from srm_spark.config.settings import FlowSettings, Timings
from srm_spark.driver import Driver
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.broker.mirror import write_config
from tests.kafka_io import Kafka

Start = Callable[..., Driver]


@pytest.fixture
def chance() -> random.Random:
    """Of faults and pauses. Its seed is printed where a test fails; `SRM_SEED` has it again."""
    seed = int(os.environ.get("SRM_SEED") or random.randrange(10**6))
    print(f"SRM_SEED={seed}")
    return random.Random(seed)


@pytest.fixture
def timings() -> Timings:
    """How long the flows of a test wait for what; modules that would only wait have shorter ones."""
    return Timings()


@pytest.fixture
def start(
    spark: SparkSession, tmp_path: Path, timings: Timings, local_kafka: Callable[..., LocalKafka], unique: str
) -> Iterator[Start]:
    """`start(clusters, flows, keys)` runs a driver; its `stop()`, or the end of the test, ends it.

    Brokers of `local_kafka` live longer, and so do topics: a driver that stops asks for them, and waits for what is
    gone.
    """
    del local_kafka, unique
    numbers = itertools.count()
    with ExitStack() as stack:

        def run(
            clusters: Mapping[str, KafkaCluster], flows: Sequence[str], keys: Mapping[str, str], *, waits: bool = True
        ) -> Driver:
            path = write_config(tmp_path / f"srm-{next(numbers)}.properties", clusters, flows, keys)
            settings = load_settings([path])
            settings = replace(settings, flows=tuple(replace(flow, timings=timings) for flow in settings.flows))
            driver = Driver(settings, session=spark, waits=waits)
            driver.start()
            stack.callback(driver.stop)
            return driver

        yield run


@dataclass(frozen=True)
class Pair:
    """Source and target of the usual test with names of its own: leases, progress and topics are nobody else's."""

    source: Kafka
    target: Kafka
    clusters: Mapping[str, KafkaCluster]
    unique: str
    start: Start

    @property
    def alias(self) -> str:
        """The source's."""
        return next(iter(self.clusters))

    @property
    def target_alias(self) -> str:
        """The target's."""
        return list(self.clusters)[1]

    @property
    def flow(self) -> str:
        """As it is written."""
        return f"{self.alias}->{self.target_alias}"

    @property
    def progress_topic(self) -> str:
        """On the target."""
        return f"mm2-offsets.{self.alias}.internal"

    @property
    def map_topic(self) -> str:
        """Where the offset map lies."""
        return f"mm2-offset-map.{self.alias}.internal"

    def topic(self, name: str = "t") -> str:
        """A source topic of this test."""
        return f"{name}-{self.unique}"

    def remote(self, name: str = "t") -> str:
        """Its remote topic under the default policy."""
        return f"{self.alias}.{self.topic(name)}"

    @property
    def keys(self) -> dict[str, str]:
        """Configuration that takes the topics of this test only."""
        return {"topics": f".*-{self.unique}"}

    def settings(self, folder: Path) -> FlowSettings:
        """The settings of the flow."""
        path = write_config(folder / "flow.properties", self.clusters, [self.flow], self.keys)
        return load_settings([path]).flows[0]

    def replicate(self, keys: Mapping[str, str] | None = None, *, waits: bool = True) -> Driver:
        """Run the flow over all topics of this test; `exactly.once.support` is a key that only a flow can have."""
        of_flow = {"exactly.once.support": f"{self.flow}.exactly.once.support"}
        named = {of_flow.get(key, key): value for key, value in (keys or {}).items()}
        return self.start(self.clusters, [self.flow], {**self.keys, **named}, waits=waits)


@pytest.fixture
def pair(primary: KafkaCluster, secondary: KafkaCluster, unique: str, start: Start) -> Pair:
    """One flow from primary to secondary."""
    clusters = {f"a{unique}": primary, f"b{unique}": secondary}
    return Pair(Kafka(primary), Kafka(secondary), clusters, unique, start)


@pytest.fixture
def three(
    primary: KafkaCluster, secondary: KafkaCluster, tertiary: KafkaCluster, unique: str
) -> Mapping[str, KafkaCluster]:
    """Three clusters under aliases that only this test uses."""
    return {f"a{unique}": primary, f"b{unique}": secondary, f"c{unique}": tertiary}
