"""What of a wanted pause or drain, or of its end, is done, what is declined, and what else there is to know. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from srm_spark.core.acts import OF_HOSTS, Command, CommandKind, CommandState, Scope, pause_of
from srm_spark.core.wording import escaped


@dataclass(frozen=True)
class Decision:
    """What is to be done."""

    is_due: bool
    """Whether anything is written."""
    remarks: tuple[str, ...] = ()
    declined: str | None = None
    """Why it is not done."""


def decide(command: Command, state: CommandState) -> Decision:
    """What of an act that is no change of lists, and sets no offsets, is done where these add up to `state`."""
    if command.kind in OF_HOSTS:
        return _decide_host(command, state.drained.get(command.host))
    pauses, scope = state.pauses, command.scope
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


def _decide_host(command: Command, drained: Command | None) -> Decision:
    host = escaped(command.host)
    if command.kind is CommandKind.RETURN:
        return Decision(False, (), f"{host} is not drained") if drained is None else Decision(True)
    if drained is None:
        return Decision(True)
    return Decision(False, (f"{host} is drained already, by {escaped(drained.who)}",))
