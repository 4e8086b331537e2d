"""Advertisements in Kafka: what a service says comes back, and what is none of theirs is nobody's address."""

from __future__ import annotations

import json

import pytest

from srm_spark.core.advertised import Address, Advertisement, HeardAdvertisement, decode, encode

SAID = Advertisement("B", Address("https", "srm.b.example", 6671, "/srm/b"), 30.0)
NOW = 1_764_000_000_000


def test_what_is_said_comes_back() -> None:
    assert decode(*encode(SAID)) == SAID
    assert SAID.address.url == "https://srm.b.example:6671/srm/b"
    six = Advertisement("B", Address("http", "fd00::1", 6670), 30.0)
    assert decode(*encode(six)) == six
    assert six.address.url == "http://[fd00::1]:6670"


@pytest.mark.parametrize(
    "other",
    [
        {"v": 2},
        {"protocol": "file"},
        {"host": "a b"},
        {"host": "user@evil"},
        {"host": ""},
        {"host": "fe80::1%eth0"},
        {"host": 7},
        {"port": 0},
        {"port": 65536},
        {"port": "6670"},
        {"port": True},
        {"path": "/a?b"},
        {"path": "/a/"},
        {"path": "/\r\nx"},
        {"path": None},
        {"every": 0},
        {"every": "nan"},
        {"every": 1e9},
    ],
)
def test_what_is_no_address_of_a_service_is_no_advertisement(other: dict[str, object]) -> None:
    _, value = encode(SAID)
    changed = {**json.loads(value), **other}
    host, port, path = changed["host"], changed["port"], changed["path"]
    key = json.dumps(["service", "B", f"{changed['protocol']}://{host}:{port}{path}"], separators=(",", ":"))
    assert decode(key.encode(), json.dumps(changed).encode()) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, None), (b"garbage", b"{}"), (b'["service","B"]', b"{}"), (b"7", b"7"), (b'["service","B","x"]', b"null")],
)
def test_garbage_is_none(key: bytes | None, value: bytes | None) -> None:
    assert decode(key, value) is None


def test_a_key_names_the_address_that_it_is_of() -> None:
    key, _ = encode(SAID)
    _, other = encode(Advertisement("B", Address("https", "elsewhere", 6671), 30.0))
    assert decode(key, other) is None


def test_one_that_is_not_renewed_is_old_and_in_the_end_forgotten() -> None:
    heard = HeardAdvertisement(SAID, NOW)
    assert not heard.is_old(NOW + 90_000)
    assert heard.is_old(NOW + 91_000)
    assert heard.age(NOW + 91_000) == 91.0
    assert not heard.is_forgotten(NOW + 86_400_000)
    assert heard.is_forgotten(NOW + 86_401_000)
    assert heard.age(NOW - 5_000) == 0.0
    unknown = HeardAdvertisement(SAID, None)
    assert (unknown.age(NOW), unknown.is_old(NOW), unknown.is_forgotten(NOW)) == (None, True, True)


@pytest.mark.parametrize(
    ("address", "is_safe"),
    [
        (Address("https", "srm.example", 1), True),
        (Address("http", "srm.example", 1), False),
        (Address("http", "10.0.0.1", 1), False),
        (Address("http", "127.0.0.1", 1), True),
        (Address("http", "::1", 1), True),
        (Address("http", "localhost", 1), True),
        (Address("http", "localhost.evil.example", 1), False),
    ],
)
def test_secrets_go_encrypted_or_nowhere_but_this_machine(address: Address, is_safe: bool) -> None:
    assert address.is_safe_for_secrets is is_safe
