"""What happens to flows, as server-sent events: each tells how one flow is now, so that the newest one says all.

Events are made while somebody listens, by whichever stream looks first, and the last ones are kept in memory: who
comes back with the id of the last one he has seen goes on behind it. Streams have no buffer of their own; one that is
slower than what is kept begins anew.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from anyio import to_thread
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from srm_spark.api.asked import iso_if_known
from srm_spark.api.problems import ProblemDocument, response
from srm_spark.api.roles import Caller, Role
from srm_spark.core.flow_series import FlowNow
from srm_spark.core.model import Flow
from srm_spark.look.board import Board

MEDIA_TYPE = "text/event-stream"
_KEPT = 1000
"""Events; one has half a kilobyte."""
MOST = 60
"""Streams; each holds one of the connections that there may be, and pages of others are not to lack theirs."""
MOST_OF_ONE = 12
"""Of one user at one address: as many pages in sight."""
_RETRY_MS = 3000
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""A proxy is not to collect what is of this moment."""


@dataclass(frozen=True)
class Timing:
    """In seconds."""

    look: float = 1.0
    """How often it is looked whether something has changed."""
    beat: float = 15.0
    """A stream is not silent for longer: proxies and browsers end what looks dead."""
    life: float = 600.0
    """Then a stream ends, and who goes on has to show his login again."""


@dataclass(frozen=True)
class Event:
    """How a flow is, as it is sent."""

    number: int
    flow: Flow
    data: str


class Feed:
    """The events of one process. Not safe to use from several threads: of the event loop alone."""

    def __init__(self, board: Board, timing: Timing | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._board, self.timing, self._clock = board, timing or Timing(), clock
        self._process = secrets.token_hex(4)
        """Part of each id: numbers of another process are none of ours."""
        self._number = 0
        self.events: deque[Event] = deque(maxlen=_KEPT)
        self._known: dict[Flow, tuple[int, FlowNow]] = {}
        self._looked_at = float("-inf")
        self._looking = asyncio.Lock()
        self._ended = asyncio.Event()
        self._streams = Counter[tuple[str | None, str]]()

    def end(self) -> None:
        """End all streams at once, and begin no other."""
        self._ended.set()

    @property
    def streams(self) -> int:
        """How many there are."""
        return self._streams.total()

    @contextmanager
    def place(self, caller: Caller) -> Iterator[str | None]:
        """One of the few; why there is none, where there is none."""
        who = (caller.name, caller.address)
        if self._ended.is_set():
            yield "the service ends"
        elif self.streams >= MOST or self._streams[who] >= MOST_OF_ONE:
            yield f"there are {self._streams[who]} streams of yours, and {self.streams} in all; ask for pages instead"
        else:
            self._streams[who] += 1
            try:
                yield None
            finally:
                self._streams[who] -= 1
                self._streams += Counter()  # forgets who has none

    async def lines(self, flow: Flow | None, caller: Caller, last_id: str | None) -> AsyncIterator[str]:
        """Of a flow, or of all that he may see: first what was missed since that id, or else how they are."""
        yield f"retry: {_RETRY_MS}\n\n"
        await self._look()
        seen = None if last_id is None else self._number_of(last_id)
        if seen is None and last_id is not None:
            yield f"id: {self._id(self._number)}\nevent: reset\ndata: {{}}\n\n"
        end, told_at = self._clock() + self.timing.life, self._clock()
        while not self._ended.is_set() and self._clock() < end:
            if seen is None or seen < self._oldest - 1:
                found = self._newest()
            else:
                found = [one for one in self.events if one.number > seen]
            seen = self._number
            for one in found:
                if flow in (None, one.flow) and caller.roles.of(one.flow) >= Role.VIEWER:
                    yield f"id: {self._id(one.number)}\nevent: flow\ndata: {one.data}\n\n"
                    told_at = self._clock()
            if self._clock() - told_at >= self.timing.beat:
                yield ": still here\n\n"
                told_at = self._clock()
            await self._pause()
            await self._look()

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._ended.wait(), self.timing.look)
        except asyncio.TimeoutError:
            return

    async def _look(self) -> None:
        """Make events of what has changed, unless another stream has just done so."""
        async with self._looking:
            if self._clock() - self._looked_at < self.timing.look / 2:
                return
            now = await to_thread.run_sync(self._states)  # a reader may have the lock of a flow
            for flow, state in now.items():
                if self._known.get(flow) != state:
                    self._number += 1
                    self.events.append(Event(self._number, flow, json.dumps(_document(state[1]))))
            self._known, self._looked_at = now, self._clock()

    def _states(self) -> dict[Flow, tuple[int, FlowNow]]:
        return {flow: (self._board.version(flow), self._board.now(flow)) for flow in self._board.flows}

    def _newest(self) -> list[Event]:
        """How each flow is; by what is known, since its last event may not be kept any more."""
        return [Event(self._number, flow, json.dumps(_document(now))) for flow, (_, now) in self._known.items()]

    @property
    def _oldest(self) -> int:
        return self.events[0].number if self.events else self._number + 1

    def _id(self, number: int) -> str:
        return f"{self._process}-{number}"

    def _number_of(self, written: str) -> int | None:
        """The number of an id that this process has given; None where it is none, or of another one."""
        process, _, number = written.partition("-")
        is_ours = process == self._process and number.isascii() and number.isdecimal() and len(number) < 20
        return int(number) if is_ours and int(number) <= self._number else None


class EventStream(StreamingResponse):
    """The answer that lasts."""

    def __init__(self, feed: Feed, flow: Flow | None, caller: Caller, last_id: str | None) -> None:
        super().__init__(feed.lines(flow, caller, last_id), headers=_HEADERS, media_type=MEDIA_TYPE)
        self._feed, self._caller = feed, caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Until its sender leaves or has to come again; a problem document where there are too many.

        Of one who does not read, the server ends the connection: see `PatientProtocol`.
        """
        with self._feed.place(self._caller) as full:
            if full is not None:
                document = ProblemDocument(title="busy", status=503, detail=full, kind="busy")
                await response(document, {"retry-after": "60"})(scope, receive, send)
                return
            await super().__call__(scope, receive, send)


def _document(now: FlowNow) -> dict[str, object]:
    """How a flow is, in the words of `/v3/flows`; no figures, which are asked for."""
    return {
        "flow": str(now.flow),
        "source": now.flow.source,
        "target": now.flow.target,
        "status": now.health.value,
        "why": now.why,
        "unknown_since": iso_if_known(now.unknown_since),
        "state": None if now.state is None else now.state.value,
        "since": iso_if_known(now.since),
        "heard_at": iso_if_known(now.heard_at),
        "topics": now.topics,
        "partitions": now.partitions,
        "groups": now.groups,
        "lag": {"records": now.lag_records, "seconds": now.lag_seconds},
    }
