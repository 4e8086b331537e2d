"""Streams of events, as a browser has them: what is told, what is told again, how many there may be, and their end."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
import uvicorn

from srm_spark.api import feed
from srm_spark.api.app import make_app
from srm_spark.api.feed import Feed, Timing
from srm_spark.api.server import Server
from srm_spark.api.users import Users
from tests.awaiting import await_until
from tests.unit.api.boards import AB, BA, NOW, Filled, three_flows
from tests.unit.api.logins import login, users_of

QUICK = Timing(look=0.02, beat=0.1)
ALL, ONE = "/v3/events/stream", "/v3/flows/A/B/events/stream"


@dataclass
class Live:
    """A service on this machine, and its feed."""

    port: int
    feed: Feed
    server: Server

    @contextmanager
    def ask(self, path: str, last: str | None = None, **headers: str) -> Iterator[http.client.HTTPResponse]:
        sent = {**headers, **({} if last is None else {"last-event-id": last})}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request("GET", path, headers=sent)
            yield connection.getresponse()


@contextmanager
def serving(filled: Filled, timing: Timing = QUICK, users: Users | None = None) -> Iterator[Live]:
    app = make_app(filled.board, users, only_local=users is None)
    app.state.feed = Feed(filled.board, timing)
    server = Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off", http="h11"), app.state.feed)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    await_until(lambda: server.started, 20, "the server listens")
    try:
        yield Live(server.servers[0].sockets[0].getsockname()[1], app.state.feed, server)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def filled() -> Filled:
    return three_flows()


@pytest.fixture
def live(filled: Filled) -> Iterator[Live]:
    with serving(filled) as found:
        yield found


def block(answer: http.client.HTTPResponse) -> Mapping[str, str]:
    """The fields of what comes next; a comment has the empty name."""
    found = {}
    while line := answer.readline().decode().rstrip("\n"):
        name, _, value = line.partition(":")
        found[name] = value.removeprefix(" ")
    return found


def event(answer: http.client.HTTPResponse) -> tuple[str, str, Any]:
    """Id, kind and data of the next event."""
    found = block(answer)
    while "event" not in found:
        assert found.keys() <= {"", "retry"}
        assert found
        found = block(answer)
    return found["id"], found["event"], json.loads(found["data"])


def events(answer: http.client.HTTPResponse, count: int) -> list[tuple[str, str, Any]]:
    return [event(answer) for _ in range(count)]


def test_all_flows_are_told_and_then_what_changes(live: Live, filled: Filled) -> None:
    with live.ask(ALL) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        assert block(answer) == {"retry": "3000"}
        first = events(answer, 3)
        assert [(kind, data["flow"], data["status"]) for _, kind, data in first] == [
            ("flow", "A->B", "ACTIVE"),
            ("flow", "B->A", "WARNING"),
            ("flow", "C->B", "INACTIVE"),
        ]
        assert first[2][2]["lag"] == {"records": None, "seconds": None}
        assert first[2][2]["unknown_since"] == "2025-11-24T15:49:45+00:00"
        filled.report(AB, NOW + 3000, lag_records=9)
        last, kind, data = event(answer)
        assert (kind, data["flow"], data["lag"]["records"]) == ("flow", "A->B", 9)
        assert last != first[2][0]
        filled.clock.pass_by(600)
        assert {data["status"] for _, _, data in events(answer, 2)} == {"INACTIVE"}  # silent, which only time tells


def test_who_comes_back_is_told_what_he_missed(live: Live, filled: Filled) -> None:
    with live.ask(ALL) as answer:
        last = events(answer, 3)[-1][0]
    filled.report(BA, NOW + 3000)
    with live.ask(ALL, last) as answer:
        assert [data["flow"] for _, _, data in events(answer, 1)] == ["B->A"]
        filled.report(AB, NOW + 3000)
        newest, _, data = event(answer)
        assert data["flow"] == "A->B"
    with live.ask(ALL, newest) as answer:
        block(answer)
        assert block(answer).keys() == {""}  # nothing was missed


@pytest.mark.parametrize("last", ["", "x", "00000000-1", "{}-999999", "{}-²", "{}-" + "9" * 30])
def test_an_id_that_is_not_known_begins_anew(live: Live, last: str) -> None:
    with live.ask(ALL) as answer:
        process = event(answer)[0].partition("-")[0]
    with live.ask(ALL, last.format(process).encode().decode("latin-1")) as answer:
        assert [kind for _, kind, _ in events(answer, 4)] == ["reset", "flow", "flow", "flow"]


def test_what_is_no_longer_kept_begins_anew(live: Live, filled: Filled) -> None:
    live.feed.events = deque(maxlen=2)
    with live.ask(ALL) as answer:
        first = events(answer, 3)[-1][0]
        for number in range(4):
            filled.report(AB, NOW + 3000 + number)
            event(answer)
    with live.ask(ALL, first) as answer:
        assert {data["flow"] for _, _, data in events(answer, 3)} == {"A->B", "B->A", "C->B"}


def test_a_stream_of_one_flow_tells_of_that_alone(live: Live, filled: Filled) -> None:
    with live.ask(ONE) as answer:
        assert event(answer)[2]["flow"] == "A->B"
        filled.report(BA, NOW + 3000)
        filled.report(AB, NOW + 3000)
        assert event(answer)[2]["flow"] == "A->B"
        assert block(answer).keys() == {""}  # and it is not silent
    with live.ask("/v3/flows/A/X/events/stream") as answer:
        assert answer.status == 404


def test_there_is_a_place_again_once_somebody_has_left(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MOST_OF_ONE", 2)
    with live.ask(ALL) as one:
        event(one)
        with live.ask(ONE) as two:
            event(two)
            with live.ask(ALL) as refused:
                document = json.loads(refused.read())
                assert (refused.status, document["kind"], refused.headers["retry-after"]) == (503, "busy", "60")
                assert refused.headers["content-type"] == "application/problem+json"
    await_until(lambda: live.feed.streams == 0, 20, "both are gone")
    with live.ask(ALL) as again:
        event(again)


def test_all_streams_end_at_once_with_the_service(filled: Filled) -> None:
    with serving(filled, replace(QUICK, look=60.0)) as live, live.ask(ALL) as answer:
        events(answer, 3)
        began = time.monotonic()
        live.server.should_exit = True
        assert answer.read() == b""
        assert time.monotonic() - began < 5


def test_it_ends_so_that_logins_are_looked_at_again(filled: Filled) -> None:
    with serving(filled, replace(QUICK, life=0.1)) as live, live.ask(ALL) as answer:
        assert answer.read().count(b"event: flow") == 3


def test_it_takes_a_login_and_tells_of_what_may_be_seen(filled: Filled) -> None:
    with serving(filled, users=users_of(ann="")) as live:
        with live.ask(ALL) as answer:
            assert answer.status == 401
        with live.ask(ALL, **login("ann:ann")) as answer:
            assert len(events(answer, 3)) == 3
