"""Which ACLs of the source remote topics and groups get on the target. Pure; by default MirrorMaker 2's rules.

Readers of a source topic may read its copies (`MirrorSourceConnector.targetAclBinding`); who may write there may not
write copies, for the flow does that. By choice entries for prefixes and for `*` are translated as well, and those of
groups, and what allows to write is staged: a failover puts it in force. What was made here is recorded, so that only
that is ever removed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from srm_spark.core.compact_json import compact_json

_VERSION = 1
MADE, STAGED = "acls", "staged"
"""What a record says of the entries of a resource: they were made there, or wait for a failover."""
TOPIC, GROUP = "TOPIC", "GROUP"
_READS = frozenset({"READ", "DESCRIBE", "DESCRIBE_CONFIGS"})
_WRITES = frozenset({"WRITE", "ALL"})


class Acl(NamedTuple):
    """One entry, in the words of `kafka-acls.sh`, in capitals."""

    name: str
    """Of the resource: a name, a prefix, or `*`."""
    pattern: str
    """LITERAL or PREFIXED."""
    principal: str
    """As in `User:ann`."""
    host: str
    operation: str
    permission: str
    """ALLOW or DENY."""
    kind: str = TOPIC
    """TOPIC or GROUP."""

    def __str__(self) -> str:
        name = f"{self.name}*" if self.pattern == "PREFIXED" else self.name
        return f"{self.permission} {self.operation} on {self.kind.lower()} {name} to {self.principal} from {self.host}"

    @property
    def allows_writing(self) -> bool:
        """Whether it lets somebody write copies: only a failover makes such an entry."""
        return (self.kind, self.operation, self.permission) == (TOPIC, "WRITE", "ALLOW")

    @property
    def is_single(self) -> bool:
        """Whether it is about one topic or group."""
        return self.pattern == "LITERAL" and self.name != "*"

    @property
    def is_open_to_all(self) -> bool:
        """Whether it allows something to everybody."""
        return (self.principal, self.permission) == ("User:*", "ALLOW")

    def meets(self, other: Acl) -> bool:
        """Whether there may be a topic or a group that both are about."""
        mine, its = ("" if acl.name == "*" else acl.name for acl in (self, other))
        meets = (mine == its) or (not self.is_single and its.startswith(mine))
        return self.kind == other.kind and (meets or (not other.is_single and mine.startswith(its)))


@dataclass(frozen=True)
class AclRules:
    """What is asked of a flow for each entry."""

    is_replicated: Callable[[str], bool]
    remote_name: Callable[[str], str]
    remote_prefix: Callable[[str], str | None] = lambda _: None
    """Prefix of source topics → that of their remote topics; None where no prefix covers these and nothing else."""
    takes_group: Callable[[str], bool] = lambda _: False
    takes_group_patterns: bool = False
    principal: Callable[[str], str | None] = lambda principal: principal
    """Principal of the source → of the target; None where nobody there is meant."""


class NotCopied(Enum):
    """Why the target gets nothing for an entry of the source."""

    WRITE = "only the flow writes copies"
    TOPIC = "its topic does not flow"
    PATTERN = "it is about a prefix or *; see sync.topic.acls.patterns.enabled"
    MORE_THAN_READING = "of what a prefix allows only reading is translated"
    GROUP = "its group is not taken"
    PRINCIPAL = "sync.topic.acls.principal.mapping.rules has no name for its principal"
    DENIED = "sync.topic.acls.principal.mapping.rules has no name for whom it denies, and what everybody may is copied"
    """Somebody may more on the target than on the source."""
    GROUP_PATTERN = "it is about a prefix of groups or *; see sync.topic.acls.patterns.enabled"


def judge_acls(acls: Iterable[Acl], rules: AclRules) -> dict[Acl, Acl | NotCopied]:
    """Each entry of the source with what the target gets for it, or why it gets nothing."""
    judged = {acl: _copy(acl, rules) for acl in acls}
    open_to_all = [acl for acl, copy in judged.items() if isinstance(copy, Acl) and acl.is_open_to_all]
    denied = (acl for acl, copy in judged.items() if copy is NotCopied.PRINCIPAL and acl.permission == "DENY")
    lifted = [acl for acl in denied if any(acl.meets(other) for other in open_to_all)]
    return {**judged, **dict.fromkeys(lifted, NotCopied.DENIED)}


def remote_acls(acls: Iterable[Acl], rules: AclRules) -> set[Acl]:
    """The entries that the target gets for those of the source.

    Those of single replicated topics, but for the right to write; the right to everything becomes that to read. Entries
    for prefixes and `*` are about topics that are not replicated, too: of what they allow only reading is translated.
    """
    return {copy for copy in judge_acls(acls, rules).values() if isinstance(copy, Acl)}


def staged_acls(acls: Iterable[Acl], rules: AclRules) -> dict[Acl, Acl]:
    """Entry of the source that allows to write → what a failover puts in force for it, where readers get a copy."""
    writers = [acl for acl in acls if acl.kind == TOPIC and acl.permission == "ALLOW" and acl.operation in _WRITES]
    copies = {acl: _copy(acl._replace(operation="READ"), rules) for acl in writers}
    return {acl: copy._replace(operation="WRITE") for acl, copy in copies.items() if isinstance(copy, Acl)}


def _copy(acl: Acl, rules: AclRules) -> Acl | NotCopied:
    copy = _same_copy(acl, rules)
    if isinstance(copy, NotCopied):
        return copy
    principal = rules.principal(acl.principal)
    return NotCopied.PRINCIPAL if principal is None else copy._replace(principal=principal)


def _same_copy(acl: Acl, rules: AclRules) -> Acl | NotCopied:
    """For the same principal."""
    if acl.kind == GROUP:
        takes = rules.takes_group(acl.name) if acl.is_single else rules.takes_group_patterns
        why = NotCopied.GROUP if acl.is_single else NotCopied.GROUP_PATTERN
        return acl if takes else why
    is_allowed = acl.permission == "ALLOW"
    operation = "READ" if is_allowed and acl.operation == "ALL" else acl.operation
    if is_allowed and operation == "WRITE":
        return NotCopied.WRITE
    if acl.is_single:
        is_copied = rules.is_replicated(acl.name)
        return acl._replace(name=rules.remote_name(acl.name), operation=operation) if is_copied else NotCopied.TOPIC
    prefix = rules.remote_prefix("" if acl.name == "*" else acl.name)
    if prefix is None:
        return NotCopied.PATTERN
    if is_allowed and operation not in _READS:
        return NotCopied.MORE_THAN_READING
    return acl._replace(name=prefix, pattern="PREFIXED", operation=operation)


def acl_records(before: Collection[Acl], now: Collection[Acl], word: str = MADE) -> dict[bytes, bytes]:
    """Key → value of the records by which what was made, or staged, is `now` what it is: where that changed."""
    known, new = _by_resource(before), _by_resource(now)
    return {
        compact_json([word, *resource]): compact_json({"v": _VERSION, "made": sorted(new.get(resource, ()))})
        for resource in sorted(known.keys() | new.keys())
        if known.get(resource) != new.get(resource)
    }


def decode_acls(resource: tuple[str, str], value: bytes | None) -> frozenset[Acl] | None:
    """What was made of a resource (kind, name), or is staged; None for anything else."""
    try:
        document = json.loads(value or b"")
        if document["v"] != _VERSION:
            return None
        return frozenset(_made(*resource, *map(str, one)) for one in document["made"])
    except (KeyError, TypeError, ValueError):
        return None


def _made(kind: str, name: str, *rule: str) -> Acl:
    pattern, principal, host, operation, permission = rule
    return Acl(name, pattern, principal, host, operation, permission, kind)


def _by_resource(acls: Iterable[Acl]) -> Mapping[tuple[str, str], set[tuple[str, ...]]]:
    found = defaultdict[tuple[str, str], set[tuple[str, ...]]](set)
    for acl in acls:
        found[acl.kind, acl.name].add((acl.pattern, acl.principal, acl.host, acl.operation, acl.permission))
    return dict(found)
