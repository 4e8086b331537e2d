"""Pauses, resumes, restarts a flow and sets its offsets by acts on its target, for a command: the source may be down.

Whatever is done is an act in the log; the driver that owns the flow obeys and answers. Nothing is done past it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TypeVar

from srm_spark.config.settings import FlowSettings
from srm_spark.core.acts import AnyAct, Command, CommandKind, Scope, encode, pause_of
from srm_spark.core.answers import Answer
from srm_spark.core.pauses import Decision, decide
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.topics.list_writer import ListWriter
from srm_spark.flow.topics.progress import ProgressTopic

T = TypeVar("T")

ANSWER_SECONDS = 10.0
"""A driver that runs answers in two, unless a batch is long."""
_CALL_SECONDS = 30.0
"""Somebody is waiting."""
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Commanded:
    """What became of a command."""

    decision: Decision
    answer: Answer | None = None
    """Of the driver that took it; None where none has said so in time, or nothing was written."""


@dataclass(frozen=True)
class Acted:
    """One act of the past."""

    act: AnyAct
    answer: Answer | None = None
    """What a driver has said of an act on offsets; None where none has, and of all others."""
    is_waiting: bool = False
    """An act on offsets that a driver may carry out yet."""


class Commanding:
    """The log of acts of one flow, and what its driver says of them."""

    def __init__(self, settings: FlowSettings, reach: Connect = connect, patience: float = ANSWER_SECONDS) -> None:
        """`patience` is how long an answer is waited for."""
        settings = settings.within(_CALL_SECONDS)
        self.settings = settings
        self.clusters: Clusters = reach(settings)
        self.progress = ProgressTopic(settings, self.clusters.target)
        self._patience = patience
        factor = settings.control_replication_factor
        self._log = ListWriter(self.clusters.target, settings.flow.source, replication_factor=factor)

    def __enter__(self) -> Commanding:
        self.refresh()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.progress.close()
        self._log.close()

    def refresh(self) -> None:
        """Read what there is; nothing where the flow has not run yet. Raises TargetUnavailable."""
        self._log.state()
        if self.clusters.target.topic_ids([self.settings.progress_topic]):
            self.progress.refresh()

    @property
    def pauses(self) -> Mapping[Scope, Command]:
        """In force."""
        return self._log.acts.commands.pauses

    @property
    def drained(self) -> Mapping[str, Command]:
        """By host, in force."""
        return self._log.acts.commands.drained

    @property
    def waiting(self) -> Mapping[str, Command]:
        """Acts on offsets that a driver may carry out yet, by their ids."""
        shifts, over = self._log.acts.commands.shifts, self.progress.answers.shifted
        return {act: command for act, command in shifts.items() if act not in over}

    def history(self) -> list[Acted]:
        """All acts, the oldest first."""
        over, waiting = self.progress.answers.shifted, self.waiting
        return [Acted(what, over.get(act), act in waiting) for act, what in self._log.acts.acts]

    def command(self, command: Command) -> Commanded:
        """Do it, unless there is nothing to do, and wait for an answer.

        Raises TargetUnavailable; where the act does not come back in time it may count all the same.
        """
        decision = decide(command, self._log.acts.commands)
        if not decision.is_due:
            return Commanded(decision)
        if command.scope.topic is not None and not self._knows(command.scope.topic):
            remark = f"no position of {command.scope.topic} is recorded: nothing of it was copied so far"
            decision = replace(decision, remarks=(*decision.remarks, remark))
        if command.kind is CommandKind.RESUME:
            decision = replace(decision, remarks=(*decision.remarks, *self._ending(command.scope)))
        (act,) = self.write(command)
        return Commanded(decision, self._awaited(lambda: self.taken(act)))

    def write(self, *commands: Command) -> list[str]:
        """Write acts; their ids. Raises as `command`."""
        return self._log.append(list(map(encode, commands)))

    def shifted(self, acts: Sequence[str]) -> Mapping[str, Answer]:
        """Wait for what comes of acts on offsets; of some of them that may not be known in time."""
        over = self.progress.answers.shifted
        self._awaited(lambda: all(act in over for act in acts))
        return {act: over[act] for act in acts if act in over}

    def taken(self, act: str) -> Answer | None:
        """The answer of a driver in which this act counts."""
        answer = self.progress.answers.taken
        order = [each for each, _ in self._log.acts.acts]
        if answer is None or answer.act not in order or act not in order:
            return None
        return answer if order.index(answer.act) >= order.index(act) else None

    def _ending(self, scope: Scope) -> Iterator[str]:
        """What ends with a pause of that scope."""
        left = {where: pause for where, pause in self.pauses.items() if where != scope}
        for one in self.waiting.values():
            if pause_of(left, one.scope) is None:
                yield f"{one.said} ends with the pause: no driver has taken it"

    def _knows(self, topic: str) -> bool:
        return any(partition.topic == topic for partition in self.progress.positions)

    def _awaited(self, ask: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._patience
        while not (answer := ask()) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
            self.refresh()
        return answer


def command(
    settings: FlowSettings, command: Command, reach: Connect = connect, patience: float = ANSWER_SECONDS
) -> Commanded:
    """Pause, resume or restart. Raises TargetUnavailable."""
    with Commanding(settings, reach, patience) as commanding:
        return commanding.command(command)


def history(settings: FlowSettings, reach: Connect = connect) -> list[Acted]:
    """All that was done to a flow, the oldest first. Raises TargetUnavailable."""
    with Commanding(settings, reach) as commanding:
        return commanding.history()
