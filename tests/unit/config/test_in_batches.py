"""Client properties where records travel in batches: each of them does something there, or is told not to."""

from __future__ import annotations

import pytest

from srm_spark.config.document import client_names
from srm_spark.config.overruled import (
    BATCH_CONSUMER,
    BATCH_LIMITS,
    BATCH_PRODUCER,
    CONSUMER,
    COUNTED,
    EVERY,
    PRODUCER,
    in_batches,
)
from srm_spark.kafka.batches.bounds import FetchBounds, WriteBounds, fetch_bounds, write_bounds

TABLES = {"consumer": {**EVERY, **CONSUMER, **BATCH_CONSUMER}, "producer": {**EVERY, **PRODUCER, **BATCH_PRODUCER}}


@pytest.mark.parametrize("client", TABLES)
def test_no_property_is_without_effect_in_silence(client: str) -> None:
    for name in client_names(client):
        assert in_batches(client, name), name
        assert (name in COUNTED[client]) != (name in TABLES[client] and TABLES[client][name].most is None), name


def test_bounds_are_what_a_client_has_and_no_more_than_a_task_stands() -> None:
    assert fetch_bounds({}) == FetchBounds(16_777_216, 2_097_152)
    assert fetch_bounds({"fetch.max.bytes": 1_000, "max.partition.fetch.bytes": 10}) == FetchBounds(1_000, 10)
    most = FetchBounds(BATCH_LIMITS["fetch.max.bytes"], BATCH_LIMITS["max.partition.fetch.bytes"])
    assert fetch_bounds({"fetch.max.bytes": 2**30, "max.partition.fetch.bytes": 2**30}) == most


def test_the_bounds_of_a_producer_likewise() -> None:
    asked = {
        "message.max.bytes": 70_000,
        "max.in.flight.requests.per.connection": 1,
        "queue.buffering.max.kbytes": 100,
        "socket.timeout.ms": 5_000,
    }
    assert write_bounds({}) == WriteBounds(4_194_304, 5, 33_554_432, 30.0)
    assert write_bounds(asked) == WriteBounds(70_000, 1, 102_400, 5.0)
    assert write_bounds({**dict.fromkeys(asked, 2**30), "socket.timeout.ms": 10}) == WriteBounds(
        BATCH_LIMITS["max.request.size"], 5, BATCH_LIMITS["buffer.memory"], 1.0
    )
