"""Who may do what to which flow. Values only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from srm_spark.core.model import Flow


class Role(IntEnum):
    """Each may do what the ones before it may."""

    NONE = 0
    """Does not see that there is such a flow."""
    VIEWER = 1
    """Sees everything but the contents of records."""
    OPERATOR = 2
    """Pauses and resumes, changes lists, looks at records in quarantine and replays them; plans what admins do."""
    ADMIN = 3
    """Moves consumer groups, sets offsets of the flow, applies plans of changes."""

    @property
    def word(self) -> str:
        """As it is written."""
        return self.name.lower()


@dataclass(frozen=True)
class Roles:
    """Of one user."""

    everywhere: Role = Role.VIEWER
    flows: Mapping[str, Role] = field(default_factory=dict)
    """Those of single flows, which count instead, be they more or less."""

    def of(self, flow: Flow) -> Role:
        """That for a flow."""
        return self.flows.get(str(flow), self.everywhere)

    def sees(self, flow: Flow) -> bool:
        """Whether he may know of a flow."""
        return self.of(flow) >= Role.VIEWER

    @property
    def are_everywhere(self) -> bool:
        """Whether there is no flow that he may not know of."""
        return min((self.everywhere, *self.flows.values())) >= Role.VIEWER

    @property
    def are_none(self) -> bool:
        """Whether there is nothing that he may see."""
        return max((self.everywhere, *self.flows.values())) is Role.NONE


NOWHERE = Roles(Role.NONE)
"""Of who may see nothing."""


@dataclass(frozen=True)
class Caller:
    """Who has sent a request."""

    name: str | None
    """None where nobody has to log in."""
    address: str
    roles: Roles = Roles()

    @property
    def who(self) -> str:
        """For what is kept with an act: user@host."""
        return f"{self.name or 'anonymous'}@{self.address}"


def combined(roles: Iterable[Roles]) -> Roles:
    """Of who has all of these: for each flow the most; nothing where there are none."""
    found = list(roles)
    flows = {flow for one in found for flow in one.flows}
    return Roles(
        max((one.everywhere for one in found), default=Role.NONE),
        {flow: max(one.flows.get(flow, one.everywhere) for one in found) for flow in flows},
    )


def role_of(word: str) -> Role:
    """A role by its word. Raises ValueError, for people."""
    for role in Role:
        if role.word == word:
            return role
    raise ValueError(f"got {word!r}; allowed {', '.join(role.word for role in Role)}")


def roles_of(text: str) -> Roles:
    """`viewer A->B=operator`: the role everywhere, and those of single flows. Who has some of single flows only, sees
    no others; who has none at all, is a viewer of all. Raises ValueError, for people."""
    everywhere: Role | None = None
    flows: dict[str, Role] = {}
    for part in text.split():
        flow, equals, word = part.rpartition("=")
        role = role_of(word)
        if not equals:
            if everywhere is not None:
                raise ValueError(f"{part} is the second role for all flows")
            everywhere = role
        elif not all(flow.partition("->")):
            raise ValueError(f"got {flow!r}; a flow is written A->B")
        elif flow in flows:
            raise ValueError(f"{flow} is there twice")
        else:
            flows[flow] = role
    if everywhere is None:
        everywhere = Role.NONE if flows else Role.VIEWER
    return Roles(everywhere, flows)
