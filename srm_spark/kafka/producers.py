"""The idempotent producers of one executor process, kept from batch to batch: connecting costs more than a batch."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Producer

from srm_spark.core.limits import Limits
from srm_spark.kafka.clients import QUIET, ClientOptions, LastError
from srm_spark.kafka.tokens import with_tokens

_lock = threading.Lock()
_producers: dict[tuple[tuple[str, str], ...], tuple[Producer, LastError]] = {}


_TIMEOUT_SECONDS = 120.0
_NOT_TAKEN = ("delivery.timeout.ms", "transactional.id", "transaction.timeout.ms")
"""Timeouts are ours, and so is the name of a transaction."""
_LONGEST_SECONDS = 600.0
"""MirrorMaker 2 files set the largest number there is; a batch that waits so long would look like a hanging flow."""


def delivery_timeout(properties: Mapping[str, str]) -> float:
    """Seconds without an acknowledgement after which a write fails: the producer's `delivery.timeout.ms`, bounded."""
    configured = properties.get("delivery.timeout.ms")
    return _TIMEOUT_SECONDS if configured is None else min(int(configured) / 1000, _LONGEST_SECONDS)


def record_options(rendered: Mapping[str, str | int | float | bool], timeout: float) -> ClientOptions:
    """Options of the record producer: what the user set, over defaults that were measured (docs/performance.md).

    Fixed, because the promises rest on them: idempotence, all acks, no gap behind a refused record, no topic made by
    asking for it, the record's own timestamp kept.
    """
    return {
        "linger.ms": 10,
        "batch.size": 1_000_000,
        "queue.buffering.max.kbytes": 262_144,
        "queue.buffering.max.messages": 1_000_000,
        # A record's size is checked against the target topic before it is produced; the client must not be stricter.
        "message.max.bytes": 1_000_000_000,
        **{name: value for name, value in rendered.items() if name not in _NOT_TAKEN},
        # A stopped process that goes on later must find its queue expired; the task itself gives up before that.
        "message.timeout.ms": int(timeout * 1500),
        "enable.idempotence": True,
        "enable.gapless.guarantee": True,
        "acks": "all",
        "allow.auto.create.topics": False,
    }


def suited(options: Mapping[str, str | int | float | bool], limits: Limits) -> ClientOptions:
    """Options of a producer whose batches a topic takes, in the topic's codec unless the user has chosen one."""
    chosen: ClientOptions = {**options, "batch.size": min(limits.batch_bytes, int(options["batch.size"]))}
    if limits.codec:
        chosen.setdefault("compression.type", limits.codec)
    return chosen


def codec_of(options: Mapping[str, str | int | float | bool], limits: Limits | None = None) -> str | None:
    """In which codec records are written, to a topic with these limits; None where they are not compressed."""
    codec = str(options.get("compression.type") or (limits.codec if limits else "") or "none")
    return None if codec == "none" else codec


def level_of(options: Mapping[str, Any]) -> int | None:
    """How hard a codec tries, where the user has said so."""
    level = options.get("compression.level")
    return None if level is None else int(level)


def for_trials(options: Mapping[str, str | int | float | bool]) -> ClientOptions:
    """Options of a producer that may be refused a record: each one is a batch of its own, and nothing else fails."""
    return {**options, "enable.gapless.guarantee": False, "batch.num.messages": 1, "linger.ms": 0}


def record_producer(options: Mapping[str, str | int | float | bool], on_error: LastError) -> Producer:
    """The producer for these options; the same one for the whole life of the process unless it broke."""
    key = options_key(options)
    with _lock:
        if key not in _producers:
            # The callback outlives the task that made it, so errors go to whichever task uses the producer now.
            errors = LastError()
            _producers[key] = Producer(with_tokens({**options, "error_cb": errors}), logger=QUIET), errors
        producer, errors = _producers[key]
    on_error.follow(errors)
    return producer


def discard_producer(options: Mapping[str, str | int | float | bool]) -> None:
    """Forget a producer that failed: after a fatal error it never writes again."""
    with _lock:
        cached = _producers.pop(options_key(options), None)
    if cached is not None:
        cached[0].purge(in_queue=True, in_flight=True)


def options_key(options: Mapping[str, str | int | float | bool]) -> tuple[tuple[str, str], ...]:
    """What clients of the same options share."""
    return tuple(sorted((name, str(value)) for name, value in options.items()))
