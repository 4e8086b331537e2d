"""A real single-node Kafka cluster from jars, on free ports of the loopback interface; ready in seconds."""

from __future__ import annotations

import atexit
import base64
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import javaproperties

from srm_spark.errors import SetupError
from srm_spark.testing.java import QUICK_START, run_java
from srm_spark.testing.ports import free_ports
from srm_spark.testing.process import JavaProcess

START_SECONDS = 90
"""Three to four seconds on a machine of ours; the rest is for a loaded CI."""


class LocalKafka:
    """One KRaft broker and controller in one JVM; data, port and cluster id stay the same from start to start.

    `overrides` are broker settings that win over ours. In their values `{port}` and `{controller_port}` stand for the
    ports, so that `listeners` can be replaced: `SASL_SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}`.
    `format_arguments` go to `StorageTool format`, for example `--add-scram`. A broker that joins a cluster has its
    `cluster_id`; see `LocalCluster`.
    """

    def __init__(
        self,
        name: str,
        data_dir: Path | None = None,
        overrides: Mapping[str, str] | None = None,
        heap: str = "512m",
        *,
        jvm_options: Sequence[str] = QUICK_START,
        format_arguments: Sequence[str] = (),
        cluster_id: str | None = None,
    ) -> None:
        self.name = name
        self.directory = data_dir or Path(tempfile.mkdtemp(prefix=f"srm-kafka-{name}-"))
        self.log_path = self.directory / "server.log"
        self._temporary = data_dir is None
        self._config_path = self.directory / "server.properties"
        self._format_arguments = tuple(format_arguments)
        # A fixed beginning: an id that starts with a dash would look like an option to the tool.
        self.cluster_id = cluster_id or base64.urlsafe_b64encode(b"srm" + os.urandom(13)).decode().rstrip("=")
        self._overrides = dict(overrides or {})
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port, self.controller_port = self._ports()
        self._process = JavaProcess(
            "kafka.Kafka",
            str(self._config_path),
            log_path=self.log_path,
            heap=heap,
            # Libraries unpack native code there, and a killed JVM leaves it behind.
            jvm_options=(*jvm_options, f"-Djava.io.tmpdir={self.directory}"),
            log_levels={"kafka.server.KafkaRaftServer": "info"},
        )

    def __enter__(self) -> LocalKafka:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the broker's process lives; a paused one does."""
        return self._process.running

    @property
    def pid(self) -> int:
        """Process id of the broker."""
        return self._process.pid

    def start(self, timeout: float = START_SECONDS) -> None:
        """Start, or start again on the same port and data; returns when the broker answers."""
        self._config_path.write_text(javaproperties.dumps(self._settings(), timestamp=False))
        self._format()
        atexit.register(self.close)
        self._process.start()
        try:
            self._process.wait_for("Kafka Server started", timeout)
        except SetupError as error:
            self._process.kill()
            raise SetupError(f"broker {self.name!r} at {self.bootstrap_servers} did not start: {error}") from error

    def stop(self, timeout: float = 60) -> None:
        """Graceful stop, as an operator does it."""
        self._process.stop(timeout)

    def kill(self) -> None:
        """kill -9; the next start recovers the logs."""
        self._process.kill()

    def pause(self) -> None:
        """SIGSTOP: the broker hangs, its connections stay open."""
        self._process.pause()

    def resume(self) -> None:
        """SIGCONT, the end of a pause."""
        self._process.resume()

    def detach(self) -> int:
        """Leave the broker running when we end; returns the pid to stop it by. Its folder stays, too."""
        atexit.unregister(self.close)
        self._temporary = False
        return self._process.detach()

    def close(self) -> None:
        """End everything. A folder of ours is removed, so its broker needs no graceful stop; a given one is kept."""
        atexit.unregister(self.close)
        if self._temporary:
            self._process.kill()
            shutil.rmtree(self.directory, ignore_errors=True)
        else:
            self._process.stop()

    def tool(
        self, main: str, *arguments: str, stdin: str = "", timeout: float = 60, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own tools against this cluster: `--bootstrap-server` is added."""
        return run_java(
            main,
            "--bootstrap-server",
            self.bootstrap_servers,
            *arguments,
            stdin=stdin,
            timeout=timeout,
            check=check,
        )

    def _ports(self) -> tuple[int, int]:
        """Those of the last time where the folder was used before: clients know them, and so does the data."""
        path = self.directory / "ports"
        if not path.exists():
            path.write_text(" ".join(str(port) for port in free_ports(2)))
        port, controller_port = path.read_text().split()
        return int(port), int(controller_port)

    def _format(self) -> None:
        if (self.directory / "data" / "meta.properties").exists():
            return
        config = ("--config", str(self._config_path))
        run_java("kafka.tools.StorageTool", "format", "--cluster-id", self.cluster_id, *config, *self._format_arguments)

    def _settings(self) -> dict[str, str]:
        ports = {"{port}": str(self.port), "{controller_port}": str(self.controller_port)}
        settings = {**_SETTINGS, "log.dirs": str(self.directory / "data"), **self._overrides}
        for placeholder, port in ports.items():
            settings = {key: value.replace(placeholder, port) for key, value in settings.items()}
        return settings


_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:{controller_port}",
    "listeners": "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
    "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
    # One node can hold one copy.
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # 50 partitions of each would be made on first use, for seconds.
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    # What would hide a mistake of ours, or only waits.
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "broker.heartbeat.interval.ms": "500",
    # After a kill the new process may not register before the controller has given up the old one.
    "broker.session.timeout.ms": "3000",
    # Records may be as old as their writer says; a look every five minutes would delete those of last year.
    "log.retention.ms": "-1",
    # Compaction is seen in tests within seconds.
    "log.cleaner.backoff.ms": "1000",
    # Two cores and small heaps; the cleaner's buffer alone is 128 MB by default.
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": "8388608",
}
