"""What of a wanted pause or its end is done, what is declined, and what there is to know about the rest. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from srm_spark.core.acts import Command, CommandKind, Scope, pause_of


@dataclass(frozen=True)
class Decision:
    """What is to be done."""

    is_due: bool
    """Whether anything is written."""
    remarks: tuple[str, ...] = ()
    declined: str | None = None
    """Why it is not done."""


def decide(command: Command, pauses: Mapping[Scope, Command]) -> Decision:
    """What of a pause, its end, or a restart is done while these pauses are in force."""
    scope = command.scope
    own = pauses.get(scope)
    wider = pause_of({where: pause for where, pause in pauses.items() if where != scope}, scope)
    if command.kind is CommandKind.PAUSE:
        if own is not None:
            return Decision(False, (f"{scope} is {own.held} already",))
        return Decision(True, () if wider is None else (f"{wider.scope} is {wider.held}, too",))
    if command.kind is CommandKind.RESUME:
        if own is None:
            why = "" if wider is None else f" by itself: {wider.scope} is {wider.held}; resume that"
            return Decision(False, (), f"{scope} is not paused{why}")
        stays = () if wider is None else (f"{scope} stands still all the same: {wider.scope} is {wider.held}",)
        left = [where for where in pauses if where != scope and scope in where.around()]
        return Decision(True, (*stays, *(f"{where} stays {pauses[where].held}" for where in left)))
    held = pauses.get(Scope())
    return Decision(True, () if held is None else (f"the flow stays {held.held}",))
