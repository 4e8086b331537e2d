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
from srm_spark.testing.release import release
from srm_spark.testing.zookeeper import STARTED, zookeeper

START_SECONDS = 90
"""Three to four seconds on a machine of ours; the rest is for a loaded CI."""

_CHECKPOINTS: dict[tuple[str, ...], bytes] = {}
"""What the storage tool has written for a release with some arguments; nothing in it belongs to one cluster."""


def _random_id(beginning: str) -> str:
    # A fixed beginning of three letters: an id that starts with a dash would look like an option to the tool.
    return base64.urlsafe_b64encode(beginning.encode() + os.urandom(13)).decode().rstrip("=")


class LocalKafka:
    """One KRaft broker and controller in one JVM; data, port and cluster id stay the same from start to start.

    `overrides` are broker settings that win over ours. In their values `{port}` and `{controller_port}` stand for the
    ports, so that `listeners` can be replaced: `SASL_SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}`.
    `format_arguments` go to `StorageTool format`, for example `--add-scram`. A broker that joins a cluster has its
    `cluster_id`; see `LocalCluster`. `version` is another one than the usual: see `release`; where that has no KRaft,
    its ZooKeeper is a process of its own on the controller's port, which runs from the first start to `close`.
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
        version: str = "",
    ) -> None:
        self.name = name
        self._release = release(version)
        self.directory = data_dir or Path(tempfile.mkdtemp(prefix=f"srm-kafka-{name}-"))
        self.log_path = self.directory / "server.log"
        self._temporary = data_dir is None
        self._config_path = self.directory / "server.properties"
        self._format_arguments = tuple(format_arguments)
        self.cluster_id = cluster_id or _random_id("srm")
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
            log_levels={self._release.talks: "info"},
            jar_set=self._release.jar_set,
        )
        self._zookeeper: JavaProcess | None = None
        if self._release.has_zookeeper:
            self._zookeeper = zookeeper(self.directory / "zookeeper", self.controller_port, self._release.jar_set)

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
        atexit.register(self.close)
        try:
            self._prepare(timeout)
            self._process.start()
            self._process.wait_for(self._release.started, timeout)
        except SetupError as error:
            self._process.kill()
            raise SetupError(f"broker {self.name!r} at {self.bootstrap_servers} did not start: {error}") from error

    def stop(self, timeout: float = 60) -> None:
        """Graceful stop, as an operator does it."""
        self._process.stop(timeout)

    def kill(self) -> None:
        """kill -9; the next start recovers the logs. With a ZooKeeper it fails while the old session lives: 18 s."""
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
        else:
            self._process.stop()
        if self._zookeeper is not None:
            self._zookeeper.kill()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

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

    def _prepare(self, timeout: float) -> None:
        if self._zookeeper is None:
            self._format()
        elif not self._zookeeper.running:
            self._zookeeper.start()
            self._zookeeper.wait_for(STARTED, timeout)

    def _format(self) -> None:
        folder = self.directory / "data"
        meta, checkpoint = folder / "meta.properties", folder / "bootstrap.checkpoint"
        if meta.exists():
            return
        made_by = (self._release.jar_set, *self._format_arguments)
        if made_by in _CHECKPOINTS:  # the tool would write the same again, with a second of a core
            folder.mkdir(exist_ok=True)
            checkpoint.write_bytes(_CHECKPOINTS[made_by])
            ids = {
                "cluster.id": self.cluster_id,
                "node.id": self._settings()["node.id"],
                "directory.id": _random_id("dir"),
            }
            meta.write_text(javaproperties.dumps({"version": "1", **ids}, timestamp=False))
            return
        config = ("--config", str(self._config_path))
        arguments = ("format", "--cluster-id", self.cluster_id, *config, *self._format_arguments)
        run_java("kafka.tools.StorageTool", *arguments, jar_set=self._release.jar_set)
        if {path.name for path in folder.iterdir()} == {meta.name, checkpoint.name}:
            _CHECKPOINTS[made_by] = checkpoint.read_bytes()

    def _settings(self) -> dict[str, str]:
        ports = {"{port}": str(self.port), "{controller_port}": str(self.controller_port)}
        settings = {**self._release.settings, "log.dirs": str(self.directory / "data"), **self._overrides}
        for placeholder, port in ports.items():
            settings = {key: value.replace(placeholder, port) for key, value in settings.items()}
        return settings
