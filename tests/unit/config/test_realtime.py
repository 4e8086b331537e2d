"""mode=realtime, and what cannot go with it."""

from __future__ import annotations

import pytest

from tests.unit.config.conftest import Loader, problems


def test_a_flow_has_its_own_mode(loaded: Loader) -> None:
    assert not loaded().settings.flows[0].is_realtime
    assert loaded("A->B.mode = realtime\n").settings.flows[0].is_realtime
    assert not loaded("mode = realtime\nA->B.mode = micro-batch\n").settings.flows[0].is_realtime
    (problem,) = problems(loaded("A->B.mode = fast\n"))
    assert "got 'fast'; allowed micro-batch, realtime" in problem


def test_it_can_be_for_some_topics_only(loaded: Loader) -> None:
    found = loaded("A->B.mode = realtime\nA->B.realtime.topics = quick, pay.*\n").settings
    assert (found.flows[0].realtime_topics, found.warnings) == (("quick", "pay.*"), ())
    (warning,) = loaded("A->B.realtime.topics = quick\n").settings.warnings
    assert "A->B.realtime.topics: without mode=realtime all topics of A->B go in micro-batches" in warning


@pytest.mark.parametrize(
    "line",
    [
        "A->B.exactly.once.support = required",
        "B.exactly.once.source.support = enabled",
        "provenance.header.enabled = true",
        "A->B.bandwidth.limit.bytes = 1000000",
        "B.bandwidth.limit.bytes = 1000000",
        "refused.record.policy = park",
        "policy.park.topics = orders",
        "source.truncated.policy = stop",
        "policy.stop.topics = orders",
    ],
)
def test_what_it_cannot_keep_is_refused(loaded: Loader, line: str) -> None:
    assert problems(loaded(f"{line}\n")) == []
    (problem,) = problems(loaded(f"{line}\nA->B.mode = realtime\n"))
    assert problem.startswith("srm.properties:6|A->B.mode|got realtime for A->B, which cannot go with "), problem


def test_what_holds_or_fixes_records_goes_with_it(loaded: Loader) -> None:
    text = "mode = realtime\nrefused.record.policy = fix\npolicy.hold.topics = h.*\nforeign.writer.policy = resume\n"
    assert problems(loaded(text)) == []
