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


@pytest.mark.parametrize("tries", [4, 8])
def test_each_try_connects_by_another_address(hanging: list[socket.socket], tries: int) -> None:
    addresses = ",".join(f"127.0.0.1:{broker.getsockname()[1]}" for broker in hanging)
    somebody = Somebody(login_options({"bootstrap.servers": addresses}, "test", "cluster b"), "cluster b", TRY_MS)

    async def never() -> None:
        raise AssertionError

    with pytest.raises(ProtocolUnavailable, match="cluster b: cannot count sheep: KafkaTimeoutError"):
        somebody.run(never, "count sheep", tries=tries)
    assert [times_asked(broker) for broker in hanging] == [tries / 4] * 4


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

    def connected(_: Mapping[str, Any]) -> tuple[Any, Any]:
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
        {"bootstrap_servers": ["host:1"]}, "b", connected=lambda _: (SimpleNamespace(close=lambda: None), manager)
    )
    answers = [somebody.run(lambda: somebody.send("?"), "ask", tries=2) for _ in range(2)]
    assert (answers, asked) == (["answer"] * 2, [1, 2, 2])
    with pytest.raises(ProtocolUnavailable):
        somebody.run(lambda: somebody.send("?", 1), "ask one", tries=2)
    assert asked[3:] == [1, 1], "who is wanted is asked all the same"
