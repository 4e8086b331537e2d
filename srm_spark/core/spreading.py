"""Which of several drivers should have a flow: the one with the least to do of those that stand by. No I/O.

Who has a flow decides, for it hears all that stand by for it: it gives a flow away where both are nearer to each other
afterwards. Nobody is told to take one; of several that stand by, the one with less to do is faster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from srm_spark.core.compact_json import compact_json
from srm_spark.core.driver_status import DriverId

_BYTES = 10_000_000.0
"""A second, which are about as much to do as a flow is by itself: its beats, looks and micro-batches."""
_MARGIN, _SHARE = 0.5, 0.05
"""By how much two drivers must differ for a flow to move, beside what moves; loads are never still."""
_STEP_SECONDS = 0.3
"""By which who has more to do claims later; a claim that is there is read within 0.2 s."""
_VERSION = 1
DRAINED_LOAD = 1_000_000.0
"""What a driver says that shall have nothing: nobody gives it anything, and all others are faster."""


@dataclass(frozen=True)
class StandBy:
    """What a driver says of itself while it stands by for a flow."""

    driver: DriverId
    load: float
    """What it has to do, by `weight` of each flow that it has."""

    def encode(self) -> bytes:
        """As a record's value."""
        return compact_json({"v": _VERSION, "act": "stands-by", "driver": str(self.driver), "load": self.load})

    @classmethod
    def decode(cls, value: bytes | None) -> StandBy | None:
        """What `encode` made; None for anything else."""
        try:
            document = json.loads(value or b"null")
            if document["act"] != "stands-by":
                return None
            return cls(DriverId.parse(str(document["driver"])), float(document["load"]))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None


def weight(bytes_per_second: float) -> float:
    """What a flow is to do for its driver; an idle one is 1."""
    return 1.0 + bytes_per_second / _BYTES


def least(others: Iterable[StandBy]) -> StandBy | None:
    """Who has the least to do; None where nobody stands by."""
    return min(others, key=_order, default=None)


def better(load: float, moved: float, others: Iterable[StandBy]) -> StandBy | None:
    """Who should have a flow that is `moved` of our `load`; None where it is best where it is."""
    found = least(others)
    return None if found is None or load - found.load <= moved + _MARGIN + _SHARE * load else found


def seconds_to_others(ours: StandBy, others: Iterable[StandBy]) -> float:
    """How long we leave a flow that is free to those who have less to do."""
    return _STEP_SECONDS * sum(_order(one) < _order(ours) for one in others)


def _order(one: StandBy) -> tuple[float, str]:
    """Of two with as much to do, one is the first."""
    return one.load, str(one.driver)
