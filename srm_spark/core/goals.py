"""Where a partition is to go on instead: what `--to` and `--by` mean. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from srm_spark.core.model import OffsetRange
from srm_spark.core.moments import moment_of


class Way(Enum):
    """In which direction a position may go; the value is the command's word."""

    SET = "set"
    REWIND = "rewind"
    SKIP = "skip"


@dataclass(frozen=True)
class Goal:
    """A place in every partition that is asked for; exactly one field is set."""

    offset: int | None = None
    is_earliest: bool = False
    is_latest: bool = False
    timestamp: int | None = None
    """The first record that is not older (ms since the epoch); where there is none, the end."""
    by: int | None = None
    """So many source offsets from where it stands."""


def goal_of(way: Way, to: str | None, by: int | None) -> Goal:
    """What the options say. Raises ValueError with what is wrong."""
    if (to is None) == (by is None):
        raise ValueError("write --to OFFSET|earliest|latest|TIMESTAMP" + ("" if way is Way.SET else ", or --by N"))
    if by is not None:
        if way is Way.SET:
            raise ValueError("--by goes with rewind and skip")
        return Goal(by=by)
    written = str(to).strip()
    if written in ("earliest", "latest"):
        return Goal(is_earliest=written == "earliest", is_latest=written == "latest")
    if written.isdecimal():
        return Goal(offset=int(written))
    try:
        return Goal(timestamp=moment_of(written))
    except ValueError as error:
        raise ValueError(f"--to {written}: write an offset, earliest, latest, or {error}") from error


@dataclass(frozen=True)
class Place:
    """What a goal comes to in one partition."""

    offset: int
    refusal: str | None = None


def place_of(goal: Goal, way: Way, position: int, source: OffsetRange, since: int | None) -> Place:
    """Where a partition that stands at `position` is to go on.

    `source` is what the source has of it, `since` the first offset that is not older than the goal's time.
    """
    if goal.by is not None:
        wanted = position - goal.by if way is Way.REWIND else position + goal.by
        offset = min(max(wanted, source.start), source.end)
    elif goal.is_earliest:
        offset = source.start
    elif goal.is_latest:
        offset = source.end
    elif goal.timestamp is not None:
        offset = source.end if since is None else since
    else:
        assert goal.offset is not None
        offset = goal.offset
    if not source.start <= offset <= source.end:
        return Place(offset, f"the source has offsets {source.start} to {source.end} now, and not {offset}")
    if way is Way.REWIND and offset > position:
        return Place(offset, f"it stands at {position}: {offset} lies ahead, and skip goes there")
    if way is Way.SKIP and offset < position:
        return Place(offset, f"it stands at {position}: {offset} lies behind, and rewind goes there")
    return Place(offset)
