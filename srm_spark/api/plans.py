"""Plans that somebody was shown and may carry out: his own, of that flow, once, and not for long. In memory."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from srm_spark.api.control import Desk
from srm_spark.api.problems import RequestProblem
from srm_spark.core.model import Flow

T = TypeVar("T")

PLAN_SECONDS = 600
"""A plan is of that time: who begins later has to look again."""
_MOST_PLANS = 100


@dataclass(frozen=True)
class Shown(Generic[T]):
    """A plan that somebody was shown."""

    id: str
    caller: str | None
    flow: Flow
    plan: T
    made_at: float
    """By the monotonic clock."""


class Plans(Generic[T]):
    """Safe to use from several threads."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._shown: OrderedDict[str, Shown[T]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, desk: Desk, plan: T) -> Shown[T]:
        """Remember one; the oldest is forgotten where there are many."""
        shown = Shown(secrets.token_urlsafe(16), desk.caller.name, desk.flow, plan, self.monotonic())
        with self._lock:
            self._shown[shown.id] = shown
            while len(self._shown) > _MOST_PLANS:
                self._shown.popitem(last=False)
        return shown

    def confirmed(self, desk: Desk, plan_id: str, typed: str) -> T:
        """The plan of that id. `typed` is the flow's name, as its sender has written it.

        Raises RequestProblem where it is another one, or the plan is another user's, another flow's, used or too old.
        """
        with self._lock:
            shown = self._shown.get(plan_id)
        whose = None if shown is None else (shown.caller, shown.flow)
        is_new = shown is not None and self.monotonic() - shown.made_at < PLAN_SECONDS
        if shown is None or whose != (desk.caller.name, desk.flow) or not is_new:
            text = f"there is no such plan of {desk.flow} by you that is younger than {PLAN_SECONDS // 60} minutes and "
            raise RequestProblem(409, "no plan", f"{text}was not begun yet: plan again", "no-plan")
        require_typed(desk, typed)
        return shown.plan

    def use(self, plan_id: str) -> None:
        """It is begun, and nobody begins it once more. Raises RequestProblem where somebody has, just now."""
        with self._lock:
            if self._shown.pop(plan_id, None) is None:
                raise RequestProblem(409, "no plan", "the same plan was begun just now", "no-plan")


def require_typed(desk: Desk, typed: str, to: str = "begin") -> None:
    """Raises RequestProblem where what was `typed` to confirm something is not the name of the flow."""
    if typed != str(desk.flow):
        text = f"write the name of the flow, {desk.flow}, to {to}; nothing was changed"
        raise RequestProblem(409, "not confirmed", text, "not-confirmed")
