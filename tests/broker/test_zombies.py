"""Drivers that are frozen with all that belongs to them, and go on when another one has taken over: in the default mode
as well, nothing that they send then is taken.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.broker.mirror import SOON
from tests.broker.process import srm_driver
from tests.kafka_io import Kafka
from tests.soak.faults import executors_outlive_driver
from tests.soak.load import Load, await_all, compare
from tests.soak.run import soak

pytestmark = pytest.mark.slow

PARTITIONS = 4
CLEAR_SECONDS = 8.0
TAKEN_OVER = " topics=1 partitions="
"""What a log says as soon as a driver owns the flow, before it fences the older one."""
BACKLOG_SECONDS = 3.0
"""So long the target hangs, so that the pass behind it is long enough to be frozen in its midst."""
GAVE_UP = " state=retrying "


class Driver:
    """A driver and its log."""

    def __init__(self, pid: int, log: Path) -> None:
        self._process, self._log = psutil.Process(pid), log

    def freeze(self) -> Callable[[], None]:
        """Stop the whole tree: what lets it go on."""
        frozen = [self._process, *self._process.children(recursive=True)]
        for one in frozen:
            with suppress(psutil.NoSuchProcess):  # Spark ends a Python worker that is idle at any moment
                one.suspend()

        def go_on() -> None:
            for one in frozen:
                with suppress(psutil.NoSuchProcess):
                    one.resume()

        return go_on

    @property
    def state(self) -> str:
        """The one that its log told last."""
        found = re.findall(r" state=(\w+)", self._log.read_text(errors="replace"))
        return found[-1] if found else ""

    def told(self, words: str) -> int:
        """How often its log has said so."""
        return self._log.read_text(errors="replace").count(words)


@dataclass
class Scene:
    """Two drivers of one flow, on two clusters of their own."""

    target: Kafka
    broker: LocalKafka
    """The target's."""
    remote: str
    drivers: Sequence[Driver]

    def turn(self, seconds: float) -> None:
        """Whoever copies is frozen amid a long pass, and goes on so many seconds after the other one has taken over."""
        owner, heir = self.await_roles()
        while True:
            self.broker.pause()
            time.sleep(BACKLOG_SECONDS)
            self.broker.resume()
            self.await_growth()
            if self.roles() == (owner, heir):
                break
            owner, heir = self.await_roles()
        before, gave_up = heir.told(TAKEN_OVER), owner.told(GAVE_UP)
        go_on = owner.freeze()
        try:
            await_until(lambda: heir.told(TAKEN_OVER) > before, SOON, "the takeover")
            time.sleep(seconds)
        finally:
            go_on()
        await_until(lambda: owner.told(GAVE_UP) > gave_up, SOON, "that the one that was frozen gives up")

    def await_roles(self) -> tuple[Driver, ...]:
        """Wait until it has been clear for a while who copies: one that has woken may get the lease back."""
        found, since = self.roles(), time.monotonic()

        def are_clear() -> bool:
            nonlocal found, since
            if (now := self.roles()) != found or not now:
                found, since = now, time.monotonic()
            return time.monotonic() - since > CLEAR_SECONDS

        await_until(are_clear, SOON, "one copies, and the other one waits")
        return found

    def roles(self) -> tuple[Driver, ...]:
        """Who copies, and who waits; nobody while that is not known. It may have changed by itself."""
        found = {driver.state: driver for driver in self.drivers}
        return (found["running"], found["waiting"]) if found.keys() == {"running", "waiting"} else ()

    def await_growth(self) -> None:
        """Wait until more has arrived."""
        before = await_until(lambda: self.target.ends(self.remote), SOON, f"{self.remote}")
        await_until(lambda: self.target.ends(self.remote) != before, SOON, f"more in {self.remote}")


def test_what_a_frozen_driver_sends_when_it_goes_on_is_not_taken(
    local_kafka: Callable[..., LocalKafka],
    unique: str,
    tmp_path: Path,
    chance: random.Random,
) -> None:
    """Right after the takeover, or later: who has woken finds that it is not its turn. The soak does it often."""
    clusters = {"a": local_kafka("zombie-source"), "b": local_kafka("zombie-target")}
    source, target = Kafka(clusters["a"]), Kafka(clusters["b"])
    topic, remote = f"t-{unique}", f"a.t-{unique}"
    source.create(topic, PARTITIONS)
    keys = {"topics": topic, "flow.retry.delay.ms": "1000"}
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        folder.mkdir()
    with (
        Load(source, topic, PARTITIONS, per_second=2000, size=1500) as load,
        srm_driver(folders[0], clusters, ["a->b"], keys) as one,
        srm_driver(folders[1], clusters, ["a->b"], keys) as two,
    ):
        drivers = [Driver(each.pid, folder / "driver.log") for each, folder in zip((one, two), folders, strict=True)]
        scene = Scene(target, clusters["b"], remote, drivers)
        scene.turn(chance.choice((chance.uniform(0, 2), 20)))
        load.end()
        await_all(source, topic, target, remote, SOON)
    verdict = compare(source.read(topic), target.read(remote, committed=True))
    print(verdict)
    assert verdict.records > 5_000
    assert verdict.is_good, str(verdict)


def test_what_executors_send_that_outlive_their_driver_is_not_taken(tmp_path: Path, chance: random.Random) -> None:
    """They are frozen when their driver dies, and go on with their tasks when another one has taken over."""
    verdict = soak("default", [executors_outlive_driver], chance, tmp_path, print, master="local-cluster[2,1,1024]")
    assert verdict.records > 1000
    assert verdict.is_good, str(verdict)
