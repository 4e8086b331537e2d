"""What somebody has begun and goes on without him, in a thread of its own, while pages watch it. In memory."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from srm_spark.api.audit import AuditValue, Result
from srm_spark.api.control import Desk
from srm_spark.api.problems import problem_of, unknown
from srm_spark.core.model import Flow
from srm_spark.errors import SrmError

_log = logging.getLogger(__name__)
MOST_WATCHED = 50


def _now() -> int:
    return int(time.time() * 1000)


@dataclass(kw_only=True)
class Begun:
    """One of them."""

    flow: Flow
    who: str
    id: str = field(default_factory=lambda: secrets.token_urlsafe(8))
    began_at: int = field(default_factory=_now)
    """Milliseconds since the epoch, as `ended_at`."""
    ended_at: int | None = None
    """When it was over; None while it lasts."""
    told: list[str] = field(default_factory=list)
    failure: str | None = None
    failure_kind: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes, and what came of it is recorded."""
        return self.ended_at is not None

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it lasts."""
        return None if self.ended_at is None else (self.ended_at - self.began_at) / 1000


OneBegun = TypeVar("OneBegun", bound=Begun)


class Watched(Generic[OneBegun]):
    """The newest ones of a kind. Safe to use from several threads."""

    def __init__(self, most: int = MOST_WATCHED) -> None:
        self._most = most
        self._known: OrderedDict[str, OneBegun] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, one: OneBegun, check: Callable[[Iterable[OneBegun]], None] = lambda _: None) -> None:
        """Remember one, and forget the oldest that are over; `check` sees the others before, and raises."""
        with self._lock:
            check(self._known.values())
            self._known[one.id] = one
            over = [name for name, other in self._known.items() if other.is_over]
            for name in over[: max(0, len(self._known) - self._most)]:
                del self._known[name]

    def of(self, flow: Flow) -> list[OneBegun]:
        """Those of a flow since this process began, the newest first."""
        with self._lock:
            return [one for one in reversed(self._known.values()) if one.flow == flow]

    def one(self, flow: Flow, name: str, what: str) -> OneBegun:
        """That of the flow. Raises RequestProblem where there is no such one."""
        found = {one.id: one for one in self.of(flow)}
        if name not in found:
            raise unknown(f"{what} of {flow}", name, found)
        return found[name]

    def start(self, one: OneBegun, work: Callable[[], None]) -> None:
        """Do it in a thread. Raises RuntimeError where there can be none, and then it is not remembered."""
        try:
            threading.Thread(target=work, name=f"begun-{one.id}", daemon=True).start()
        except RuntimeError:
            with self._lock:
                del self._known[one.id]
            raise


def carry_out(desk: Desk, one: Begun, does: str, work: Callable[[], tuple[Result, str]], **about: AuditValue) -> None:
    """Do it, and record what came of it; `work` says that, and whatever it raises is its failure."""
    try:
        result, why = work()
    except SrmError as error:
        problem = problem_of(error)
        one.failure_kind, one.failure = problem.kind, problem.detail
        result, why = Result.FAILED, problem.detail
    except Exception as error:  # a thread of its own: nobody else would tell
        _log.exception("flow=%s %s ended", desk.flow, does)
        one.failure = why = f"an error of the service: {type(error).__name__}; its log says more"
        result = Result.FAILED
    desk.record(does, result, why, **about)
    one.ended_at = _now()
