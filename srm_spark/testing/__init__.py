"""Real Kafka for tests, the demo and the benchmark: brokers from jars, Kafka's own tools, Java judges.

Imports of srm_spark only `jars` and `errors`: what checks the product must not be the product.
"""

from srm_spark.testing.cluster import Capability, ExternalKafka, KafkaCluster, kafka_cluster
from srm_spark.testing.java import run_java, run_java_source
from srm_spark.testing.local_cluster import LocalCluster
from srm_spark.testing.local_kafka import LocalKafka
from srm_spark.testing.process import JavaProcess

__all__ = [
    "Capability",
    "ExternalKafka",
    "JavaProcess",
    "KafkaCluster",
    "LocalCluster",
    "LocalKafka",
    "kafka_cluster",
    "run_java",
    "run_java_source",
]
