"""What of a client's options counts where batches are moved without librdkafka, and how far (`config/overruled.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from srm_spark.config.overruled import BATCH_LIMITS, SHORTEST_REQUEST_MS


@dataclass(frozen=True)
class FetchBounds:
    """Of the consumer."""

    answer_bytes: int = 16_777_216
    """Of one answer."""
    partition_bytes: int = 2_097_152
    """Of them from one partition; a batch that is larger comes all the same."""


@dataclass(frozen=True)
class WriteBounds:
    """Of the producer."""

    request_bytes: int = 4_194_304
    """Of one request; a batch that is larger goes alone."""
    requests: int = 5
    """On their way on one connection. More, and a broker may not know a batch again that comes twice."""
    waiting_bytes: int = 33_554_432
    """Of one task, not acknowledged yet."""
    answer_seconds: float = 30.0
    """A request without an answer for so long is sent again, to whoever leads the partition by then."""


USUAL_FETCH, USUAL_WRITE = FetchBounds(), WriteBounds()
"""Where nothing is said."""


def fetch_bounds(options: Mapping[str, Any]) -> FetchBounds:
    """By a consumer's options, as librdkafka calls them."""
    return FetchBounds(
        _most(options, "fetch.max.bytes", "fetch.max.bytes", FetchBounds.answer_bytes),
        _most(options, "max.partition.fetch.bytes", "max.partition.fetch.bytes", FetchBounds.partition_bytes),
    )


def write_bounds(options: Mapping[str, Any]) -> WriteBounds:
    """By a producer's options, as librdkafka calls them."""
    flying = "max.in.flight.requests.per.connection"
    most_kbytes = BATCH_LIMITS["buffer.memory"] // 1024
    kbytes = min(most_kbytes, int(options.get("queue.buffering.max.kbytes", most_kbytes)))
    milliseconds = int(options.get("socket.timeout.ms", WriteBounds.answer_seconds * 1000))
    return WriteBounds(
        _most(options, "max.request.size", "message.max.bytes", WriteBounds.request_bytes),
        _most(options, flying, flying, WriteBounds.requests),
        max(1, kbytes) * 1024,
        max(SHORTEST_REQUEST_MS, milliseconds) / 1000,
    )


def _most(options: Mapping[str, Any], name: str, option: str, default: int) -> int:
    return max(1, min(BATCH_LIMITS[name], int(options.get(option, default))))
