"""Which jars there are: the only place where somebody chooses a version.

After a change run `python -m srm_spark.jars --pin` and commit `jars.lock`, which then names every jar of every set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

_SCALA = re.compile(r"_(\d+\.\d+)$")


class Dependency(NamedTuple):
    """Maven coordinates."""

    group: str
    artifact: str
    version: str

    @classmethod
    def parse(cls, coordinates: str) -> Dependency:
        """Read what `str` makes of them."""
        group, artifact, version = coordinates.split(":")
        return cls(group, artifact, version)

    @property
    def file_name(self) -> str:
        """How the jar is called in its set's folder."""
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


@dataclass(frozen=True)
class JarSet:
    """Jars that go on one class path together."""

    name: str
    purpose: str
    transitive: bool
    """Whether the dependencies of the named jars belong to the set, too."""
    dependencies: tuple[Dependency, ...]
    at_setup: bool = True
    """Whether `make setup` gets them; others come when something asks for them first."""

    @property
    def scala(self) -> str | None:
        """For which Scala the first jar is; None where it is for any."""
        found = _SCALA.search(self.dependencies[0].artifact)
        return found and found[1]


def line_of(version: str) -> str:
    """`4.2` of Spark `4.2.0`: what jars are made for."""
    return ".".join(version.split(".")[:2])


def _driver(spark: str, scala: str, kafka: str, pool: str, delta: tuple[str, str]) -> JarSet:
    line = line_of(spark)
    return JarSet(
        name=f"driver-{line}",
        purpose=f"what Spark {line} needs to read Kafka and write Delta tables",
        transitive=False,  # everything else is in the pyspark wheel
        dependencies=(
            Dependency("org.apache.spark", f"spark-sql-kafka-0-10_{scala}", spark),
            Dependency("org.apache.spark", f"spark-token-provider-kafka-0-10_{scala}", spark),
            Dependency("org.apache.kafka", "kafka-clients", kafka),
            Dependency("org.apache.commons", "commons-pool2", pool),
            Dependency("io.delta", *delta),
            Dependency("io.delta", "delta-storage", delta[1]),
        ),
        at_setup=False,
    )


# Kafka's client as Spark's source was built with, where a newer one has not been tried with it.
DRIVERS = {
    "3.5": _driver("3.5.7", "2.12", "3.4.1", "2.11.1", ("delta-spark_2.12", "3.3.2")),
    "4.0": _driver("4.0.0", "2.13", "3.9.2", "2.13.1", ("delta-spark_4.0_2.13", "4.4.0")),
    "4.1": _driver("4.1.1", "2.13", "3.9.2", "2.13.1", ("delta-spark_4.1_2.13", "4.4.0")),
    "4.2": _driver("4.2.0", "2.13", "3.9.2", "2.13.1", ("delta-spark_4.2_2.13", "4.4.0")),
}
"""By the Spark that they are for, oldest first."""
NEWEST_SPARK = max(DRIVERS)
DRIVER = "driver"
"""As which the one is asked for that fits the Spark that is here."""

# connect-mirror brings connect-mirror-client; slf4j-simple because no Kafka jar carries a logging backend.
KAFKA = JarSet(
    name="kafka",
    purpose="Kafka brokers, their tools and MirrorMaker 2, for tests and the demo",
    transitive=True,
    dependencies=(
        Dependency("org.apache.kafka", "kafka_2.13", "4.3.1"),
        Dependency("org.apache.kafka", "kafka-tools", "4.3.1"),
        Dependency("org.apache.kafka", "connect-mirror", "4.3.1"),
        Dependency("org.slf4j", "slf4j-simple", "1.7.36"),
    ),
)


def _brokers(version: str) -> JarSet:
    return JarSet(
        name=f"kafka-{version}",
        purpose=f"Kafka brokers of version {version}, for the tests of versions",
        transitive=True,
        dependencies=(
            Dependency("org.apache.kafka", "kafka_2.13", version),
            Dependency("org.slf4j", "slf4j-simple", "1.7.36"),
        ),
        at_setup=False,
    )


OTHER_KAFKAS = tuple(map(_brokers, ("2.8.2", "3.9.2", "4.4.0")))
"""Of before KRaft (its metadata is in ZooKeeper), the last of Kafka 3, and newer than `KAFKA`."""

DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What a Spark session must start with to read and write Delta tables with these jars."""

JAR_SETS = {jar_set.name: jar_set for jar_set in (*DRIVERS.values(), KAFKA, *OTHER_KAFKAS)}
