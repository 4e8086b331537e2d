"""Takes a key of a file apart: the level it is written at, and the property that it sets there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from srm_spark.core.model import Flow

_FLOW_KEY = re.compile(r"^(?P<source>.+?)->(?P<target>[^.]*)(?:\.(?P<rest>.*))?$")


class Where(Enum):
    """Where in a file a key stands."""

    TOP = "top level"
    WORKERS = "workers."
    CONNECTORS = "connectors."
    CLUSTER = "cluster"
    FLOW = "replication"
    UNKNOWN_FLOW = "replication of unknown clusters"


@dataclass(frozen=True)
class Written:
    """A key, taken apart."""

    where: Where
    rest: str
    """The property without its prefix."""
    alias: str = ""
    flow: Flow | None = None
    """Also where an alias of it is unknown."""


def take_apart(key: str, aliases: Sequence[str]) -> Written:
    """Which level `key` belongs to, given the file's clusters."""
    if "->" in key:
        pairs = [Flow(source, target) for source in aliases for target in aliases if source != target]
        for flow in sorted(pairs, key=lambda pair: -len(str(pair))):
            if key.startswith(f"{flow}."):
                return Written(Where.FLOW, key[len(f"{flow}.") :], flow=flow)
        if match := _FLOW_KEY.match(key):
            flow = Flow(match["source"], match["target"])
            return Written(Where.UNKNOWN_FLOW, match["rest"] or "", flow=flow)
    for alias in sorted(aliases, key=len, reverse=True):
        if key.startswith(f"{alias}."):
            return Written(Where.CLUSTER, key[len(alias) + 1 :], alias=alias)
    for where in (Where.WORKERS, Where.CONNECTORS):
        if key.startswith(where.value):
            return Written(where, key[len(where.value) :])
    return Written(Where.TOP, key)
