"""Configuration: files of SRM and MirrorMaker 2 in, frozen `Settings` and client dictionaries out.

Reads files only; imports neither pyspark nor confluent_kafka. The names load when they are asked for: what only takes
settings, as executors and the helper for groups do, needs none of the code that reads files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srm_spark.names import named_later

if TYPE_CHECKING:
    from srm_spark.config.load import load_settings
    from srm_spark.config.render import librdkafka, spark_kafka_options, unmapped
    from srm_spark.config.settings import Settings

__all__ = ["Settings", "librdkafka", "load_settings", "spark_kafka_options", "unmapped"]

_HOMES = {
    "Settings": "srm_spark.config.settings",
    "librdkafka": "srm_spark.config.render",
    "load_settings": "srm_spark.config.load",
    "spark_kafka_options": "srm_spark.config.render",
    "unmapped": "srm_spark.config.render",
}

__getattr__ = named_later(__name__, _HOMES)
