"""What becomes of refused records, per topic."""

from __future__ import annotations

import pytest

from srm_spark.config.settings import RefusedPolicies
from srm_spark.core.model import RefusedPolicy
from tests.unit.config.conftest import Loader, problems


def _policies(loaded: Loader, text: str = "") -> RefusedPolicies:
    found = loaded(text)
    assert problems(found) == []
    return found.settings.flows[0].refused


def test_records_hold_their_partition_unless_told_otherwise(loaded: Loader) -> None:
    found = _policies(loaded)
    assert found.of("t") is RefusedPolicy.HOLD
    assert not found.parks


@pytest.mark.parametrize("policy", list(RefusedPolicy))
def test_a_flow_has_a_policy_and_topics_have_their_own(loaded: Loader, policy: RefusedPolicy) -> None:
    found = _policies(
        loaded,
        f"refused.record.policy = {policy.value}\npolicy.hold.topics = h.*\npolicy.park.topics = p.*\n"
        "policy.fix.topics = f.*, .*-both\n",
    )
    assert found.of("t") is policy
    assert [found.of(name) for name in ("h1", "p1", "f1")] == list(RefusedPolicy)
    assert found.of("h-both") is RefusedPolicy.HOLD, "the one that loses nothing"
    assert found.of("p-both") is RefusedPolicy.PARK
    assert found.parks


def test_one_flow_can_have_its_own(loaded: Loader) -> None:
    assert _policies(loaded, "A->B.refused.record.policy = PARK\n").of("t") is RefusedPolicy.PARK
    assert _policies(loaded, "A->B.refused.record.policy = park\nrefused.record.policy = fix\n").parks


def test_what_is_none_of_them_is_refused(loaded: Loader) -> None:
    (problem,) = problems(loaded("refused.record.policy = drop\n"))
    assert "got 'drop'; allowed hold, park, fix" in problem, problem
    (problem,) = problems(loaded("policy.park.topics = (\n"))
    assert "policy.park.topics" in problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("errors.tolerance = all\n", RefusedPolicy.PARK),
        ("errors.tolerance = all\nrefused.record.policy = hold\n", RefusedPolicy.HOLD),
        ("errors.tolerance = none\n", RefusedPolicy.HOLD),
    ],
)
def test_who_tolerates_errors_gets_a_quarantine_where_connect_would_drop(
    loaded: Loader, text: str, expected: RefusedPolicy
) -> None:
    found = loaded(text)
    assert found.settings.flows[0].refused.default is expected
    assert found.report.warnings == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("copy.source.offset.in.header.enabled = true\n", True),
        ("copy.source.offset.in.header.enabled = true\nprovenance.header.enabled = false\n", False),
        ("copy.source.offset.in.header.enabled = false\n", False),
    ],
)
def test_source_offsets_travel_in_our_own_header(loaded: Loader, text: str, expected: bool) -> None:
    found = loaded(f"topics = orders\n{text}", end="")
    assert found.settings.flows[0].provenance_enabled is expected
