"""What differs between releases of Kafka for a broker of ours: jars, settings, how it says that it is up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from srm_spark.errors import SetupError
from srm_spark.jars import KAFKA, OTHER_KAFKAS


@dataclass(frozen=True)
class Release:
    """One release; where its metadata lie decides nearly all that differs."""

    jar_set: str
    settings: Mapping[str, str] = field(repr=False)
    started: str
    """Pattern of what its log has once it answers."""
    talks: str
    """The logger that says so."""
    has_zookeeper: bool = False


def release(version: str = "") -> Release:
    """The release of this version, by default the usual one; a SetupError where there are no jars for it."""
    name = f"kafka-{version}" if version else KAFKA.name
    known = [jar_set.name for jar_set in (KAFKA, *OTHER_KAFKAS)]
    if name not in known:
        raise SetupError(f"no brokers of Kafka {version!r}: jars/manifest.py has {', '.join(known)}")
    if version.startswith("2."):
        settings = {**_COMMON, **_ZOOKEEPER}
        return Release(name, settings, r"\[KafkaServer id=\d+\] started", "kafka.server.KafkaServer", True)
    return Release(name, {**_COMMON, **_KRAFT}, "Kafka Server started", "kafka.server.KafkaRaftServer")


_KRAFT = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:{controller_port}",
    "listeners": "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
    "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    # Two records a second that say nothing: a third of what an idle broker takes of the cores.
    "metadata.max.idle.interval.ms": "0",
    "broker.heartbeat.interval.ms": "500",
    # After a kill the new process may not register before the controller has given up the old one.
    "broker.session.timeout.ms": "3000",
}

_ZOOKEEPER = {
    "broker.id": "1",
    "zookeeper.connect": "127.0.0.1:{controller_port}",
    "zookeeper.connection.timeout.ms": "60000",
    "listeners": "PLAINTEXT://127.0.0.1:{port}",
}

_COMMON = {
    # One node can hold one copy.
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # 50 partitions of each would be made on first use, for seconds.
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    # What would hide a mistake of ours, or only waits.
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    # Records may be as old as their writer says; a look every five minutes would delete those of last year.
    "log.retention.ms": "-1",
    # Compaction is seen in tests within seconds.
    "log.cleaner.backoff.ms": "1000",
    # Two cores and small heaps; the cleaner's buffer alone is 128 MB by default.
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": "8388608",
}
