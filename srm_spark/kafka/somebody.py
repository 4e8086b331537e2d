"""kafka-python's connections to one cluster: some broker answers, or a given one, what librdkafka has no call for."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar, cast

from kafka.errors import KafkaError, UnsupportedVersionError
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from srm_spark.errors import ProtocolUnavailable, SrmError
from srm_spark.kafka.login import TRY_MS
from srm_spark.kafka.tries import pauses

_SHORT_MS = 1000
_T = TypeVar("_T")


class Somebody:
    """Connects when it is first asked. A broker that hangs, or a connection that was idle too long, costs one try.

    Whom kafka-python asks is chance, so tries alone would not do: half of them go to the one of two that hangs. Here
    all addresses have their turn, and who did not answer is not asked again while there are others.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        where: str,
        try_ms: int = TRY_MS,
        connected: Callable[[Mapping[str, Any], int], tuple[Any, Any]] | None = None,
    ) -> None:
        """`options` are those of `login_options`; `where` names the cluster in errors.

        `connected` makes kafka-python's selector and manager of them, which know the cluster, in so many ms.
        """
        self._where = where
        self._options = {**options, "request_timeout_ms": try_ms}
        self._try_ms = try_ms
        self._connected = connected or _connected
        addresses: list[str] = options["bootstrap_servers"]
        self._addresses = deque(random.sample(addresses, len(addresses)))
        self._silent: set[int] = set()
        self.net: Any = None
        self.manager: Any = None

    def run(self, call: Callable[[], Coroutine[Any, Any, _T]], what: str, seconds: float = 0, tries: int = 1) -> _T:
        """Try for so long, and so often at least; raises ProtocolUnavailable, which says what could not be done.

        A cluster that does not know the request will not learn it meanwhile.
        """
        deadline, tried, waits = time.monotonic() + seconds, 0, pauses()
        while True:
            tried += 1
            try:
                self._connect()
                return cast("_T", self.manager.run(call))
            except SrmError:
                raise
            except Exception as error:  # kafka-python hands on what a function for tokens raises, and errors of its own
                self.close()
                is_over = time.monotonic() > deadline and tried >= tries
                if is_over or isinstance(error, UnsupportedVersionError):
                    text = f"{self._where}: cannot {what}: {type(error).__name__}: {error}"
                    raise ProtocolUnavailable(text) from error
                time.sleep(next(waits))

    async def send(self, request: Any, node: int | None = None) -> Any:
        """The answer of one broker, or of any one, inside of `run`. Raises KafkaError."""
        node = self._any_one() if node is None else node
        try:
            answer = await self.manager.send(request, node_id=node)
        except KafkaError:
            self._silent.add(node)
            raise
        self._silent.discard(node)
        return answer

    def close(self) -> None:
        """Let go of the connections."""
        if self.manager is not None:
            self.manager.close()
            self.net.close()  # its own sockets
            self.manager = None

    def _connect(self) -> None:
        """By one address after the other, each for a moment; then, as a login may take long, by whichever answers."""
        if self.manager is not None:
            return
        for _ in range(len(self._addresses) if len(self._addresses) > 1 else 0):
            try:
                self._connect_by([self._addresses[0]], min(_SHORT_MS, self._try_ms))
            except (KafkaError, OSError):
                self._addresses.rotate(-1)
            else:
                return
        self._connect_by(list(self._addresses), self._try_ms)

    def _connect_by(self, addresses: list[str], within_ms: int) -> None:
        self.net, self.manager = self._connected({**self._options, "bootstrap_servers": addresses}, within_ms)

    def _any_one(self) -> int:
        """One that is connected already, if there is one; of those who did not answer none, if there are others."""
        chosen: int = self.manager.least_loaded_node()
        if chosen not in self._silent:
            return chosen
        others = [broker.node_id for broker in self.manager.cluster.brokers() if broker.node_id not in self._silent]
        return min(others, default=chosen)


def _connected(options: Mapping[str, Any], within_ms: int) -> tuple[Any, Any]:
    net = NetworkSelector()
    manager = KafkaConnectionManager(net, **options)
    try:
        manager.bootstrap(within_ms)
    except BaseException:
        manager.close()
        net.close()
        raise
    return net, manager
