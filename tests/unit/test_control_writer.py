"""Control records: what the client library makes of an interruption is one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.cluster import ControlRecord
from srm_spark.errors import TargetUnavailable
from srm_spark.kafka import control


class Interrupted:
    """A producer whose flush a signal has ended, as confluent-kafka tells it now and then."""

    def produce(self, *_: Any, **__: Any) -> None:
        """Take a record."""

    def poll(self, _: float) -> int:
        return 0

    def flush(self, _: float) -> int:
        raise SystemError("<method 'flush' of 'cimpl.Producer' objects> returned NULL without setting an exception")


def test_ctrl_c_amid_a_flush_is_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "control_producer", lambda *_: Interrupted())
    writer = control.ControlWriter(ClusterSettings("b", "nowhere:1"), {}, "test", TargetUnavailable, 5.0)
    records = [ControlRecord("t", b"k", b"v")]
    with pytest.raises(KeyboardInterrupt):
        writer.write(records)
    raised: list[BaseException] = []

    def write() -> None:
        try:
            writer.write(records)
        except BaseException as error:
            raised.append(error)

    other = threading.Thread(target=write)  # signals are the main thread's
    other.start()
    other.join(10)
    assert [type(error) for error in raised] == [SystemError]
