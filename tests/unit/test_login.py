"""What connections of the protocol's own are made of, out of the options of the client library."""

from __future__ import annotations

import socket

import pytest
from kafka.net.manager import KafkaConnectionManager

from srm_spark.kafka.login import login_options

WHERE = {"bootstrap.servers": "a:1,b:2"}


@pytest.mark.parametrize(
    ("options", "kind", "size"),
    [
        ({}, socket.SO_SNDBUF, None),
        ({"socket.send.buffer.bytes": "0"}, socket.SO_SNDBUF, None),
        ({"socket.send.buffer.bytes": "123456"}, socket.SO_SNDBUF, 123456),
        ({"socket.receive.buffer.bytes": 654321}, socket.SO_RCVBUF, 654321),
    ],
)
def test_buffers_of_sockets_are_as_large_as_the_user_says(
    options: dict[str, str | int], kind: int, size: int | None
) -> None:
    found = login_options({**WHERE, **options}, "role", "cluster A")
    set_there = {option: value for level, option, value in found["socket_options"] if level == socket.SOL_SOCKET}
    assert set_there.get(kind) == size
    usual = KafkaConnectionManager.DEFAULT_CONFIG["socket_options"]
    assert set(usual) <= set(found["socket_options"])


def test_names_are_looked_up_as_the_user_says() -> None:
    assert login_options(WHERE, "role", "cluster A")["client_dns_lookup"] == "use_all_dns_ips"
    chosen = "resolve_canonical_bootstrap_servers_only"
    assert login_options({**WHERE, "client.dns.lookup": chosen}, "role", "A")["client_dns_lookup"] == chosen
