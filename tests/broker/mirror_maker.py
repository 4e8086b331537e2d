"""The real MirrorMaker 2 from its jars: as a whole, its checkpoint connector alone, and its console formatters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import javaproperties

from srm_spark.testing import JavaProcess, KafkaCluster, run_java
from srm_spark.testing.ports import free_ports
from tests.broker.mirror import write_config

_MIRROR = "org.apache.kafka.connect.mirror"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_KEYS = {
    "sync.topic.acls.enabled": "false",
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "config.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
}


@contextmanager
def mirror_maker(
    folder: Path, clusters: Mapping[str, KafkaCluster], flow: str, keys: Mapping[str, str]
) -> Iterator[JavaProcess]:
    """MirrorMaker 2 in dedicated mode on one flow; at the end of the block it is stopped in good order."""
    target = flow.partition("->")[2]
    flush = {f"{target}.offset.flush.interval.ms": "1000"}
    path = write_config(folder / "mm2.properties", clusters, [flow], {**_KEYS, **flush, **keys})
    yield from _running(JavaProcess(f"{_MIRROR}.MirrorMaker", str(path), log_path=folder / "mm2.log"))


@contextmanager
def checkpoint_connector(
    folder: Path, clusters: Mapping[str, KafkaCluster], flow: str, keys: Mapping[str, str]
) -> Iterator[JavaProcess]:
    """MirrorMaker 2's checkpoint connector alone: somebody else copies the records and writes the offset syncs."""
    source, _, target = flow.partition("->")
    worker = {
        "bootstrap.servers": clusters[target].bootstrap_servers,
        "listeners": f"http://127.0.0.1:{free_ports(1)[0]}",
        "key.converter": _BYTES,
        "value.converter": _BYTES,
        "offset.storage.file.filename": str(folder / "connect.offsets"),
    }
    connector = {
        **_KEYS,
        "name": "MirrorCheckpointConnector",
        "connector.class": f"{_MIRROR}.MirrorCheckpointConnector",
        "checkpoints.topic.replication.factor": "1",
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "source.cluster.bootstrap.servers": clusters[source].bootstrap_servers,
        "target.cluster.bootstrap.servers": clusters[target].bootstrap_servers,
        **keys,
    }
    paths = []
    for name, lines in (("worker", worker), ("connector", connector)):
        paths.append(folder / f"{name}.properties")
        paths[-1].write_text(javaproperties.dumps(lines, timestamp=False))
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    yield from _running(JavaProcess(main, *map(str, paths), log_path=folder / "connect.log"))


def formatted(cluster: KafkaCluster, topic: str, kind: str) -> list[str]:
    """What Kafka's console consumer prints of an internal topic; `kind` is Heartbeat, Checkpoint or OffsetSync."""
    arguments = ("--topic", topic, "--from-beginning", "--timeout-ms", "10000")
    formatter = ("--formatter", f"{_MIRROR}.formatters.{kind}Formatter")
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    return run_java(consumer, *server, *arguments, *formatter, check=False).stdout.splitlines()


def _running(process: JavaProcess) -> Iterator[JavaProcess]:
    process.start()
    try:
        yield process
    finally:
        process.stop(120)
