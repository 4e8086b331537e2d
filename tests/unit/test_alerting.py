"""When something is told, told again and told to be over; and that what is not known is never over."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.alerting import Alerting, AlertKind, AlertSettings, Fact, Notice, document_of

SETTINGS = AlertSettings("http://x", after=300, repeat=1000)
RPO = Fact(AlertKind.RPO, "A->B", "400 s would be lost")


def due(alerting: Alerting, now: float, *facts: Fact, unknown: tuple[str, ...] = ()) -> list[tuple[str, bool]]:
    """What is due, and whether it is true still; somebody is told."""
    notices = alerting.judge(facts, unknown, now)
    alerting.told(notices, now)
    return [(notice.fact.kind.value, notice.until is None) for notice in notices]


def test_what_lasts_is_told_once_then_again_and_then_that_it_is_over() -> None:
    alerting = Alerting(SETTINGS)
    assert due(alerting, 0, RPO) == due(alerting, 299, RPO) == []
    assert due(alerting, 300, RPO) == [("rpo", True)]
    assert due(alerting, 1299, RPO) == []
    assert due(alerting, 1300, RPO) == [("rpo", True)]
    assert due(alerting, 1301) == [("rpo", False)]
    assert due(alerting, 1302) == []
    assert due(alerting, 1303, RPO) == [], "it has to last again"


def test_what_passes_is_never_told() -> None:
    alerting = Alerting(SETTINGS)
    for now in range(0, 3000, 100):
        assert due(alerting, now, *([RPO] if now % 200 else [])) == []


def test_nothing_is_over_of_a_flow_that_is_unknown_but_its_driver_speaks_again() -> None:
    alerting = Alerting(SETTINGS)
    silent = Fact(AlertKind.NOT_RUNNING, "A->B", "its driver is silent")
    due(alerting, 0, RPO)
    due(alerting, 300, RPO)
    assert due(alerting, 310, silent, unknown=("A->B",)) == []
    assert due(alerting, 610, silent, unknown=("A->B",)) == [("not-running", True)]
    assert due(alerting, 620) == [("rpo", False), ("not-running", False)]


def test_losses_are_told_at_once_and_each_new_one_again() -> None:
    alerting = Alerting(SETTINGS)
    lost = [Fact(AlertKind.RECORDS_LOST, "A->B", f"{count} records are lost", value=count) for count in (5, 5, 9, 9)]
    assert [due(alerting, now, fact) for now, fact in enumerate(lost)] == [
        [("records-lost", True)], [], [("records-lost", True)], []
    ]  # fmt: skip


def test_another_driver_that_counts_anew_has_news() -> None:
    alerting = Alerting(SETTINGS)
    lost = [Fact(AlertKind.RECORDS_LOST, "A->B", f"{count} records are lost", value=count) for count in (10, 5, 5)]
    assert [bool(due(alerting, now, fact)) for now, fact in enumerate(lost)] == [True, True, False]
    differ = [Fact(AlertKind.COPIES_DIFFER, "A->B", f"{count} differ", value=count) for count in (10, 5, 8)]
    assert [bool(due(alerting, now, fact)) for now, fact in enumerate(differ)] == [True, False, True]


def test_nobody_was_told_so_it_is_due_still_as_it_is_by_then() -> None:
    alerting = Alerting(SETTINGS)
    alerting.judge([RPO], (), 0)
    assert [notice.until for notice in alerting.judge([RPO], (), 300)] == [None]
    assert [notice.until for notice in alerting.judge([RPO], (), 310)] == [None]
    assert alerting.judge([], (), 320) == [], "nobody needs to know that it is over"
    due(alerting, 330, RPO)
    due(alerting, 700, RPO)
    assert [notice.until for notice in alerting.judge([], (), 710)] == [710]
    assert [notice.until for notice in alerting.judge([], (), 720)] == [710]
    assert alerting.judge([RPO], (), 730) == [], "it was never over, as far as anybody was told"


def test_what_nobody_asked_for_is_not_told() -> None:
    alerting = Alerting(AlertSettings("http://x", frozenset({AlertKind.BLIND}), after=0))
    assert due(alerting, 0, RPO, Fact(AlertKind.BLIND, "B", "no answer")) == [("blind", True)]


GROUPS = st.lists(st.sets(st.sampled_from("abc")), max_size=30)


@given(moments=GROUPS)
def test_whoever_listens_knows_at_each_moment_what_has_lasted(moments: list[set[str]]) -> None:
    alerting, lasted = Alerting(AlertSettings("http://x", after=2, repeat=10**9)), dict.fromkeys("abc", 0)
    known = set[str]()
    for now, wrong in enumerate(moments):
        facts = [Fact(AlertKind.GROUP_NOT_SYNCED, "A->B", "x", group) for group in wrong]
        notices = alerting.judge(facts, (), now)
        alerting.told(notices, now)
        for notice in notices:
            assert (notice.fact.detail in known) == (notice.until is not None), "no word twice"
            known ^= {notice.fact.detail}
        lasted = {group: lasted[group] + 1 if group in wrong else 0 for group in lasted}
        assert known == {group for group, moments_ in lasted.items() if moments_ > 2}


def test_the_message_is_alertmanagers() -> None:
    """Its documentation: `webhook_config`, data version 4."""
    group = Fact(AlertKind.GROUP_NOT_SYNCED, "A->B", "group g: refused", "g")
    document = document_of([Notice(RPO, 1.5), Notice(group, 1.0, 61.0)], "http://s:6670")
    assert (document["version"], document["status"], document["externalURL"]) == ("4", "firing", "http://s:6670")
    first, second = document["alerts"]
    assert first["labels"] == {"alertname": "rpo", "severity": "critical", "flow": "A->B"}
    assert (first["status"], first["startsAt"]) == ("firing", "1970-01-01T00:00:01.500Z")
    assert second["labels"] == {"alertname": "group-not-synced", "severity": "warning", "flow": "A->B", "group": "g"}
    assert (second["status"], second["endsAt"]) == ("resolved", "1970-01-01T00:01:01.000Z")
    assert first["fingerprint"] != second["fingerprint"]
    assert document_of([Notice(group, 1.0, 61.0)], "")["status"] == "resolved"


def test_what_is_not_known_of_a_flow_is_not_over() -> None:
    differ = Fact(AlertKind.COPIES_DIFFER, "A->B", "2 records differ", value=2)
    alerting = Alerting(AlertSettings("http://x"))
    assert due(alerting, 0, differ) == [("copies-differ", True)]
    unknown = {(AlertKind.COPIES_DIFFER, "A->B")}
    assert alerting.judge([], unknown, 10) == []
    assert [notice.until for notice in alerting.judge([], (), 20)] == [20]
