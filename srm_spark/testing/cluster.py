"""The seam behind which a test's cluster comes from: our own brokers, a container, or a cluster that exists."""

from __future__ import annotations

import enum
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from srm_spark.errors import SetupError
from srm_spark.testing.local_kafka import LocalKafka

PROVIDER_VARIABLE = "SRM_TEST_BROKERS"


class Capability(enum.Enum):
    """What a test may do beyond talking to the cluster."""

    CONTROL = "stop, kill and pause the broker: only LocalKafka"


class KafkaCluster(Protocol):
    """All that a test needs to know of a cluster."""

    @property
    def name(self) -> str:
        """Its alias in the tests."""

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""


@dataclass(frozen=True)
class ExternalKafka:
    """A cluster that somebody else runs; tests leave their uniquely named topics behind."""

    name: str
    bootstrap_servers: str


def capabilities(cluster: KafkaCluster) -> frozenset[Capability]:
    """What this cluster allows."""
    return frozenset({Capability.CONTROL}) if isinstance(cluster, LocalKafka) else frozenset()


@contextmanager
def kafka_cluster(name: str, external: str = "", provider: str = "") -> Iterator[KafkaCluster]:
    """A running cluster: the external one if given, else `local` or `containers` (default: `$SRM_TEST_BROKERS`)."""
    provider = provider or os.environ.get(PROVIDER_VARIABLE, "") or "local"
    if external:
        yield ExternalKafka(name, external)
    elif provider == "local":
        with LocalKafka(name) as broker:
            yield broker
    elif provider == "containers":
        with _container(name) as container:
            yield container
    else:
        raise SetupError(f"{PROVIDER_VARIABLE}={provider!r} is unknown; allowed: local, containers")


@contextmanager
def _container(name: str) -> Iterator[KafkaCluster]:
    try:
        kafka = importlib.import_module("testcontainers.kafka")
    except ImportError as error:
        raise SetupError("containers need: pip install 'testcontainers[kafka]'") from error
    with kafka.KafkaContainer().with_kraft().with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false") as container:
        yield ExternalKafka(name, container.get_bootstrap_server())
