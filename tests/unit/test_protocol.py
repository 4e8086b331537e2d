"""How often brokers are asked what they do not answer."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka.errors import IncompatibleBrokerVersion, KafkaConnectionError, KafkaError

from srm_spark.config.settings import ClusterSettings
from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.protocol import Protocol


class Refused(Protocol):
    """Each call fails, at once."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(ClusterSettings("b", "host:1"), {}, "test", 0.5)
        self._error = error
        self.tries = 0

    def _connect(self) -> None:
        self.tries += 1
        self._manager = SimpleNamespace(run=self._fail, close=lambda: None)
        self._net = SimpleNamespace(stop=lambda: None, close=lambda: None)

    def _fail(self, _: object) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "tries"),
    [(IncompatibleBrokerVersion("not known"), range(1, 2)), (KafkaConnectionError("closed"), range(2, 5))],
)
def test_a_request_that_a_broker_does_not_know_is_not_tried_again_and_others_with_a_pause(
    error: KafkaError, tries: range
) -> None:
    protocol = Refused(error)
    with pytest.raises(ProtocolUnavailable, match=f"cannot ask for quotas: {type(error).__name__}: "):
        protocol.smallest_produce_quota()
    assert protocol.tries in tries
