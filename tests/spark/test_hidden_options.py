"""What Spark says of a stream: a plan names the options of its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from srm_spark.config import spark_kafka_options
from srm_spark.config.secrets import SQL_SETTINGS
from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import TopicPartition
from srm_spark.spark.session import configure, own_session
from srm_spark.spark.source import stream

SECRETS = {
    "ssl.keystore.key": "-----BEGIN PRIVATE KEY----- hush1",
    "ssl.keystore.certificate.chain": "hush2",
    "sasl.jaas.config": "a.b.LoginModule required hush3;",
    "ssl.truststore.certificates": "hush4",
}


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="Spark of before hides no option of a stream in a plan")
@pytest.mark.parametrize(("settings", "shown"), [({}, {"hush1", "hush2", "hush3", "hush4"}), (SQL_SETTINGS, set())])
def test_a_plan_hides_secrets_in_a_session_of_somebody_elses(
    spark: SparkSession, settings: Mapping[str, str], shown: set[str]
) -> None:
    session = own_session(spark)
    configure(session, settings)
    options = spark_kafka_options(ClusterSettings("A", "a:1", SECRETS), {}, 60)
    frame = stream(session, options, {TopicPartition("t", 0): 0}, 10)
    with _active(session, spark):
        plan = str(frame._jdf.queryExecution().toString())
    assert "kafka.ssl.keystore.key=" in plan
    assert {hush for hush in ("hush1", "hush2", "hush3", "hush4") if hush in plan} == shown


@contextmanager
def _active(session: SparkSession, usual: SparkSession) -> Iterator[None]:
    """The session is that of the thread, as it is in the thread of a query."""
    jvm: Any = session._jvm
    scala = jvm.org.apache.spark.sql.classic.SparkSession
    scala.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        scala.setActiveSession(usual._jsparkSession)
