"""What a configuration key is, and the one table of all keys that SRM, MirrorMaker 2 and srm-spark know.

The rows live in `keys_connector`, `keys_process` and `keys_client`; validation, did-you-mean, docs and JSON schema
read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ValueKind(Enum):
    """The type of a value, with the words an error message uses for it."""

    BOOL = "true or false"
    INT = "a whole number"
    TEXT = "text"
    LIST = "a comma-separated list"
    REGEXES = "a comma-separated list of regular expressions"
    CLASS = "a class name"


class KeyEffect(Enum):
    """What srm-spark does with a key."""

    HONOURED = "honoured"
    TRANSLATED = "translated"
    CHECKED = "checked only"
    """Read and validated, but the part of srm-spark that uses it does not exist yet."""
    IGNORED = "ignored"
    REFUSED = "refused"


class Scope(Enum):
    """Where a key may be written."""

    TOP = "top level"
    CONNECTOR = "top level, `A->B.`"
    FLOW = "`A->B.`"
    FLOW_AND_TARGET = "`A->B.`, `B.` of the target"
    WORKER = "`B.` of the target"
    WORKER_PREFIX = "top level, `B.` of the target"
    SECURITY = "top level, `A.`"
    CLIENT = "behind a client prefix"
    SERVICE = "SRM Service and Client"


class Dialect(Enum):
    """Whose rules decide where MirrorMaker 2 and SRM disagree."""

    MM2 = "mm2"
    SRM = "srm"


@dataclass(frozen=True)
class Key:
    """One row of the table."""

    name: str
    kind: ValueKind
    default: str | None
    """Default in MM2's words; None: none, or the client's."""
    scope: Scope
    effect: KeyEffect
    does: str
    """What it does here; for ignored keys the reason."""
    srm_default: str | None = None
    """Default in the SRM dialect where it differs."""
    allowed: tuple[str, ...] = ()
    """The only values, compared without case."""
    low: int | None = None
    high: int | None = None
    off: bool = False
    """Whether a negative number switches the function off, as in MM2."""

    def default_for(self, dialect: Dialect) -> str | None:
        """The default under `dialect`."""
        return self.srm_default if dialect is Dialect.SRM and self.srm_default is not None else self.default

    @property
    def allows(self) -> str:
        """What a value may be, for messages."""
        if self.allowed:
            return ", ".join(self.allowed)
        if self.kind is ValueKind.INT and (self.low is not None or self.high is not None):
            span = f"{self.kind.value} from {self.low}" + (f" to {self.high}" if self.high is not None else "")
            return span + (", or -1 for off" if self.off else "")
        return self.kind.value
