"""How many wrong logins there may be. Counted before a password is looked at, so that guesses cost nothing more."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable

_WINDOW_SECONDS = 300.0
_OF_NAME = 5
"""From one address as one user: people mistype."""
_OF_ADDRESS = 30
"""From one address as whoever: many may share it, behind a proxy."""
_MOST = 10_000
"""Keys that are remembered; the oldest go first."""


class TooManyWrong(Exception):
    """There were too many wrong logins."""

    def __init__(self, seconds: int) -> None:
        """`seconds` until the next one is looked at."""
        super().__init__(seconds)
        self.seconds = seconds


class Attempts:
    """Wrong logins of the last minutes. Not safe to use from several threads."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._wrong: OrderedDict[tuple[str, str | None], deque[float]] = OrderedDict()

    def check(self, address: str, name: str) -> None:
        """Raises TooManyWrong."""
        now = self._monotonic()
        waits = [self._wait(key, most, now) for key, most in _keys(address, name)]
        if seconds := max(waits):
            raise TooManyWrong(math.ceil(seconds))

    def wrong(self, address: str, name: str) -> None:
        """One more."""
        now = self._monotonic()
        for key, most in _keys(address, name):
            times = self._wrong.setdefault(key, deque(maxlen=most))
            times.append(now)
            self._wrong.move_to_end(key)
        while len(self._wrong) > _MOST:
            self._wrong.popitem(last=False)

    def right(self, address: str, name: str) -> None:
        """That user has found his password; what others tried from there stays."""
        self._wrong.pop(_keys(address, name)[0][0], None)

    def _wait(self, key: tuple[str, str | None], most: int, now: float) -> float:
        times = self._wrong.get(key, ())
        left = [_WINDOW_SECONDS - (now - at) for at in times if now - at < _WINDOW_SECONDS]
        return left[0] if len(left) >= most else 0.0


def _keys(address: str, name: str) -> tuple[tuple[tuple[str, str | None], int], ...]:
    network = _network(address)
    return ((network, name), _OF_NAME), ((network, None), _OF_ADDRESS)


def _network(address: str) -> str:
    """Who has one IPv6 address has as many as he likes of the same /64."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return address
