"""Which ACLs of source topics their remote topics get. Pure; the rules are MirrorMaker 2's (`MirrorSourceConnector`).

Readers of a source topic may read its copies; who may write there may not write copies, for the flow does that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple


class Acl(NamedTuple):
    """One entry about topics, in the words of `kafka-acls.sh`, in capitals."""

    topic: str
    """A name, a prefix, or `*`."""
    pattern: str
    """LITERAL or PREFIXED."""
    principal: str
    """As in `User:ann`."""
    host: str
    operation: str
    permission: str
    """ALLOW or DENY."""

    def __str__(self) -> str:
        name = f"{self.topic}*" if self.pattern == "PREFIXED" else self.topic
        return f"{self.permission} {self.operation} on topic {name} to {self.principal} from {self.host}"


def remote_acls(
    acls: Iterable[Acl], is_replicated: Callable[[str], bool], remote_name: Callable[[str], str]
) -> set[Acl]:
    """The entries that remote topics get for those of the source.

    Those of single replicated topics, but for the right to write; the right to everything becomes that to read. Rules
    for prefixes and for `*` are about topics that are not replicated, too, and stay where they are.
    """
    copies = set()
    for acl in acls:
        if acl.pattern != "LITERAL" or acl.topic == "*" or not is_replicated(acl.topic):
            continue
        is_allowed = acl.permission == "ALLOW"
        if is_allowed and acl.operation == "WRITE":
            continue
        operation = "READ" if is_allowed and acl.operation == "ALL" else acl.operation
        copies.add(acl._replace(topic=remote_name(acl.topic), operation=operation))
    return copies
