"""The real MirrorMaker 2 from its jars: as a whole, in a Connect cluster, a connector alone, and console formatters."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import javaproperties

from srm_spark.errors import SetupError
from srm_spark.testing import JavaProcess, KafkaCluster, run_java
from srm_spark.testing.ports import free_ports
from tests.awaiting import await_until
from tests.broker.mirror import write_config

START_SECONDS = 90.0
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
    # A worker that was killed leaves its tasks to nobody for five minutes otherwise.
    flush = {f"{target}.offset.flush.interval.ms": "1000", f"{target}.scheduled.rebalance.max.delay.ms": "0"}
    path = write_config(folder / "mm2.properties", clusters, [flow], {**_KEYS, **flush, **keys})
    with _running(JavaProcess(f"{_MIRROR}.MirrorMaker", str(path), log_path=folder / "mm2.log")) as process:
        yield process


@contextmanager
def connect_cluster(
    folder: Path,
    clusters: Mapping[str, KafkaCluster],
    flow: str,
    worker: Mapping[str, str],
    connector: Mapping[str, str],
) -> Iterator[JavaProcess]:
    """A Connect cluster of one worker, on the target, that runs MirrorMaker 2's source connector.

    `worker` must name the group and the three storage topics, `connector` the connector.
    """
    target = flow.partition("->")[2]
    (port,) = free_ports(1)
    lines = {
        "bootstrap.servers": clusters[target].bootstrap_servers,
        "listeners": f"http://127.0.0.1:{port}",
        **{f"{part}.converter": _BYTES for part in ("key", "value", "header")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "config", "status")},
        "scheduled.rebalance.max.delay.ms": "0",
        **worker,
    }
    path = folder / "distributed.properties"
    path.write_text(javaproperties.dumps(lines, timestamp=False))
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    keys = {"connector.class": f"{_MIRROR}.MirrorSourceConnector", **_connector(clusters, flow), **connector}
    url = f"http://127.0.0.1:{port}/connectors/{connector['name']}/config"
    with _running(JavaProcess(main, str(path), log_path=folder / "distributed.log")) as process:
        await_until(lambda: _put(url, keys), START_SECONDS, lambda: f"connector: {process.log_text()[-2000:]}")
        yield process


@contextmanager
def checkpoint_connector(
    folder: Path, clusters: Mapping[str, KafkaCluster], flow: str, keys: Mapping[str, str]
) -> Iterator[JavaProcess]:
    """MirrorMaker 2's checkpoint connector alone: somebody else copies the records and writes the offset syncs."""
    target = flow.partition("->")[2]
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
        **_connector(clusters, flow),
        **keys,
    }
    paths = []
    for name, lines in (("worker", worker), ("connector", connector)):
        paths.append(folder / f"{name}.properties")
        paths[-1].write_text(javaproperties.dumps(lines, timestamp=False))
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    with _running(JavaProcess(main, *map(str, paths), log_path=folder / "connect.log")) as process:
        yield process


def formatted(cluster: KafkaCluster, topic: str, kind: str) -> list[str]:
    """What Kafka's console consumer prints of an internal topic; `kind` is Heartbeat, Checkpoint or OffsetSync."""
    arguments = ("--topic", topic, "--from-beginning", "--timeout-ms", "10000")
    formatter = ("--formatter", f"{_MIRROR}.formatters.{kind}Formatter")
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    return run_java(consumer, *server, *arguments, *formatter, check=False).stdout.splitlines()


def _connector(clusters: Mapping[str, KafkaCluster], flow: str) -> dict[str, str]:
    source, _, target = flow.partition("->")
    return {
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "source.cluster.bootstrap.servers": clusters[source].bootstrap_servers,
        "target.cluster.bootstrap.servers": clusters[target].bootstrap_servers,
    }


def _put(url: str, keys: Mapping[str, str]) -> bool:
    """Whether the worker took it; while it starts or has no leader, it does not."""
    body = json.dumps(dict(keys)).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=30):
            return True
    except OSError:
        return False


@contextmanager
def _running(process: JavaProcess) -> Iterator[JavaProcess]:
    process.start()
    try:
        yield process
    finally:
        try:
            process.stop(60)
        except SetupError:  # Jetty in it may wait for itself for ever, where it is asked to end amid its start
            process.kill()
