"""What may die, hang or come back, and who does it: each fault is one function of the scene."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import psutil

from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.door import Door
from tests.kafka_io import Kafka
from tests.soak.scene import EXECUTOR, WORKER, Scene, await_end

_RECOVER_SECONDS = 240.0
_THROTTLED_SECONDS = 15.0
_BYTES_PER_SECOND = 4000
"""A tenth of what the load writes."""


def kill_driver(scene: Scene) -> None:
    """The Python driver dies; its JVM, executors and workers may live on for a moment."""
    first = scene.first
    scene.driver.kill()
    await_end(first, 90)
    scene.start_driver()


def kill_jvm(scene: Scene) -> None:
    """The JVM dies, and with it the session: the driver ends, and is started again. Executors live on for a while."""
    driver = scene.driver
    scene.jvm.kill()
    await_end(driver, 90)
    scene.start_driver()


def kill_worker(scene: Scene) -> None:
    """A Python worker of Spark dies amid its task."""
    with suppress(psutil.NoSuchProcess):
        scene.child(*WORKER).kill()


def kill_executor(scene: Scene) -> None:
    """An executor of the Spark cluster dies."""
    with suppress(psutil.NoSuchProcess):
        scene.chance.choice(scene.children(EXECUTOR) or [scene.child(EXECUTOR)]).kill()


def terminate_driver(scene: Scene) -> None:
    """A clean stop, and the next start."""
    first = scene.first
    scene.driver.terminate()
    first.wait(120)
    scene.start_driver()


def terminate_start(scene: Scene) -> None:
    """A driver is stopped before it has started well, too."""
    terminate_driver(scene)
    time.sleep(scene.chance.uniform(0, 20))
    terminate_driver(scene)


def kill_source(scene: Scene) -> None:
    """kill -9 of the source's broker."""
    _bounce(scene, scene.source, scene.source.kill)


def kill_target(scene: Scene) -> None:
    """kill -9 of the target's broker."""
    _bounce(scene, scene.target, scene.target.kill)


def stop_target(scene: Scene) -> None:
    """The target's broker is restarted by its operator."""
    _bounce(scene, scene.target, scene.target.stop)


def stop_both(scene: Scene) -> None:
    """Both clusters are stopped, and started again."""
    scene.source.stop()
    _bounce(scene, scene.target, scene.target.stop)
    scene.source.start()


def pause_target(scene: Scene) -> None:
    """The target's broker hangs for a while."""
    scene.target.pause()
    _while(scene)
    scene.target.resume()


def pause_source(scene: Scene) -> None:
    """The source's broker hangs for a while."""
    scene.source.pause()
    _while(scene)
    scene.source.resume()


def refuse_source(scene: Scene) -> None:
    """The network refuses connections to the source."""
    _closed(scene, scene.source_door, scene.source_door.refuse)


def refuse_target(scene: Scene) -> None:
    """The network refuses connections to the target."""
    _closed(scene, scene.target_door, scene.target_door.refuse)


def cut_off_target(scene: Scene) -> None:
    """The network to the target swallows whatever is sent."""
    _closed(scene, scene.target_door, scene.target_door.hang)


def throttle_target(scene: Scene) -> None:
    """The target allows a tenth of what there is to write."""
    _quota(scene.target, "--add-config", f"producer_byte_rate={_BYTES_PER_SECOND}")
    time.sleep(_THROTTLED_SECONDS)
    _quota(scene.target, "--delete-config", "producer_byte_rate")


def come_back(scene: Scene) -> None:
    """A driver is frozen with all that belongs to it, another one takes over, and then the frozen one goes on."""
    _freeze(scene, scene.family)


def executors_outlive_driver(scene: Scene) -> None:
    """The driver dies, and its executors go on with their tasks when another driver has taken over."""
    _freeze(scene, scene.children(EXECUTOR, *WORKER), kill_jvm)


Fault = Callable[[Scene], None]

ALWAYS: tuple[Fault, ...] = (
    kill_driver,
    kill_jvm,
    kill_worker,
    terminate_driver,
    terminate_start,
    kill_source,
    kill_target,
    stop_target,
    stop_both,
    pause_target,
    pause_source,
    refuse_source,
    refuse_target,
    cut_off_target,
    throttle_target,
)
"""In every mode."""


def kinds(*, is_exactly_once: bool, has_executors: bool) -> Sequence[Fault]:
    """All that may happen. A writer that comes back is harmless only in the exactly-once mode."""
    found = [*ALWAYS]
    if has_executors:
        found += [kill_executor, kill_executor]
    if is_exactly_once:
        found += [executors_outlive_driver] if has_executors else [come_back]
    return found


def await_progress(target: Kafka, remote: str, more: int = 200) -> None:
    """Wait until records arrive again."""
    before = _count(target, remote)
    await_until(lambda: _count(target, remote) >= before + more, _RECOVER_SECONDS, f"{more} more records in {remote}")


def _count(cluster: Kafka, topic: str) -> int:
    try:
        return cluster.count(topic)
    except Exception:  # the broker may be away
        return -1_000_000


def _bounce(scene: Scene, broker: LocalKafka, end: Callable[[], None]) -> None:
    end()
    time.sleep(scene.chance.uniform(0, 4))
    broker.start()


def _closed(scene: Scene, door: Door, close: Callable[[], None]) -> None:
    close()
    _while(scene)
    door.open()


def _while(scene: Scene) -> None:
    time.sleep(scene.chance.uniform(1, 12))


def _quota(broker: LocalKafka, *change: str) -> None:
    """Change the default quota of all clients."""
    broker.tool("kafka.admin.ConfigCommand", "--alter", "--entity-type", "clients", "--entity-default", *change)


def _freeze(scene: Scene, frozen: Sequence[psutil.Process], first: Callable[[Scene], None] | None = None) -> None:
    """Suspend processes, let another driver take over, and let them go on; with what happens in between."""
    for one in frozen:
        with suppress(psutil.NoSuchProcess):
            one.suspend()
    if first is None:
        scene.start_driver()
    else:
        first(scene)
    time.sleep(scene.chance.uniform(35, 50))  # the claim is free after 10 s; the heir needs 20 to start
    for one in frozen:
        with suppress(psutil.NoSuchProcess):
            one.resume()
    time.sleep(scene.chance.uniform(5, 15))
    for one in frozen:
        with suppress(psutil.NoSuchProcess):
            one.kill()
