"""What faults happen to: two clusters behind doors, and drivers, by themselves or on a Spark cluster."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from srm_spark.python_workers import DAEMON
from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.broker.mirror import write_config
from tests.broker.process import SRM_DRIVER
from tests.broker.spark_cluster import spark_home, submit_command, submit_environment
from tests.door import Behind, behind_door

EXECUTOR = "CoarseGrainedExecutorBackend"
WORKER = (DAEMON, DAEMON.replace(".", "/"))
FRAGILE = "fragile"
"""A source topic."""


class Scene:
    """Two clusters, and a driver that is started again whenever it ends, as a service manager does.

    ```
    local           srm-driver ── JVM ── Python workers
    local-cluster   JVM ─┬─ srm-driver
                         └─ executors' JVMs ── Python workers
    ```
    """

    def __init__(
        self,
        folder: Path,
        clusters: Mapping[str, Behind],
        keys: Mapping[str, str],
        chance: random.Random,
        master: str = "",
    ) -> None:
        """With a `master`, drivers are started by spark-submit."""
        self.chance = chance
        self._sides = tuple(clusters.values())
        self._alias = next(iter(clusters))
        self._folder = folder
        self._config = write_config(folder / "soak.properties", clusters, ["->".join(clusters)], keys)
        self._home = spark_home(folder) if master else None
        self._master = master
        self._drivers: list[subprocess.Popen[bytes]] = []
        self._seen: set[psutil.Process] = set()

    @property
    def source(self) -> Behind:
        """The cluster that is read, of one broker."""
        return self._sides[0]

    @property
    def target(self) -> Behind:
        """The cluster that is written, of three brokers."""
        return self._sides[1]

    @property
    def fragile_topic(self) -> str:
        """The remote topic that may lose records when its leader dies: two replicas, and one of them is enough."""
        return f"{self._alias}.{FRAGILE}"

    @property
    def a_target_broker(self) -> LocalKafka:
        """Any one but the controller, without which no other can start."""
        return self.chance.choice(self.target.brokers[1:])

    def start_driver(self) -> None:
        """One more driver; while another one owns the flow, it waits."""
        command, environment = [str(SRM_DRIVER), "--config", str(self._config)], dict(os.environ)
        if self._home is not None:
            command = submit_command(self._config, self._master, self._home)
            environment = submit_environment(self._home)
        environment["PYTHONFAULTHANDLER"] = "1"
        with (self._folder / f"driver-{len(self._drivers)}.log").open("wb") as log:
            self._drivers.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder, env=environment))

    def restart_dead_driver(self) -> None:
        """What a service manager does with one that died by itself; each is said, so that nobody overlooks it."""
        code = self._drivers[-1].poll()
        if code is not None:
            print(
                f"driver {len(self._drivers) - 1} ended with {code} by itself, see its log: started again", flush=True
            )
            self.start_driver()

    @property
    def driver(self) -> psutil.Process:
        """The Python process of the newest driver."""
        if not self._master:
            return self.first
        # For a moment a process bears the command line of the one that starts it, so only Python right below the JVM.
        return await_until(self._drivers_below, 60, "the driver's process")[0]

    @property
    def jvm(self) -> psutil.Process:
        """Its JVM; of a Spark cluster the driver's."""
        return self.first if self._master else self.child("java")

    @property
    def first(self) -> psutil.Process:
        """The process of which all others of the newest driver are children."""
        return psutil.Process(self._drivers[-1].pid)

    @property
    def family(self) -> list[psutil.Process]:
        """All processes of the newest driver, executors too; they are ended at the latest with the scene."""
        with suppress(psutil.NoSuchProcess):
            found = [self.first, *self.first.children(recursive=True)]
            self._seen.update(found)
            return found
        return []

    def children(self, *words: str) -> list[psutil.Process]:
        """Living descendants of the first process whose command has one of these words, in the order of their start."""
        return [one for one in self.family[1:] if any(word in " ".join(_command(one)) for word in words)]

    def child(self, *words: str) -> psutil.Process:
        """The last of them, as soon as there is one."""
        return await_until(lambda: self.children(*words), 60, f"a process of the driver with {words}")[-1]

    def end_drivers(self, *, kindly: bool) -> None:
        """Stop whatever still runs."""
        if kindly and self._drivers[-1].poll() is None:
            self.driver.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._drivers[-1].wait(60)
        for process in self._drivers:
            if process.poll() is None:  # else its pid may be somebody else's by now
                with suppress(psutil.NoSuchProcess):
                    self._seen.update(psutil.Process(process.pid).children(recursive=True))
            process.kill()
            process.wait(60)
        for one in self._seen:  # psutil knows whether the pid is somebody else's by now
            with suppress(psutil.NoSuchProcess):
                one.kill()

    def _drivers_below(self) -> list[psutil.Process]:
        commands = [(one, _command(one)) for one in self.first.children()]
        return [one for one, words in commands if words and "python" in words[0] and "srm_driver.py" in " ".join(words)]


@contextmanager
def clusters() -> Iterator[tuple[Behind, Behind]]:
    """Source and target of their own, whose brokers may be killed."""
    # A broker that hangs is given up after nine seconds, as Kafka's default has it, and high watermarks wait for that.
    two = {"min.insync.replicas": "2", "broker.session.timeout.ms": "9000"}
    with behind_door("soak-source") as source, behind_door("soak-target", two, brokers=3) as target:
        yield source, target


def await_end(process: psutil.Process, seconds: float) -> None:
    """Wait until a process is gone; one that stays says in its log where its threads are."""
    try:
        process.wait(seconds)
    except psutil.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        raise AssertionError(f"{process} is there after {seconds:g} s; its log says where its threads are") from None


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []
