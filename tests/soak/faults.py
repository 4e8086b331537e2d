"""What may die, hang or come back, and who does it: each fault is one function of the scene."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.broker.mirror import write_config
from tests.broker.process import SRM_DRIVER
from tests.kafka_io import Kafka

_RECOVER_SECONDS = 240.0


class Scene:
    """Two clusters, and a driver that is started again whenever it ends, as a service manager does."""

    def __init__(
        self, folder: Path, clusters: Mapping[str, LocalKafka], keys: Mapping[str, str], chance: random.Random
    ) -> None:
        self.source, self.target = clusters.values()
        self.chance = chance
        self._folder = folder
        self._config = write_config(folder / "soak.properties", clusters, ["->".join(clusters)], keys)
        self._drivers: list[subprocess.Popen[bytes]] = []

    def start_driver(self) -> None:
        """One more driver; while another one owns the flow, it waits."""
        log = (self._folder / f"driver-{len(self._drivers)}.log").open("wb")
        command = [str(SRM_DRIVER), "--config", str(self._config)]
        self._drivers.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder))
        log.close()

    @property
    def driver(self) -> psutil.Process:
        """The newest driver."""
        return psutil.Process(self._drivers[-1].pid)

    def end_drivers(self, *, kindly: bool) -> None:
        """Stop whatever still runs."""
        for process in self._drivers:
            family = _family(process.pid)
            if process.poll() is None:
                process.send_signal(signal.SIGTERM if kindly else signal.SIGKILL)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(60)
            for one in family:
                with suppress(psutil.NoSuchProcess):
                    one.kill()


def kill_driver(scene: Scene) -> None:
    """The Python driver dies; its JVM and workers may live on for a moment."""
    scene.driver.kill()
    scene.start_driver()


def kill_jvm(scene: Scene) -> None:
    """The JVM dies, and with it the session: the driver ends, and is started again."""
    driver = scene.driver
    _child(driver, "java").kill()
    with suppress(psutil.TimeoutExpired):
        driver.wait(90)
    scene.start_driver()


def kill_worker(scene: Scene) -> None:
    """A Python worker of Spark dies amid its task."""
    with suppress(psutil.NoSuchProcess):
        _child(scene.driver, "pyspark.daemon", "pyspark/daemon").kill()


def terminate_driver(scene: Scene) -> None:
    """A clean stop, and the next start."""
    driver = scene.driver
    driver.terminate()
    driver.wait(120)
    scene.start_driver()


def kill_source(scene: Scene) -> None:
    """kill -9 of the source's broker."""
    _bounce(scene, scene.source, scene.source.kill)


def kill_target(scene: Scene) -> None:
    """kill -9 of the target's broker."""
    _bounce(scene, scene.target, scene.target.kill)


def stop_target(scene: Scene) -> None:
    """The target's broker is restarted by its operator."""
    _bounce(scene, scene.target, scene.target.stop)


def pause_target(scene: Scene) -> None:
    """The target's broker hangs for a while."""
    scene.target.pause()
    time.sleep(scene.chance.uniform(1, 12))
    scene.target.resume()


def pause_source(scene: Scene) -> None:
    """The source's broker hangs for a while."""
    scene.source.pause()
    time.sleep(scene.chance.uniform(1, 12))
    scene.source.resume()


def come_back(scene: Scene) -> None:
    """A driver is frozen with all that belongs to it, another one takes over, and then the frozen one goes on."""
    frozen = [scene.driver, *_family(scene.driver.pid)]
    for one in frozen:
        one.suspend()
    scene.start_driver()
    time.sleep(scene.chance.uniform(35, 50))  # the claim is free after 10 s; the heir needs 20 to start
    for one in frozen:
        with suppress(psutil.NoSuchProcess):
            one.resume()
    time.sleep(scene.chance.uniform(5, 15))
    with suppress(psutil.NoSuchProcess):
        frozen[0].kill()


Fault = Callable[[Scene], None]

ALWAYS: tuple[Fault, ...] = (
    kill_driver,
    kill_jvm,
    kill_worker,
    terminate_driver,
    kill_source,
    kill_target,
    stop_target,
    pause_target,
    pause_source,
)
"""In every mode."""
EXACTLY_ONCE = (*ALWAYS, come_back)
"""A writer that comes back is harmless only there."""


def await_progress(target: Kafka, remote: str, more: int = 200) -> None:
    """Wait until records arrive again."""
    before = _count(target, remote)
    await_until(lambda: _count(target, remote) >= before + more, _RECOVER_SECONDS, f"{more} more records in {remote}")


@contextmanager
def brokers() -> Iterator[tuple[LocalKafka, LocalKafka]]:
    """Source and target of their own, which may be killed."""
    with LocalKafka("soak-source") as source, LocalKafka("soak-target") as target:
        yield source, target


def _count(cluster: Kafka, topic: str) -> int:
    try:
        return cluster.count(topic)
    except Exception:  # the broker may be away
        return -1_000_000


def _bounce(scene: Scene, broker: LocalKafka, end: Callable[[], None]) -> None:
    end()
    time.sleep(scene.chance.uniform(0, 4))
    broker.start()


def _family(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _child(driver: psutil.Process, *words: str) -> psutil.Process:
    """The last started child whose command has one of these words."""

    def found() -> list[psutil.Process]:
        return [one for one in _family(driver.pid) if any(word in " ".join(_command(one)) for word in words)]

    return await_until(found, 60, f"a child of {driver.pid} with {words}")[-1]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []
