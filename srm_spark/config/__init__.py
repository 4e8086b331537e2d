"""Configuration: files of SRM and MirrorMaker 2 in, frozen `Settings` and client dictionaries out.

Reads files only; imports neither pyspark nor confluent_kafka.
"""

from srm_spark.config.load import load_settings
from srm_spark.config.render import librdkafka, spark_kafka_options, unmapped
from srm_spark.config.settings import Settings

__all__ = ["Settings", "librdkafka", "load_settings", "spark_kafka_options", "unmapped"]
