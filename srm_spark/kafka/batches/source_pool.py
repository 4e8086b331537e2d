"""Connections to sources that no task of this process uses now."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

from srm_spark.errors import ProtocolUnavailable
from srm_spark.kafka.batches.brokers import Brokers
from srm_spark.kafka.producers import options_key

log = logging.getLogger(__name__)

_UNREACHABLE_SECONDS = 60.0
"""So long a process does without this way where a login turned out not to be made by it."""

_lock = threading.Lock()
_idle: dict[object, list[Brokers]] = {}
_barred: dict[object, float] = {}
"""Until when this way is not tried, by clusters and logins."""


def take_source(options: Mapping[str, Any], alias: str) -> Brokers | None:
    """Connections with these options of a client; None where they cannot be made."""
    key = options_key(options)
    with _lock:
        if _barred.get(key, 0.0) > time.monotonic():
            return None
        if idle := _idle.get(key):
            return idle.pop()
    try:
        return Brokers(options, alias)
    except ProtocolUnavailable as error:
        log.info("%s: for %g s records are read by librdkafka: %s", alias, _UNREACHABLE_SECONDS, error)
        with _lock:
            _barred[key] = time.monotonic() + _UNREACHABLE_SECONDS
        return None


def keep_source(options: Mapping[str, Any], source: Brokers) -> None:
    """Let the next task use them; nothing may be under way."""
    with _lock:
        _idle.setdefault(options_key(options), []).append(source)
