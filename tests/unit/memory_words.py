"""Words of drivers in the status topic of a world, and acts of srm-control in its control topic."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from srm_spark.core.acts import AnyAct, encode
from srm_spark.core.driver_status import DriverId, DriverStatus, FlowState, driver_key, encode_status
from srm_spark.core.lists import act_key
from srm_spark.core.model import TopicPartition
from srm_spark.core.standstills import Standstill
from srm_spark.core.tail import TailRecord
from srm_spark.flow.topics.internal_topics import control_topic, ensure_topic, status_topic
from tests.unit.memory_run import World

ME = DriverId("here", 1, 1)
MILLISECONDS = 1000


def now() -> int:
    return int(time.time() * MILLISECONDS)


def say(
    world: World,
    state: FlowState = FlowState.RUNNING,
    *,
    driver: DriverId = ME,
    ago: float = 0.0,
    is_last: bool = False,
    lag: int | None = None,
    unknown_since: int | None = None,
    standing: Sequence[Standstill] = (),
    reason: str | None = None,
) -> int:
    """A word of a driver; when it was said."""
    ensure_topic(world.flow.target, status_topic(world.flow.settings))
    at = now() - int(MILLISECONDS * ago)
    word = DriverStatus(driver, at, 5.0, state, is_last=is_last, lag_records=lag, unknown_since=unknown_since)
    word = replace(word, standing=tuple(standing), reason=reason, since=at)
    log = world.flow.target.log(TopicPartition(world.flow.settings.status_topic, 0))
    log.append(TailRecord(0, at, driver_key(driver), encode_status(word, world.flow.settings.flow)))
    return at


def act(world: World, what: AnyAct) -> None:
    """Somebody does it."""
    settings = world.flow.settings
    ensure_topic(world.flow.target, control_topic(settings))
    log = world.flow.target.log(TopicPartition(settings.control_topic, 0))
    log.append(TailRecord(0, 1, act_key(str(log.end)), encode(what)))
