"""Which groups of the source a flow takes, and why it does not take the others."""

from __future__ import annotations

from collections.abc import Collection

from srm_spark.config.rights import acl_name
from srm_spark.config.settings import CheckpointSettings
from srm_spark.core.cluster import Groups
from srm_spark.core.filter_plugins import GROUPS, is_kafkas_own
from srm_spark.core.listed_filter import ListedFilter
from srm_spark.core.lists import Lists

NO_CONSUMER_GROUP = "share or streams group (KIP-932, KIP-1071): its state is more than offsets"


class GroupChoice:
    """The filter of groups over what the source shows."""

    def __init__(self, chosen: CheckpointSettings, alias: str, groups: Groups, takes: ListedFilter) -> None:
        """`groups` are those of the source, and `alias` is its name."""
        self._chosen = chosen
        self._alias = alias
        self._groups = groups
        self._filter = takes

    @property
    def lists(self) -> Lists:
        """The lists that count now; another object where they were changed."""
        return self._filter.lists

    def taken(self) -> list[str]:
        """The consumer groups that the flow takes."""
        return [name for name in self._groups.names() if self._filter.matches(name)]

    def others(self) -> list[str]:
        """The share and streams groups that the filter takes, and the flow cannot."""
        return [name for name in self._groups.others() if self._filter.matches(name)]

    def left_out(self) -> dict[str, str]:
        """Every group that the flow does not take → why."""
        filtered = {name: self._rule(name) for name in self._groups.names() if not self._filter.matches(name)}
        return {**filtered, **dict.fromkeys(self.others(), NO_CONSUMER_GROUP)}

    def unseen(self, groups: Collection[str]) -> str | None:
        """What the filter asks for and the source does not show; None where nothing is missing.

        A group that we may not describe looks exactly like one that does not exist.
        """
        chosen = self._filter.wanted
        names = [name for pattern in chosen if not (name := acl_name(pattern)).endswith("*")]
        missing = [name for name in names if name not in groups]
        if groups and not missing:
            return None
        if self._filter.is_idle:
            return f"no pattern of groups and no entry of their list names a group of {self._alias}"
        what = f"group {', '.join(missing)}" if missing else f"a group that matches {','.join(chosen)}"
        return f"{self._alias} does not show {what}: there is none, or DESCRIBE on it is not allowed"

    def _rule(self, name: str) -> str:
        if (entry := self._filter.denied_by(name)) is not None:
            return f"the deny list of groups has {entry}"
        if not is_kafkas_own(GROUPS, self._chosen.filter_class):
            return f"{GROUPS.key} {self._chosen.filter_class}"
        if (pattern := self._filter.excluded_by(name)) is not None:
            return f"groups.exclude has {pattern}"
        return "no pattern of groups matches, nor an entry of their list"
