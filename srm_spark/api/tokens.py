"""Tokens of forms: a page of another site can send a form with a browser's login, but cannot know its token."""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable

from srm_spark.api.roles import Caller

FIELD = "token"
_SECONDS = 12 * 3600


class Tokens:
    """Made and known again by this process alone; each is one user's, for half a day."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` in seconds since the epoch."""
        self._clock, self._secret = clock, os.urandom(32)

    def make(self, caller: Caller) -> str:
        """One for the forms of a page."""
        issued = str(int(self._clock()))
        return f"{issued}.{self._signed(issued, caller)}"

    def is_right(self, token: str, caller: Caller) -> bool:
        """Whether it was made here, for this user, and not too long ago."""
        issued, _, signature = token.partition(".")
        is_ours = hmac.compare_digest(signature.encode(), self._signed(issued, caller).encode())
        return is_ours and 0 <= self._clock() - int(issued) < _SECONDS

    def _signed(self, issued: str, caller: Caller) -> str:
        text = f"{issued}\n{caller.name or ''}"
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()
