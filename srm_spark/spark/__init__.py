"""Everything that knows Spark. The types that other packages hand around are exported here."""

from pyspark.sql import DataFrame, SparkSession

__all__ = ["DataFrame", "SparkSession"]
