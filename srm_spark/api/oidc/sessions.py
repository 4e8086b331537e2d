"""Browsers that are logged in, in the memory of this process: each for a bounded time, and until it logs out."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

_MOST = 10_000
"""The oldest go first."""


@dataclass(frozen=True)
class Identity:
    """Who somebody is by the word of a provider."""

    name: str
    groups: frozenset[str]


class Sessions:
    """Safe to use from several threads."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Each lasts so many seconds, however it is used."""
        self.seconds, self._monotonic = seconds, monotonic
        self._lock = threading.Lock()
        self._sessions: OrderedDict[bytes, tuple[float, Identity]] = OrderedDict()

    def begin(self, identity: Identity) -> str:
        """What the browser is to send from now on."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[_digest(token)] = self._monotonic() + self.seconds, identity
            while len(self._sessions) > _MOST:
                self._sessions.popitem(last=False)
        return token

    def of(self, token: str) -> Identity | None:
        """Whose session that is; None where it is none, or over."""
        digest = _digest(token)
        with self._lock:
            until, identity = self._sessions.get(digest, (0.0, None))
            if identity is not None and self._monotonic() >= until:
                del self._sessions[digest]
                return None
        return identity

    def end(self, token: str) -> None:
        """It is over."""
        with self._lock:
            self._sessions.pop(_digest(token), None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
