"""Configs of topics as clusters tell them."""

from __future__ import annotations

from srm_spark.core.cluster import TopicConfig


def own(value: str | None, **more: bool) -> TopicConfig:
    """Set on the topic itself."""
    return config_of(value, is_own=True, **more)


def default(value: str | None) -> TopicConfig:
    """What nobody set."""
    return config_of(value, is_default=True)


def config_of(value: str | None, **more: bool) -> TopicConfig:
    """With what is not said false."""
    none = {"is_default": False, "is_static": False, "is_read_only": False, "is_sensitive": False, "is_own": False}
    return TopicConfig(value, **{**none, **more})
