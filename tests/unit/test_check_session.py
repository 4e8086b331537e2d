"""What is said of a session that somebody else made. A stand-in has its settings; nothing is started."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from srm_spark.config.secrets import SPARK_REDACTION_REGEX
from srm_spark.errors import SetupError
from srm_spark.spark.session import check_session


def _session(**settings: str) -> SparkSession:
    conf = {name.replace("_", "."): value for name, value in settings.items()}
    return cast("SparkSession", SimpleNamespace(conf=conf))


@pytest.mark.parametrize(
    ("settings", "is_warned"),
    [
        ({}, True),
        ({"spark_redaction_regex": "(?i)password"}, True),
        ({"spark_redaction_regex": SPARK_REDACTION_REGEX}, False),
        ({"spark_redaction_regex": "(?i)password|sasl"}, False),
        ({"spark_redaction_regex": r"\p{Alpha}+"}, False),
    ],
)
def test_a_regex_that_does_not_hide_logins_is_warned_of(
    caplog: pytest.LogCaptureFixture, settings: dict[str, str], is_warned: bool
) -> None:
    with caplog.at_level(logging.WARNING):
        check_session(_session(**settings))
    told = [message for message in caplog.messages if "does not cover kafka.sasl.jaas.config" in message]
    assert bool(told) is is_warned
    assert all(f"spark.redaction.regex={SPARK_REDACTION_REGEX}" in message for message in told)


def test_speculation_is_refused() -> None:
    with pytest.raises(SetupError, match=r"spark\.speculation is on"):
        check_session(_session(spark_speculation="true"))
