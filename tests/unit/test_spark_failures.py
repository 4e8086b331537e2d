"""What is made of a query's failure, from errors as Spark words them."""

from __future__ import annotations

import pytest

from srm_spark.errors import SourceChanged, SourceDenied
from srm_spark.failure import CrossedFailure, Failure, FailureKind, crossing
from srm_spark.spark.failures import failure_in

DENIED = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted
Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [orders, pay]
"""
GROUP = "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized to access group: spark-1"


def test_what_java_s_clients_throw_is_known_by_its_class() -> None:
    found = failure_in(DENIED, "A")
    assert (found.kind, found.topics) == (FailureKind.SOURCE_DENIED, ())
    assert found.sentence.startswith("Spark cannot read from A: Not authorized to access topics: [orders, pay]; ")
    assert found.sentence.endswith("allow READ on topic orders, pay to the principal of these credentials")
    assert "allow READ on group spark-1 to" in failure_in(GROUP, "A").sentence


def test_its_words_do_not_matter() -> None:
    assert failure_in(DENIED.replace("Not authorized to access", "Kein Zugriff auf"), "A").kind is (
        FailureKind.SOURCE_DENIED
    )


def test_the_first_line_and_the_innermost_cause_are_told_of_anything_else() -> None:
    found = failure_in("Job aborted\nCaused by: java.lang.ArithmeticException: long overflow", "A")
    assert found == Failure(
        FailureKind.TIMESTAMP_OVERFLOW, "Job aborted (java.lang.ArithmeticException: long overflow)"
    )
    assert failure_in("", "A") == Failure(FailureKind.OTHER, "the query ended without a reason")


@pytest.mark.parametrize(
    "error",
    [SourceDenied('no "é"\nat all', ["a", "b"]), SourceChanged("cluster A: gone"), SourceChanged("srm-failure {")],
)
def test_ours_cross_spark_as_data(error: SourceChanged | SourceDenied) -> None:
    with pytest.raises(CrossedFailure) as caught, crossing():
        raise error
    text = (
        f"[E] Job aborted\n  File x.py\nsrm_spark.failure.CrossedFailure: {caught.value}\n\tat org.apache.x\n{DENIED}"
    )
    assert failure_in(text, "A") == error.failure


def test_what_was_cut_off_on_its_way_is_something_else() -> None:
    text = str(CrossedFailure(SourceChanged("gone").failure))
    assert failure_in(text[:-5], "A").kind is FailureKind.OTHER
