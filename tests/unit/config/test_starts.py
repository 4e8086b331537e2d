"""Where topics begin that were never copied."""

from __future__ import annotations

import pytest

from srm_spark.config.settings import StartAt, StartSettings
from tests.unit.config.conftest import Loader, problems


def _starts(loaded: Loader, text: str = "") -> StartSettings:
    found = loaded(text)
    assert problems(found) == []
    return found.settings.flows[0].starts


def test_topics_begin_as_the_consumer_says_unless_they_have_a_place_of_their_own(loaded: Loader) -> None:
    assert _starts(loaded).of("t", StartAt.LATEST) is StartAt.LATEST
    starts = _starts(
        loaded,
        "topics.start.latest = audit.*, both\ntopics.start.earliest = both, all\ntopics.start.timestamp = m.*, all\n"
        "topics.start.time = 1970-01-01T00:00:01Z\n",
    )
    assert [starts.of(name, StartAt.EARLIEST) for name in ("audit-1", "m1", "t")] == [
        StartAt.LATEST,
        StartAt.TIMESTAMP,
        StartAt.EARLIEST,
    ]
    assert [starts.of(name, StartAt.LATEST) for name in ("both", "all")] == [StartAt.EARLIEST] * 2, "loses nothing"
    assert starts.timestamp == 1000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics.start.timestamp = t\n", "topics.start.time does not say when"),
        (
            "topics.start.timestamp = t\ntopics.start.time = noon\n",
            "got 'noon'; allowed a time as 2026-01-31T12:00:00Z",
        ),
        (
            "topics.start.timestamp = t\ntopics.start.time = 2026-01-31T12:00\n",
            "got '2026-01-31T12:00'; allowed a time with its zone: 2026-01-31T12:00Z, or 2026-01-31T12:00+01:00",
        ),
        ("topics.start.latest = (\n", "topics.start.latest"),
    ],
)
def test_what_makes_no_sense_is_refused(loaded: Loader, text: str, said: str) -> None:
    (problem,) = problems(loaded(text))
    assert said in problem


def test_what_is_never_copied_is_told(loaded: Loader) -> None:
    (warning,) = [one for one in loaded("topics.start.latest = t\n").report.warnings if "topics.start" in one]
    assert "what is written to them before the flow has found them is not copied" in warning
    unused = loaded("topics.start.time = 2026-01-31T12:00:00Z\n").report.warnings
    assert any("no topic of A->B begins there: write topics.start.timestamp" in one for one in unused)
