"""Leads flows away from the drivers of one host, for a command: before a machine is taken down.

An act per flow, obeyed by the driver that has it and by those of that host that would take it. Whoever has a flow gives
it to another driver that stands by, and keeps it where none does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from srm_spark.config.settings import FlowSettings
from srm_spark.core.acts import Command, CommandKind
from srm_spark.core.driver_status import host_of
from srm_spark.core.model import Flow
from srm_spark.core.pauses import Decision
from srm_spark.errors import SrmError
from srm_spark.flow.clusters import Connect, connect
from srm_spark.flow.commanding import Commanding
from srm_spark.kafka.lease import Lease

PATIENCE_SECONDS = 30.0
"""For flows to go: a batch may be long."""
_CALL_SECONDS = 10.0
"""Somebody is waiting."""


@dataclass(frozen=True)
class Drained:
    """What became of one flow."""

    flow: Flow
    decision: Decision | None
    """None where the act could not be written."""
    owner: str | None = None
    """Who has it now; None where nobody has, or that is not known."""
    waits: str | None = None
    """Why it is still there; None where it is not."""
    is_known: bool = True
    """Whether a driver of that host has it, stands by for it, or did so while this looked."""
    failure: str | None = None
    """Why it is not known what became of it."""


@dataclass(frozen=True)
class Patience:
    """How long what is waited for."""

    seconds: float = PATIENCE_SECONDS
    """For all flows to go."""
    heard: float = 3.0
    """Whoever stands by has said so in that time."""
    taken: float = 5.0
    """What a driver gave away is taken by another one in that time, or by itself again."""
    look: float = 0.5
    """Between two looks."""


def drain(
    flows: Sequence[FlowSettings], command: Command, reach: Connect = connect, patience: Patience = Patience()
) -> list[Drained]:
    """Write the act, of kind DRAIN or RETURN, for each of `flows`; for the former wait until they are gone.

    A cluster that does not answer keeps none of the others from it.
    """
    found = [_write(settings, command, reach) for settings in flows]
    if command.kind is not CommandKind.DRAIN:
        return [one for one, _ in found]
    watches = [
        _Watch(settings.within(_CALL_SECONDS), one, command.host, drained, reach=reach, patience=patience)
        for settings, (one, drained) in zip(flows, found, strict=True)
    ]
    deadline: float | None = None
    try:
        while True:
            looks = [watch.look() for watch in watches]
            deadline = (
                deadline or time.monotonic() + patience.seconds
            )  # the first look at many flows takes a while by itself
            # Where nobody stands by there is nothing to wait for.
            if not any(one.waits == _ON_ITS_WAY for one in looks) or time.monotonic() > deadline:
                return looks
            time.sleep(patience.look)
    finally:
        for watch in watches:
            watch.close()


_ON_ITS_WAY = "its driver has not given it away yet"
_ALONE = "no driver on another host stands by for it"


def _write(settings: FlowSettings, command: Command, reach: Connect) -> tuple[Drained, Collection[str]]:
    """What is written, and which hosts are drained then."""
    try:
        with Commanding(settings, reach, patience=0.0) as commanding:
            decision = commanding.command(command).decision
            return Drained(settings.flow, decision), set(commanding.drained)
    except SrmError as error:
        return Drained(settings.flow, None, failure=str(error)), set()


class _Watch:
    """Who has one flow, and who stands by for it."""

    def __init__(
        self,
        settings: FlowSettings,
        written: Drained,
        host: str,
        drained: Collection[str],
        *,
        reach: Connect,
        patience: Patience,
    ) -> None:
        self._settings, self._written, self._reach, self._patience = settings, written, reach, patience
        self._host, self._drained = host, {host, *drained}
        self._lease: Lease | None = None
        self._begun = time.monotonic()
        self._there_at, self._is_known = -math.inf, False

    def look(self) -> Drained:
        """What is so now."""
        if self._written.decision is None:
            return self._written
        try:
            if self._lease is None:
                self._lease, self._begun = self._reach(self._settings).make_lease(), time.monotonic()
            owner = self._lease.other_owner()
        except SrmError as error:
            return replace(self._written, failure=str(error))
        now, standbys = time.monotonic(), self._lease.standbys()
        is_there = owner is not None and host_of(owner) == self._host
        self._is_known |= is_there or any(one.driver.host == self._host for one in standbys)
        self._there_at = now if is_there else self._there_at
        waits = None
        if is_there:
            # Whoever stands by has said so by then.
            others = (
                any(one.driver.host not in self._drained for one in standbys)
                or now < self._begun + self._patience.heard
            )
            waits = _ON_ITS_WAY if others else _ALONE
        elif owner is None and now < self._there_at + self._patience.taken:
            waits = _ON_ITS_WAY
        return replace(self._written, owner=owner, waits=waits, is_known=self._is_known)

    def close(self) -> None:
        """Let go of the connections."""
        if self._lease is not None:
            self._lease.release()
