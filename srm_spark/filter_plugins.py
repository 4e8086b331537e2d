"""Topic filters of the user's own: `topic.filter.class = package.module:Class`, a subclass of `NameFilter`. No I/O.

A subclass overrides `matches(name)`; `self.include` and `self.exclude` hold what `topics` and `topics.exclude` say.
"""

from __future__ import annotations

import importlib

from srm_spark.errors import SrmError
from srm_spark.filters import NameFilter

JAVA_DEFAULTS = ("", "DefaultTopicFilter", "org.apache.kafka.connect.mirror.DefaultTopicFilter")


class FilterError(SrmError):
    """A filter class cannot be used."""


def load_topic_filter(class_name: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> NameFilter:
    """The filter that `topic.filter.class` names; Kafka's own is ours."""
    path = class_name.strip()
    if path in JAVA_DEFAULTS:
        return NameFilter(include, exclude)
    if ":" not in path:
        raise FilterError(
            "a Java class cannot be loaded here; write the rule as regular expressions in `topics` and"
            " `topics.exclude`, or topic.filter.class = your_package.module:YourFilter, a subclass of"
            " srm_spark.filters.NameFilter with its own matches(name)"
        )
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # importing runs foreign code, which may raise anything
        raise FilterError(
            f"cannot be imported: {type(error).__name__}: {error}; put the package on the driver's Python path and"
            " write package.module:Class"
        ) from error
    if not (isinstance(found, type) and issubclass(found, NameFilter)):
        raise FilterError("is no subclass of srm_spark.filters.NameFilter; make it one, with its own matches(name)")
    try:
        return found(include, exclude)
    except Exception as error:  # the constructor may be foreign code, too
        raise FilterError(
            f"cannot be made from (include, exclude): {type(error).__name__}: {error}; override matches(name) only"
        ) from error
