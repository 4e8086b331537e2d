"""Bandwidth limits of a flow and of a cluster, and the classes of topics under them."""

from __future__ import annotations

from srm_spark.config.settings import LimitSettings
from tests.unit.config.conftest import BASE, Loader, problems

THREE = BASE.replace("A, B", "A, B, C") + "C.bootstrap.servers = c:1\nC->B.enabled = true\nB->C.enabled = true\n"


def test_a_limit_is_that_of_a_flow_or_of_all_flows_into_a_cluster(loaded: Loader) -> None:
    found = loaded("A->B.bandwidth.limit.bytes = 1024\nB.bandwidth.limit.bytes = 5000000\n", base=THREE)
    assert (problems(found), found.settings.warnings) == ([], ())
    assert {str(flow.flow): (flow.limits.flow_bytes, flow.limits.cluster_bytes) for flow in found.settings.flows} == {
        "A->B": (1024, 5_000_000),
        "C->B": (None, 5_000_000),
        "B->C": (None, None),
    }


def test_what_is_no_limit_is_a_problem_with_its_line(loaded: Loader) -> None:
    found = loaded("A->B.bandwidth.limit.bytes = 1MB\nB.bandwidth.limit.bytes = 0\n")
    assert [problem.split("; ")[0] for problem in problems(found)] == [
        "srm.properties:5|A->B.bandwidth.limit.bytes|got '1MB'",
        "srm.properties:6|B.bandwidth.limit.bytes|got '0'",
    ]


def test_a_limit_of_nothing_in_particular_has_no_effect(loaded: Loader) -> None:
    (warning,) = loaded("bandwidth.limit.bytes = 5000\n").settings.warnings
    assert "write `A->B.bandwidth.limit.bytes` or `B.bandwidth.limit.bytes` with the target's alias" in warning


def test_classes_are_patterns_and_the_higher_one_wins(loaded: Loader) -> None:
    text = (
        "priority.high.topics = orders, pay.*\npriority.low.topics = logs.*, payslips\nB.bandwidth.limit.bytes = 5000\n"
    )
    found = loaded(text)
    assert (problems(found), found.settings.warnings) == ([], ())
    limits = found.settings.flows[0].limits
    assert limits.has_classes
    assert limits.ranks(["orders", "payslips", "other", "logs.a"]) == {
        "orders": 0,
        "payslips": 0,
        "other": 1,
        "logs.a": 2,
    }
    assert not LimitSettings(flow_bytes=5000).has_classes


def test_classes_without_a_limit_are_told_to_be_of_no_use(loaded: Loader) -> None:
    (warning,) = loaded("A->B.priority.low.topics = logs.*\n").settings.warnings
    assert warning.endswith(
        "A->B.priority.low.topics: without a limit no topic of A->B waits; set A->B.bandwidth.limit.bytes or "
        "B.bandwidth.limit.bytes"
    )


def test_a_class_that_is_no_pattern_is_a_problem(loaded: Loader) -> None:
    (problem,) = problems(loaded("priority.high.topics = [\nB.bandwidth.limit.bytes = 5000\n"))
    assert problem.startswith("srm.properties:5|priority.high.topics|")
