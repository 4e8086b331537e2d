"""A network far away, on one machine: a TCP proxy that holds every byte back for half a round trip, both ways.

```
contender ──> Link (port) ──half a round trip──> broker's FAR listener, which advertises the Link's port
filling, comparing ─────────────────────────────> broker's own listener
```
Only time is added, no limit of bytes per second; a kernel's netem would do the same and needs rights and a module.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from types import TracebackType

from srm_spark.errors import SetupError

_CHUNK = 1 << 18
_Timed = tuple[float, bytes]


class Link:
    """Listens on `port` of the loopback interface and passes on to `to_port`, once entered."""

    def __init__(self, port: int, to_port: int, round_trip_seconds: float) -> None:
        self._port = port
        self._to_port = to_port
        self._delay = round_trip_seconds / 2
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="link", daemon=True)
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> Link:
        self._thread.start()
        opening = asyncio.start_server(self._accept, "127.0.0.1", self._port)
        try:
            self._server = asyncio.run_coroutine_threadsafe(opening, self._loop).result(10)
        except OSError as error:
            self._end()
            raise SetupError(f"the delaying proxy cannot listen on port {self._port}: {error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _cancel(self) -> None:
        if self._server is not None:
            self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
        except OSError:
            writer.close()  # as if nobody listened; the client tries again
            return
        try:
            await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        finally:  # also where the link ends while something is on its way: both sides wait for an end
            for side in (far_writer, writer):
                side.close()
                with suppress(OSError):
                    await side.wait_closed()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Everything from `reader`, each part as long after it came as the way takes."""
        under_way: asyncio.Queue[_Timed | None] = asyncio.Queue()
        arriving = asyncio.create_task(self._arrive(under_way, writer))
        with suppress(ConnectionError):
            while part := await reader.read(_CHUNK):
                under_way.put_nowait((self._loop.time() + self._delay, part))
        under_way.put_nowait(None)
        await arriving

    async def _arrive(self, under_way: asyncio.Queue[_Timed | None], writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while timed := await under_way.get():
                due, part = timed
                await asyncio.sleep(due - self._loop.time())
                writer.write(part)
                await writer.drain()
        writer.close()
