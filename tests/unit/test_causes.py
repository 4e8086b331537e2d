"""What is made of a query's failure, from errors as Spark words them."""

from __future__ import annotations

from srm_spark.flow.causes import denied_topics, first_cause

DENIED = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted
Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [orders, pay]
"""
GROUP = "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized to access group: spark-1"


def test_topics_that_may_not_be_read_are_named() -> None:
    assert denied_topics(DENIED) == {"orders", "pay"}
    said = first_cause(DENIED, "A")
    assert said.startswith("Spark cannot read from A: Not authorized to access topics: [orders, pay]; ")
    assert said.endswith("allow READ on topic orders, pay to the principal of these credentials")


def test_a_group_is_no_topic() -> None:
    assert denied_topics(GROUP) == denied_topics("Caused by: long overflow") == set()
    assert "allow READ on group spark-1 to" in first_cause(GROUP, "A")


def test_errors_of_ours_say_most() -> None:
    failure = "Job aborted\nsrm_spark.errors.ProgressFailed: cluster B: no\nCaused by: java.lang.Exception: x\n"
    assert first_cause(failure, "A") == "cluster B: no"
    assert first_cause("Job aborted\nCaused by: java.lang.ArithmeticException: long overflow", "A") == (
        "Job aborted (java.lang.ArithmeticException: long overflow)"
    )
