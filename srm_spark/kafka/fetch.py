"""How a source is read, as it travels to the executors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError

from srm_spark.errors import SourceDenied
from srm_spark.kafka.clients import ClientOptions
from srm_spark.kafka.failures import remedy


def fetch_options(rendered: Mapping[str, str | int | float | bool]) -> ClientOptions:
    """Options of who reads: what the user set, over what the promises rest on.

    What is read is what the flow's isolation level lets it read, from the first offset that is still there, and the end
    of a partition is told. Most is for librdkafka's consumer, where that reads.
    """
    return {
        "isolation.level": "read_uncommitted",  # as Java's consumers, and so Spark's
        "check.crcs": True,
        **rendered,
        "group.id": "srm-ranges",  # librdkafka insists on one; it is never joined
        # A fetch that waits for more than there is would keep the next range waiting behind it.
        "fetch.wait.max.ms": 1,
        # What is fetched ahead of a range's end is fetched again: little ahead, and asked for as soon as there is room.
        "queued.max.messages.kbytes": 8192,
        "fetch.queue.backoff.ms": 1,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "allow.auto.create.topics": False,
        # So long a topic that a broker does not know is taken for a new one; the driver has seen it already.
        "topic.metadata.propagation.max.ms": 5000,
    }


@dataclass(frozen=True)
class Fetch:
    """How a source is read; shipped to the executors, so it holds plain values only."""

    options: ClientOptions = field(repr=False)
    cluster: str
    """Alias of the source."""
    timeout: float
    """Seconds without a record after which the task gives up."""
    in_loop: bool = True
    """Whether compiled loops may take batches apart, where there are any; else librdkafka reads."""
    is_whole: bool = True
    """Whether batches are copied as they are, where they can be."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Of which topics the ranges are: another one of the same name has other records at these offsets."""

    @property
    def committed(self) -> bool:
        """Whether transactions that were aborted are left out."""
        return self.options["isolation.level"] == "read_committed"

    @property
    def rack(self) -> str:
        """Where this reads from, if it can (KIP-392)."""
        return str(self.options.get("client.rack", ""))


def denied(cluster: str, topics: Sequence[str]) -> SourceDenied:
    """The error where topics of the source may not be read."""
    names = ", ".join(topics)
    hint = remedy(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), f"READ on topic {names}", "")
    return SourceDenied(f"cluster {cluster}: Not authorized to access topics: [{names}]; {hint}", topics)
