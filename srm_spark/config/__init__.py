"""Configuration: files of SRM and MirrorMaker 2 in, frozen `Settings` and client dictionaries out.

Reads files only; imports neither pyspark nor confluent_kafka. The names load when they are asked for: what only takes
settings, as executors and the helper for groups do, needs none of the code that reads files.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from srm_spark.config.load import load_settings
    from srm_spark.config.render import librdkafka, spark_kafka_options, unmapped
    from srm_spark.config.settings import Settings

__all__ = ["Settings", "librdkafka", "load_settings", "spark_kafka_options", "unmapped"]

_HOMES = {
    "Settings": "settings",
    "librdkafka": "render",
    "load_settings": "load",
    "spark_kafka_options": "render",
    "unmapped": "render",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
