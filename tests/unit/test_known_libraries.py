"""Where librdkafka is read past its calls, and where it must not be."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import KafkaException, Message, Producer

from srm_spark.core.header_names import name_of
from srm_spark.core.rows import Headers
from srm_spark.doctor import machine
from srm_spark.errors import HeaderNameUnfit
from srm_spark.failure import FailureKind
from srm_spark.kafka import librdkafka
from srm_spark.kafka.exact import Exact, produce_call
from srm_spark.kafka.failures import kind_of

ODD: list[Headers] = [[("plain", b"1"), (name_of(name), b"2")] for name in (b"a\0b", b"\xff")]


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The librdkafka that is loaded is none of those that are known, and reading it ends the test."""
    monkeypatch.setattr(librdkafka, "KNOWN_LIBRARIES", frozenset({"2.99.0"}))
    for name in ("library", "read_headers", "make_headers"):
        monkeypatch.setattr(librdkafka, name, lambda *_: pytest.fail("librdkafka was read past its calls"))


class CallsOnly:
    """A producer or a message that has calls and nothing behind them."""

    def __init__(self, headers: Any = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._headers = headers

    def produce(self, *arguments: Any) -> None:
        self.calls.append(arguments)

    def headers(self) -> Any:
        if isinstance(self._headers, Exception):
            raise self._headers
        return self._headers

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 7


def test_the_library_that_is_installed_is_known() -> None:
    assert librdkafka.is_known()
    assert "names of headers" not in machine.check_client().found


@pytest.mark.usefixtures("unknown")
def test_the_doctor_says_what_is_missing_with_an_unknown_library() -> None:
    found = machine.check_client().found
    assert "names of headers that are not UTF-8 are not kept where it moves records: librdkafka is " in found
    assert found.endswith(", and srm-spark was tried with 2.99.0 only")


@pytest.mark.usefixtures("unknown")
def test_headers_are_read_by_the_call_of_an_unknown_library() -> None:
    for said, read in ((None, []), ([("a", None), ("a", b"1")], [("a", None), ("a", b"1")])):
        assert librdkafka.headers_of(cast("Message", CallsOnly(said))) == read
    for error in (SystemError("returned a result with an exception set"), UnicodeDecodeError("utf-8", b"", 0, 1, "")):
        with pytest.raises(HeaderNameUnfit, match=r"t-3 offset 7: .* not UTF-8") as raised:
            librdkafka.headers_of(cast("Message", CallsOnly(error)))
        assert raised.value.kind is FailureKind.HEADER_NAME


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize("odd", ODD)
def test_a_name_that_an_unknown_library_would_change_is_refused(odd: Headers) -> None:
    producer = CallsOnly()
    produce = produce_call(cast("Producer", producer), [odd, None])
    produce("t", b"v", None, 0, None, None, 0, [("plain", b"1")])
    assert [arguments[-1] for arguments in producer.calls] == [[("plain", b"1")]]
    with pytest.raises(KafkaException, match=r"the header name .* would be changed") as raised:
        produce("t", b"v", None, 0, None, None, 0, odd)
    assert kind_of(raised.value.args[0]) is FailureKind.HEADER_NAME
    assert len(producer.calls) == 1


def test_a_known_library_is_called_past_confluent_kafka_for_such_names_only() -> None:
    producer = Producer({"bootstrap.servers": "nowhere:1", "log_level": 0})
    assert produce_call(producer, [[("plain", b"1")], None]) == producer.produce
    assert isinstance(produce_call(producer, ODD).__self__, Exact)  # type: ignore[attr-defined]
