"""What may die, hang or come back, and who does it: each fault is one function of the scene.

Faults come alone and in pairs: something dies while something else hangs, is slow or is cut off.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

import psutil

from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.door import Doors
from tests.kafka_io import Kafka
from tests.soak.scene import EXECUTOR, WORKER, Scene, await_end

_RECOVER_SECONDS = 240.0
_THROTTLED_SECONDS = 15.0
_BYTES_PER_SECOND = 4000
"""A tenth of what the load writes."""
_IN_SYNC_SECONDS = 90.0

Fault = Callable[[Scene], None]
Trouble = Callable[[Scene], AbstractContextManager[None]]
"""What lasts for a while, so that something else can happen meanwhile."""


def kill_driver(scene: Scene) -> None:
    """The Python driver dies; its JVM, executors and workers may live on for a moment."""
    first = scene.first
    scene.driver.kill()
    await_end(first, 90)
    scene.start_driver()


def kill_family(scene: Scene) -> None:
    """The driver and everything that belongs to it die at one moment, as with their machine."""
    first = scene.first
    for one in reversed(scene.family):
        with suppress(psutil.NoSuchProcess):
            one.kill()
    await_end(first, 90)
    scene.start_driver()


def kill_jvm(scene: Scene) -> None:
    """The JVM dies, and with it the session: the driver ends, and is started again. Executors live on for a while."""
    driver = scene.driver
    scene.jvm.kill()
    await_end(driver, 90)
    scene.start_driver()


def kill_worker(scene: Scene) -> None:
    """A Python worker of Spark dies amid its task; where there is none yet, the driver, which copies by itself then."""
    if not scene.children(*WORKER):
        kill_driver(scene)
        return
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
    _bounce(scene, scene.source.broker, LocalKafka.kill)


def kill_target(scene: Scene) -> None:
    """kill -9 of a broker of the target."""
    _bounce(scene, scene.a_target_broker, LocalKafka.kill)


def stop_target(scene: Scene) -> None:
    """A broker of the target is restarted by its operator."""
    _bounce(scene, scene.a_target_broker, LocalKafka.stop)


def stop_both(scene: Scene) -> None:
    """The source and a broker of the target are stopped, and started again."""
    scene.source.broker.stop()
    stop_target(scene)
    scene.source.broker.start()


def pause_target(scene: Scene) -> None:
    """A broker of the target hangs for a while."""
    _for_a_while(scene, target_hangs)


def pause_source(scene: Scene) -> None:
    """The source's broker hangs for a while."""
    _for_a_while(scene, source_hangs)


def refuse_source(scene: Scene) -> None:
    """The network refuses connections to the source."""
    _for_a_while(scene, source_refuses)


def refuse_target(scene: Scene) -> None:
    """The network refuses connections to the target."""
    _for_a_while(scene, target_refuses)


def cut_off_target(scene: Scene) -> None:
    """The network to the target swallows whatever is sent."""
    _for_a_while(scene, target_is_cut_off)


def throttle_target(scene: Scene) -> None:
    """The target allows a tenth of what there is to write."""
    with quota_is_low(scene):
        time.sleep(_THROTTLED_SECONDS)


def come_back(scene: Scene) -> None:
    """A driver is frozen with all that belongs to it, another one takes over, and then the frozen one goes on."""
    _freeze(scene, scene.family)


def executors_outlive_driver(scene: Scene) -> None:
    """The driver dies, and its executors go on with their tasks when another driver has taken over."""
    _freeze(scene, scene.children(EXECUTOR, *WORKER), kill_jvm)


def elect_unclean(scene: Scene) -> None:
    """The target makes a leader of a replica that lacks the newest records: they are lost there, and must be told."""
    direct, topic = Kafka(scene.target.cluster), scene.fragile_topic
    leading, lagging = scene.target.brokers[1:]
    lagging.kill()
    _await_in_sync(direct, topic, {2})
    await_progress(direct, topic, 20)
    leading.kill()
    lagging.start()
    _await_in_sync(direct, topic, {3})
    leading.start()
    _await_in_sync(direct, topic, {2, 3})
    end_hanging_transactions(scene.target.broker, topic)


def end_hanging_transactions(broker: LocalKafka, topic: str) -> None:
    """What an operator does about KIP-664, with Kafka's own tool: ends transactions that no coordinator knows."""
    tool = "org.apache.kafka.tools.TransactionsCommand"
    found = broker.tool(tool, "find-hanging", "--topic", topic, "--max-transaction-timeout", "0").stdout
    for line in found.splitlines():
        columns = line.split()
        if columns[:1] == [topic]:  # below a head of: Topic Partition ProducerId … StartOffset …
            place = ("--topic", topic, "--partition", columns[1], "--start-offset", columns[5])
            print(broker.tool(tool, "abort", *place).stdout or f"ended: {line}")


@contextmanager
def target_hangs(scene: Scene) -> Iterator[None]:
    """A broker of the target: it leads some partitions and follows in others, whose high watermarks stand still."""
    broker = scene.a_target_broker
    broker.pause()
    try:
        yield
    finally:
        broker.resume()


@contextmanager
def source_hangs(scene: Scene) -> Iterator[None]:
    """The source's only broker."""
    scene.source.broker.pause()
    try:
        yield
    finally:
        scene.source.broker.resume()


def source_refuses(scene: Scene) -> AbstractContextManager[None]:
    """Drivers and executors get no connection to the source."""
    return _shut(scene.source.door, Doors.refuse)


def target_refuses(scene: Scene) -> AbstractContextManager[None]:
    """Drivers and executors get no connection to the target."""
    return _shut(scene.target.door, Doors.refuse)


def target_is_cut_off(scene: Scene) -> AbstractContextManager[None]:
    """What drivers and executors send to the target does not arrive, yet."""
    return _shut(scene.target.door, Doors.hang)


@contextmanager
def quota_is_low(scene: Scene) -> Iterator[None]:
    """The target allows a tenth of what there is to write; what is sent waits in the sockets."""
    _quota(scene, "--add-config", f"producer_byte_rate={_BYTES_PER_SECOND}")
    try:
        yield
    finally:
        _quota(scene, "--delete-config", "producer_byte_rate")


def _while(trouble: Trouble, kill: Fault) -> Fault:
    """`kill` happens amid a `trouble`, which goes on for a while."""

    def both(scene: Scene) -> None:
        with trouble(scene):
            time.sleep(scene.chance.uniform(0.5, 4))
            kill(scene)
            time.sleep(scene.chance.uniform(1, 20))  # the next driver starts amid the trouble, or behind it

    both.__name__ = f"{kill.__name__}_while_{trouble.__name__}"
    both.__doc__ = f"{kill.__doc__} Meanwhile: {trouble.__doc__}"
    return both


ALONE: tuple[Fault, ...] = (
    kill_driver,
    kill_family,
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
    elect_unclean,
)
"""One at a time, in every mode."""

PAIRS: tuple[Fault, ...] = tuple(
    _while(trouble, kill)
    for trouble, kill in itertools.product(
        (target_hangs, quota_is_low, target_is_cut_off, target_refuses, source_hangs), (kill_family, kill_worker)
    )
)
"""Two at a time, in every mode."""


def kinds(*, is_fenced: bool, has_executors: bool) -> Sequence[Fault]:
    """All that may happen. A writer that comes back is harmless where the one behind it has fenced it off."""
    found = [*ALONE, *PAIRS]
    if has_executors:
        found += [kill_executor, kill_executor, _while(target_hangs, kill_executor)]
    if is_fenced:
        found += [executors_outlive_driver] if has_executors else [come_back]
    return found


def await_progress(target: Kafka, remote: str, more: int = 200, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Wait until records arrive again; `meanwhile` is called now and then."""
    before = _count(target, remote)

    def has_arrived() -> bool:
        meanwhile()
        return _count(target, remote) >= before + more

    await_until(has_arrived, _RECOVER_SECONDS, f"{more} more records in {remote}")


def _count(cluster: Kafka, topic: str) -> int:
    try:
        return cluster.count(topic)
    except Exception:  # the broker may be away
        return -1_000_000


def _await_in_sync(target: Kafka, topic: str, nodes: set[int]) -> None:
    """Wait until these nodes are the in-sync replicas of every partition, and one of them leads."""

    def found() -> bool:
        partitions = target.admin.list_topics(topic, timeout=30).topics[topic].partitions.values()
        return all(set(one.isrs) == nodes and one.leader in nodes for one in partitions)

    await_until(found, _IN_SYNC_SECONDS, f"{sorted(nodes)} in sync for {topic}")


def _bounce(scene: Scene, broker: LocalKafka, end: Callable[[LocalKafka], None]) -> None:
    end(broker)
    time.sleep(scene.chance.uniform(0, 4))
    broker.start()


@contextmanager
def _shut(door: Doors, close: Callable[[Doors], None]) -> Iterator[None]:
    close(door)
    try:
        yield
    finally:
        door.open()


def _for_a_while(scene: Scene, trouble: Trouble) -> None:
    with trouble(scene):
        time.sleep(scene.chance.uniform(1, 12))


def _quota(scene: Scene, *change: str) -> None:
    """Change the default quota of all clients."""
    broker = scene.target.broker
    broker.tool("kafka.admin.ConfigCommand", "--alter", "--entity-type", "clients", "--entity-default", *change)


def _freeze(scene: Scene, frozen: Sequence[psutil.Process], first: Fault | None = None) -> None:
    """Suspend processes, let another driver take over, and let them go on; with what happens in between."""
    for one in frozen:
        with suppress(psutil.NoSuchProcess):
            one.suspend()
    if first is None:
        scene.start_driver()
    else:
        first(scene)
    time.sleep(scene.chance.uniform(12, 25))  # the lease is free after 3 s; the heir needs 5 to start
    for one in frozen:
        with suppress(psutil.NoSuchProcess):
            one.resume()
    time.sleep(scene.chance.uniform(5, 15))
    for one in frozen:
        with suppress(psutil.NoSuchProcess):
            one.kill()
