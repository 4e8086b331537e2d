"""Where a remote topic's configs let it lose, refuse or change what its source topic keeps. Pure.

Most often nobody set anything: the defaults of two clusters differ, and a remote topic has those of its own cluster
unless `use.defaults.from = source`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from srm_spark.core.topic_configs import cleanup_policies

_UNLIMITED = -1


class LosingConfig(NamedTuple):
    """One config by which the remote topic is worse off."""

    key: str
    there: str
    """On the remote topic."""
    here: str
    """On the source topic."""
    means: str
    """What happens to copies because of it."""

    def __str__(self) -> str:
        return f"{self.key}={self.there} and not {self.here}: {self.means}"


def losing_configs(source: Mapping[str, str | None], target: Mapping[str, str | None]) -> tuple[LosingConfig, ...]:
    """What is lost by the values that are in force, defaults too; a config that one side does not name is skipped."""
    both = {key: (here, there) for key, here in source.items() if here is not None and (there := target.get(key))}
    return tuple(_losing(both))


def _losing(both: Mapping[str, tuple[str, str]]) -> Iterator[LosingConfig]:
    if "cleanup.policy" in both:
        here, there = both["cleanup.policy"]
        for policy in sorted((cleanup_policies(there) - cleanup_policies(here)) & _GOES.keys()):
            yield LosingConfig("cleanup.policy", there, here, _GOES[policy])
    deletes = "delete" in cleanup_policies(both.get("cleanup.policy", ("delete", "delete"))[1])
    for key, means in _SMALLER.items():
        if key not in both or (key.startswith("retention") and not deletes):
            continue
        here, there = both[key]
        if _is_less(there, here):
            yield LosingConfig(key, there, here, means)
    if both.get("message.timestamp.type") == ("CreateTime", "LogAppendTime"):
        here, there = both["message.timestamp.type"]
        yield LosingConfig("message.timestamp.type", there, here, "copies get another timestamp")


_GOES = {
    "compact": "copies go when a newer one of their key comes",
    "delete": "copies go with their age, or when the log is large",
}
_SMALLER = {
    "retention.ms": "copies go earlier",
    "retention.bytes": "copies go earlier",
    "max.message.bytes": "a record may be too large for it",
}


def _is_less(there: str, here: str) -> bool:
    """Whether a limit is the smaller one; -1 is none at all, and so is what is no number."""
    try:
        less, more = int(there), int(here)
    except ValueError:
        return False
    return less != _UNLIMITED and (more == _UNLIMITED or less < more)
