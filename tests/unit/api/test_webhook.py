"""A real receiver is told of what a board knows to be wrong: once, and once more when it is over."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from srm_spark.api.webhook import Webhook
from srm_spark.core.alerting import AlertKind, AlertSettings
from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import GroupSample, PartitionSample
from srm_spark.core.model import TopicPartition
from srm_spark.flow.groups.sync import SyncState
from srm_spark.look.alerting import Recovery, facts_of
from tests.awaiting import await_until
from tests.unit.api.boards import AB, NOW, Filled, three_flows


class Receiver(ThreadingHTTPServer):
    """Keeps what it is told; answers with `code`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.told: list[dict[str, object]] = []
        self.code = 200

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hooks/secret"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.code == 200:
            self.server.told.append(json.loads(body))
        self.send_response(self.server.code)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def names(document: dict[str, object]) -> set[tuple[str, str]]:
    alerts = document["alerts"]
    assert isinstance(alerts, list)
    return {(one["labels"]["alertname"], one["status"]) for one in alerts}


def one_flow(**values: object) -> Filled:
    """A->B, which runs."""
    filled = Filled(flows=(AB,))
    filled.live()
    filled.report(AB, NOW, **{"lost": 0, "quarantined": 0, **values})  # type: ignore[arg-type]
    return filled


def later(filled: Filled, seconds: int, **values: object) -> None:
    filled.clock.pass_by(seconds)
    filled.report(AB, NOW + 1000 * seconds, **values)  # type: ignore[arg-type]


def test_a_board_on_which_all_is_well_has_no_facts() -> None:
    assert facts_of(one_flow().board, AlertSettings("http://x")) == ([], set())


def test_every_kind_of_alert_has_its_fact() -> None:
    settings, found = AlertSettings("http://x"), set[AlertKind]()
    ahead = SyncState.AHEAD.value
    audited = {"audited_at": NOW - 1000, "differing": 2, "differs": "orders-0: 2 lost", "audit_late": "none has ended"}
    worst = one_flow(lag_seconds=500.0, lost=3, quarantined=1, **audited)
    worst.take(GroupSample(AB, NOW + 1000, 1.0, "billing", ("orders",), state=ahead))
    worst.take(PartitionSample(AB, NOW + 1000, 1.0, TopicPartition("orders", 1), "A.orders", state="paused"))
    for filled in (worst, one_flow(lag_records=None), one_flow(state=FlowState.RETRYING)):
        facts, _ = facts_of(filled.board, settings, lambda _: Recovery(12.0, 10))
        found |= {fact.kind for fact in facts}
    worst.board.lost(AB.target, "no broker answers")
    facts, unknown = facts_of(worst.board, settings)
    assert str(AB) in unknown
    assert [(fact.kind, fact.subject) for fact in facts] == [
        (AlertKind.BLIND, AB.target), (AlertKind.NOT_RUNNING, str(AB))
    ]  # fmt: skip
    assert found | {fact.kind for fact in facts} == set(AlertKind)


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ({"lag_seconds": None}, {"rpo"}),
        ({"quarantined": None, "lost": None}, {"quarantine", "records-lost"}),
        ({"state": FlowState.STALLED}, {"standing-still", "audit-late", "group-not-synced"}),
    ],
)
def test_what_nobody_knows_is_not_over(values: dict[str, object], kinds: set[str]) -> None:
    """A flow that stalls knows no lag, and has not caught up with that."""
    _, unknown = facts_of(one_flow(**values).board, AlertSettings("http://x"))
    assert unknown == {(AlertKind(kind), str(AB)) for kind in kinds}


def test_whether_copies_differ_is_not_known_before_an_audit_has_said_it() -> None:
    settings, kind = AlertSettings("http://x"), (AlertKind.COPIES_DIFFER, str(AB))
    assert facts_of(one_flow(is_audited=True).board, settings)[1] == {kind}
    assert facts_of(one_flow(is_audited=True, audited_at=NOW, differing=0).board, settings)[1] == set()


@pytest.mark.parametrize(("goal", "told"), [(None, False), (400, False), (100, True)])
def test_a_flow_has_a_goal_of_its_own(goal: int | None, told: bool) -> None:
    facts, _ = facts_of(one_flow(lag_seconds=200.0, rpo_goal=goal).board, AlertSettings("http://x"))
    assert [fact.text for fact in facts if fact.kind is AlertKind.RPO] == [
        "a failover of A->B would lose 200 s of data; the goal is 100 s"
    ] * told


@pytest.mark.parametrize(("took", "told"), [(None, False), (Recovery(60.0, 60), False), (Recovery(61.0, 60), True)])
def test_a_failover_that_took_too_long_is_told_of(took: Recovery | None, told: bool) -> None:
    facts, _ = facts_of(one_flow().board, AlertSettings("http://x"), {AB: took}.get)
    text = "the last failover of A->B took 61 s; the goal is 60 s"
    assert [(fact.kind, fact.text) for fact in facts] == [(AlertKind.RTO, text)] * told


def test_of_a_driver_that_is_silent_its_flow_is_told_of() -> None:
    (fact, *_), unknown = facts_of(three_flows().board, AlertSettings("http://x"))
    assert (fact.kind, fact.subject, fact.text) == (AlertKind.STANDING_STILL, "B->A", fact.text)
    assert {one for one in unknown if isinstance(one, str)} == {"C->B"}


def test_who_listens_is_told_once_and_when_it_is_over(receiver: Receiver) -> None:
    filled = one_flow(lag_seconds=400.0)
    webhook = Webhook(filled.board, AlertSettings(receiver.address, after=60), "http://service")
    for second in (0, 60, 80):
        webhook.look(lambda second=second: NOW / 1000 + second)  # type: ignore[misc]
    assert [names(document) for document in receiver.told] == [{("rpo", "firing")}]
    later(filled, 30, lag_seconds=0.0)
    webhook.look(lambda: NOW / 1000 + 90)
    webhook.look(lambda: NOW / 1000 + 95)
    assert [names(document) for document in receiver.told[1:]] == [{("rpo", "resolved")}]


@pytest.mark.parametrize("code", [500, 302])
def test_who_could_not_be_told_is_told_later_and_the_log_names_no_secret(
    receiver: Receiver, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    webhook = Webhook(one_flow(lag_seconds=400.0).board, AlertSettings(receiver.address, after=0), "http://service")
    receiver.code = code
    for second in (0, 5):
        webhook.look(lambda second=second: NOW / 1000 + second)  # type: ignore[misc]
    (record,) = caplog.records
    assert f"answers {code}" in record.getMessage()
    assert "secret" not in caplog.text
    receiver.code = 200
    webhook.look(lambda: NOW / 1000 + 10)
    assert [names(document) for document in receiver.told] == [{("rpo", "firing")}]


def test_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    webhook = Webhook(one_flow(lag_seconds=400.0).board, AlertSettings("http://127.0.0.1:1/secret", after=0), "")
    webhook.look(lambda: 1.0)
    assert "http://127.0.0.1" in caplog.text
    assert "secret" not in caplog.text


def test_it_runs_by_itself_and_stops(receiver: Receiver) -> None:
    board = one_flow(lag_seconds=400.0).board
    webhook = Webhook(board, AlertSettings(receiver.address, after=0), "http://service", look_seconds=0.01)
    webhook.start()
    await_until(lambda: receiver.told, 20, "a message")
    webhook.stop()
    assert len(receiver.told) == 1
