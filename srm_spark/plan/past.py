"""What moves took that are over: their statements, which stay where they were written."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from srm_spark.core.model import Flow
from srm_spark.core.moments import moment_of
from srm_spark.plan.snapshot import MoveKind

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PastMove:
    """One that was applied, whoever did it: the service, or `srm-control` in the same directory."""

    kind: MoveKind
    flow: str
    began: int
    """Milliseconds since the epoch; of one that was interrupted, when it was begun first."""
    ended: int
    unsafe: tuple[str, ...]
    """Why not everything moved; empty where it did."""
    goal: int | None = None
    """Most seconds that it should have taken; None where its statement names no goal."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended - self.began) / 1000


def past_moves(folder: Path, flow: Flow) -> list[PastMove]:
    """Those whose statements lie in `folder`, the newest first. A file that is no statement is told in the log."""
    paths = folder.glob(f"srm-*-{flow.source}-{flow.target}-*.json")
    found = (_read(path, _changed_at(path)) for path in paths)
    moves = [one for one in found if one is not None and one.flow == str(flow)]
    return sorted(moves, key=lambda one: (one.began, one.ended), reverse=True)


def last_failover(folder: Path, flow: Flow) -> PastMove | None:
    """The newest one that moved everything, planned or not: what it took is what another one may take."""
    done = (one for one in past_moves(folder, flow) if one.kind.allows_writing and not one.unsafe)
    return next(done, None)


@lru_cache(maxsize=1000)
def _read(path: Path, _changed: int) -> PastMove | None:
    """Read anew only where `_changed`, when the file was, is another: statements can be large, and pages ask often."""
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        return PastMove(
            MoveKind(document["move"]),
            str(document["flow"]),
            moment_of(str(document["began"])),
            moment_of(str(document["ended"])),
            tuple(map(str, document["unsafe"])),
            None if (goal := document.get("rto_goal_seconds")) is None else int(goal),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("%s: this is no statement of a move (%s: %s)", path, type(error).__name__, error)
        return None


def _changed_at(path: Path) -> int:
    """0 where it is gone by now: reading it says so."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
