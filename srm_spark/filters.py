"""The names for a filter of your own: `topic.filter.class = package.module:Class`, and its likes."""

from srm_spark.core.filters import NameFilter

__all__ = ["NameFilter"]
