"""Brokers that accept connections and say nothing: each try asks another one, and the error says what was wanted."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

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
