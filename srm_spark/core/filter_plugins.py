"""Filters of the user's own: `topic.filter.class = package.module:Class`, a subclass of `NameFilter`. No I/O.

A subclass overrides `matches(name)`; `self.include` and `self.exclude` hold what the keys beside it say.
"""

from __future__ import annotations

from typing import NamedTuple

from srm_spark.core.filters import NameFilter
from srm_spark.core.plugins import load_class
from srm_spark.errors import PatternError, PluginError

_JAVA_PACKAGE = "org.apache.kafka.connect.mirror."


class FilterKey(NamedTuple):
    """A key that names a filter, what Kafka's own is called, and the keys with its patterns."""

    key: str
    java_default: str
    patterns: str


TOPICS = FilterKey("topic.filter.class", "DefaultTopicFilter", "`topics` and `topics.exclude`")
GROUPS = FilterKey("group.filter.class", "DefaultGroupFilter", "`groups` and `groups.exclude`")
CONFIG_PROPERTIES = FilterKey(
    "config.property.filter.class", "DefaultConfigPropertyFilter", "`config.properties.exclude`"
)


def is_kafkas_own(filter_key: FilterKey, class_name: str) -> bool:
    """Whether the name is that of Kafka's own filter, which is ours."""
    return class_name.strip().removeprefix(_JAVA_PACKAGE) in ("", filter_key.java_default)


def load_filter(
    filter_key: FilterKey, class_name: str, include: tuple[str, ...], exclude: tuple[str, ...]
) -> NameFilter:
    """The filter that a key names. Raises PluginError where its class, PatternError where a pattern cannot be used."""
    if is_kafkas_own(filter_key, class_name):
        return NameFilter(include, exclude)
    key, path = filter_key.key, class_name.strip()
    rule = f"write the rule as regular expressions in {filter_key.patterns}, or {key} = your_package.module:YourFilter"
    base = "a subclass of srm_spark.filters.NameFilter with its own matches(name)"
    loaded = load_class(key, path, f"{rule}, {base}")
    if not issubclass(loaded, NameFilter):
        raise PluginError(key, path, "is no subclass of srm_spark.filters.NameFilter", f"make it {base}")
    try:
        return loaded(include, exclude)
    except PatternError:
        raise
    except Exception as error:  # the constructor may be foreign code, too
        message = f"cannot be made from (include, exclude): {type(error).__name__}: {error}"
        raise PluginError(key, path, message, "override matches(name) only") from error
