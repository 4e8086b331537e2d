"""Each try asks another broker, and the error says what was wanted; what is certain is not tried again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import IncompatibleBrokerVersion, KafkaConnectionError, KafkaError

from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.login import login_options
from srm_spark.kafka.somebody import Somebody

TRY_MS = 150


@pytest.fixture
def hanging() -> Iterator[list[socket.socket]]:
    with ExitStack() as opened:
        yield [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(4)]


def times_asked(broker: socket.socket) -> int:
    broker.setblocking(False)
    count = 0
    while True:
        try:
            broker.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def somebody_of(brokers: list[socket.socket]) -> Somebody:
    addresses = ",".join(f"127.0.0.1:{broker.getsockname()[1]}" for broker in brokers)
    return Somebody(login_options({"bootstrap.servers": addresses}, "test", "cluster b"), "cluster b", TRY_MS)


async def never() -> None:
    raise AssertionError


def test_one_that_hangs_keeps_nobody_from_connecting_by_another_address(hanging: list[socket.socket]) -> None:
    with pytest.raises(ProtocolUnavailable, match="cluster b: cannot count sheep: KafkaTimeoutError"):
        somebody_of(hanging).run(never, "count sheep")
    asked = [times_asked(broker) for broker in hanging]
    assert min(asked) >= 1
    assert sum(asked) == len(hanging) + 1, "and then any of them, for longer"


def test_addresses_have_their_turn_and_who_has_answered_goes_first() -> None:
    tried = list[tuple[int, list[str], int]]()
    awake = {"c:1"}

    def connected(options: Mapping[str, Any], within_ms: int) -> tuple[Any, Any]:
        tried.append((len(tried), options["bootstrap_servers"], within_ms))
        if not awake.intersection(options["bootstrap_servers"]):
            raise KafkaConnectionError("it hangs")
        return SimpleNamespace(close=lambda: None), SimpleNamespace(run=lambda _: "answer", close=lambda: None)

    somebody = Somebody({"bootstrap_servers": ["a:1", "b:1", "c:1"]}, "b", 7000, connected)
    assert [somebody.run(never, "ask") for _ in range(2)] == ["answer"] * 2
    assert len(tried) <= 3
    assert tried[-1][1:] == (["c:1"], 1000)
    somebody.close()
    somebody.run(never, "ask")
    assert tried[-1][1:] == (["c:1"], 1000)
    assert len(tried) <= 4
    awake.clear()
    somebody.close()
    before = len(tried)
    with pytest.raises(ProtocolUnavailable):
        somebody.run(never, "ask")
    assert sorted(one for _, (one,), _ in tried[before:-1]) == ["a:1", "b:1", "c:1"]
    assert (sorted(tried[-1][1]), tried[-1][2]) == (["a:1", "b:1", "c:1"], 7000)


def test_what_a_function_for_tokens_raises_is_tried_again_and_our_own_errors_are_not() -> None:
    said = list[str]()

    def fail(call: Any) -> str:
        said.append("asked")
        if len(said) == 1:
            raise KeyError("token")
        raise ProtocolUnavailable("for good")

    somebody = Somebody(
        {"bootstrap_servers": ["host:1"]},
        "b",
        connected=lambda *_: (SimpleNamespace(close=lambda: None), SimpleNamespace(run=fail, close=lambda: None)),
    )
    with pytest.raises(ProtocolUnavailable, match=r"^for good$"):
        somebody.run(never, "ask", 30)
    assert len(said) == 2


@pytest.mark.parametrize(
    ("error", "tries"),
    [(IncompatibleBrokerVersion("not known"), range(1, 2)), (KafkaConnectionError("closed"), range(5, 12))],
)
def test_a_request_that_a_broker_does_not_know_is_not_tried_again_and_others_with_a_pause(
    error: KafkaError, tries: range
) -> None:
    tried = list[Any]()

    def fail(_: object) -> None:
        tried.append(None)
        raise error

    def connected(_: Mapping[str, Any], __: int) -> tuple[Any, Any]:
        return SimpleNamespace(close=lambda: None), SimpleNamespace(run=fail, close=lambda: None)

    somebody = Somebody({"bootstrap_servers": ["host:1"]}, "cluster b", connected=connected)

    async def ask() -> None:
        pass

    with pytest.raises(ProtocolUnavailable, match=f"cluster b: cannot ask for quotas: {type(error).__name__}: "):
        somebody.run(ask, "ask for quotas", 0.5)
    assert len(tried) in tries


def test_who_did_not_answer_is_not_asked_again_while_there_are_others() -> None:
    asked = list[int]()
    brokers = [SimpleNamespace(node_id=node) for node in (1, 2)]

    async def send(_: object, node_id: int) -> str:
        asked.append(node_id)
        if node_id == 1:
            raise KafkaConnectionError("it hangs")
        return "answer"

    manager = SimpleNamespace(
        send=send,
        least_loaded_node=lambda: 1,
        cluster=SimpleNamespace(brokers=lambda: brokers),
        run=lambda call: asyncio.run(call()),
        close=lambda: None,
    )
    somebody = Somebody(
        {"bootstrap_servers": ["host:1"]}, "b", connected=lambda *_: (SimpleNamespace(close=lambda: None), manager)
    )
    answers = [somebody.run(lambda: somebody.send("?"), "ask", tries=2) for _ in range(2)]
    assert (answers, asked) == (["answer"] * 2, [1, 2, 2])
    with pytest.raises(ProtocolUnavailable):
        somebody.run(lambda: somebody.send("?", 1), "ask one", tries=2)
    assert asked[3:] == [1, 1], "who is wanted is asked all the same"
