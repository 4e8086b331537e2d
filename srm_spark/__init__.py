"""Kafka cluster replication on Spark."""

__version__ = "0.1.0"
