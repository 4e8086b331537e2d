"""What all requests have in common that look at a flow's clusters or change something: whether their sender may,
whether it can be recorded, how many there are at once, and the record of what came of it.

What is looked at and done are the engine's functions, those of `srm-control`, too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from srm_spark.api.asked import TheFlow, caller_of
from srm_spark.api.audit import Audit, AuditValue, Result
from srm_spark.api.problems import RequestProblem
from srm_spark.api.roles import Caller, Role
from srm_spark.change.look import Rights, rights_of
from srm_spark.config.load import Loaded
from srm_spark.config.settings import FlowSettings, Settings
from srm_spark.core.lists import ListKind
from srm_spark.core.model import Flow
from srm_spark.errors import SrmError
from srm_spark.flow.clusters import Connect, connect
from srm_spark.flow.commanding import ANSWER_SECONDS
from srm_spark.flow.listing import ListPlace, file_rules
from srm_spark.flow.refused.replay import KAFKA
from srm_spark.flow.refused.replay import Means as ReplayMeans
from srm_spark.flow.topics.rights import not_readable
from srm_spark.look.topics import Forbidden

_AT_ONCE = 8
"""Requests that ask clusters. Each may wait for half a minute, and pages of others are not to wait for them."""
_PATIENCE_SECONDS = 2.0
_CALL_SECONDS = 30.0
"""Somebody is waiting."""


@dataclass(frozen=True)
class Means:
    """What clusters are reached by; in tests, clusters in memory."""

    reach: Connect = connect
    replay: ReplayMeans = KAFKA
    forbidden: Forbidden = not_readable
    rights: Rights = rights_of
    patience: float = ANSWER_SECONDS
    """Seconds for the answer of a driver."""


@dataclass
class Outcome:
    """What came of a change, as far as it is known."""

    result: Result = Result.DONE
    why: str = ""

    def declined(self, why: str) -> None:
        """It was not done, and nothing is wrong with that."""
        self.result, self.why = Result.DECLINED, why


class Control:
    """The clusters of the configuration, and the record of changes."""

    def __init__(self, audit: Audit, loaded: Loaded | None = None, folder: Path = Path(), means: Means | None = None):
        """`folder` is where moves write their state files; without `loaded` nothing can be looked at or done."""
        self.audit, self.folder, self.means = audit, folder, means or Means()
        self._loaded = loaded
        self.applying = threading.Lock()
        """One plan of changes is applied at a time: its report is a file."""
        self._places, self.patience_seconds = threading.BoundedSemaphore(_AT_ONCE), _PATIENCE_SECONDS

    @property
    def whole(self) -> Settings:
        """All flows. Raises RequestProblem where there is no configuration."""
        if self._loaded is None:
            text = "this service was started without the settings of clusters: name their file with --config"
            raise RequestProblem(409, "no settings", text, "no-settings")
        return self._loaded.settings

    def settings(self, flow: Flow) -> FlowSettings:
        """Those of a flow. Raises RequestProblem where there are none."""
        for one in self.whole.flows:
            if one.flow == flow:
                return one
        text = f"{flow} is not enabled in the files of this service, so its clusters are not known"
        raise RequestProblem(409, "no settings", text, "no-settings")

    def rto_goal(self, flow: Flow) -> int | None:
        """Most seconds that a failover of it should take; None where no goal is set, or its settings are not known."""
        known = () if self._loaded is None else self._loaded.settings.flows
        return next((one.rto_goal_seconds for one in known if one.flow == flow), None)

    def lists(self, flow: Flow, kind: ListKind) -> ListPlace:
        """The lists of a flow. Raises RequestProblem as `settings`."""
        settings, reach = self.settings(flow), self.means.reach
        assert self._loaded is not None
        rules = file_rules(self._loaded, settings, kind)
        flows = self._loaded.settings.flows
        return ListPlace(settings, rules, flows, reach=reach, target=lambda one, _: reach(one).target)

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of the few. Raises RequestProblem where there is none."""
        if not self._places.acquire(timeout=self.patience_seconds):
            text = f"{_AT_ONCE} other requests ask clusters just now; try again in some seconds"
            raise RequestProblem(503, "busy", text, "busy")
        try:
            yield
        finally:
            self._places.release()


@dataclass(frozen=True)
class Desk:
    """Somebody at a flow."""

    control: Control
    caller: Caller
    flow: Flow

    @property
    def role(self) -> Role:
        """What he may do there."""
        return self.caller.roles.of(self.flow)

    @property
    def settings(self) -> FlowSettings:
        """Of the flow, for somebody who waits. Raises RequestProblem where there are none."""
        return self.control.settings(self.flow).within(_CALL_SECONDS)

    @contextmanager
    def asking(self, what: str, needs: Role = Role.VIEWER) -> Iterator[None]:
        """Around what asks clusters and changes nothing; it is recorded where it is not allowed."""
        self.require(what, needs)
        with self.control.place():
            yield

    @contextmanager
    def acting(self, does: str, needs: Role, **about: AuditValue) -> Iterator[Outcome]:
        """Around what changes something: it is recorded, whatever comes of it. Raises RequestProblem in front of it."""
        self.require(does, needs, **about)
        if (unrecorded := self.control.audit.why_not()) is not None:
            text = f"nothing is changed while that cannot be recorded: {unrecorded}"
            raise RequestProblem(503, "no record", text, "no-record")
        outcome = Outcome()
        try:
            with self.control.place():
                yield outcome
        except (RequestProblem, SrmError) as error:
            self.record(does, Result.FAILED, str(error), **about)
            raise
        except BaseException as error:
            self.record(does, Result.FAILED, type(error).__name__, **about)
            raise
        self.record(does, outcome.result, outcome.why, **about)

    def record(self, does: str, result: Result, why: str = "", **about: AuditValue) -> None:
        """Record what came of something."""
        self.control.audit.record(self.caller, does, str(self.flow), result, why=why, about=about)

    def require(self, does: str, needs: Role, **about: AuditValue) -> None:
        """Raises RequestProblem where his role is less than that, and records it."""
        if self.role >= needs:
            return
        who = self.caller.name or "whoever does not log in"
        text = f"{does} of {self.flow} is for the role {needs.word}, and {who} is {self.role.word}"
        self.record(does, Result.REFUSED, text, **about)
        raise RequestProblem(403, "not allowed", text, "role")


def desk_of(request: Request, flow: TheFlow) -> Desk:
    """Who has sent a request, at the flow of its path."""
    return Desk(request.app.state.control, caller_of(request), flow)


TheDesk = Annotated[Desk, Depends(desk_of)]
