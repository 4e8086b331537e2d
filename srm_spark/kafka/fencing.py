"""Lets the newest generation of a flow write in transactions, and stops the writers of older ones (KIP-98, KIP-618).

A slot is one Spark task of a batch; it writes under a transactional id of its own, `srm-A->B-<slot>`, and the driver
under `srm-A->B-driver`. A fencing token is the right of one generation of the flow to do so:

```
new generation  the lease's owner notes its token in the log of leases, then initialises every id
any writer      initialises its id, then looks at the token: one that is not the newest gives up
```

Whoever initialised before the new generation did is fenced by it, and whoever does so later sees the new token: there
is no moment at which an old writer gets through.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from confluent_kafka import KafkaException, Producer

from srm_spark.errors import LeaseLost, TargetUnavailable
from srm_spark.kafka.clients import QUIET, ClientOptions, LastError
from srm_spark.kafka.failures import named, remedy
from srm_spark.kafka.lease_log import LeaseLog
from srm_spark.kafka.tokens import with_tokens

DRIVER_SLOT = "driver"
RECORDS_SLOT = "records"
"""Under whose producer id the default mode writes records (`kafka/batches/fence.py`)."""
_INIT_AT_ONCE = 8
_LONGEST_MS = 900_000
"""What brokers allow unless they are told otherwise (`transaction.max.timeout.ms`)."""


class TokenNote(NamedTuple):
    """A fencing token as it is written down, as the note of a lease."""

    token: str
    slots: int
    """How many slots that generation had."""

    def encode(self) -> str:
        """As a note."""
        # What older versions call a token; a driver of one reads it during an upgrade.
        return json.dumps({"term": self.token, "slots": self.slots})

    @classmethod
    def decode(cls, note: str | None) -> TokenNote | None:
        """None where there is none, or it is somebody else's."""
        try:
            document = json.loads(note or "null")
            return cls(str(document["term"]), int(document["slots"]))
        except (ValueError, TypeError, KeyError):
            return None


@dataclass(frozen=True)
class FencingToken:
    """The right of one generation to write its flow; travels to the executors."""

    group: str
    """What the lease is called, `srm-A->B`; the transactional ids begin with it."""
    topic: str
    """That of the leases."""
    note: TokenNote
    options: Mapping[str, str | int | float | bool] = field(repr=False)
    """librdkafka options of clients of the target."""
    timeout: float
    """Seconds for a call."""

    def transactional_id(self, slot: int | str) -> str:
        """Of one slot."""
        return f"{self.group}-{slot}"


def newest_token(fencing: FencingToken) -> TokenNote | None:
    """What the log says now. Raises TargetUnavailable where it cannot be read."""
    log = LeaseLog(fencing.options, fencing.topic, fencing.group)
    try:
        return TokenNote.decode(log.caught_up(fencing.timeout).note)
    finally:
        log.close()


def fence(fencing: FencingToken, slots: int) -> None:
    """End whatever older writers of `slots` slots, and an older driver, have begun."""
    names: list[int | str] = [*range(slots), DRIVER_SLOT]
    with ThreadPoolExecutor(_INIT_AT_ONCE) as pool:
        for _ in pool.map(lambda slot: initialised(fencing, slot, {}, LastError()), names):
            pass


def open_producer(
    fencing: FencingToken, slot: int | str, options: Mapping[str, str | int | float | bool], on_error: LastError
) -> Producer:
    """A producer that may write with this token. Raises LeaseLost where there is a newer one."""
    producer = initialised(fencing, slot, options, on_error)
    require_newest(fencing, slot)
    return producer


def require_newest(fencing: FencingToken, slot: int | str) -> None:
    """Raises LeaseLost where there is a newer token, TargetUnavailable where nobody says so."""
    name = fencing.transactional_id(slot)
    newest = newest_token(fencing)
    if newest is None or newest.token != fencing.note.token:
        raise LeaseLost(f"{name}: a newer generation of the flow has begun; this one gives up")


def initialised(
    fencing: FencingToken, slot: int | str, options: Mapping[str, str | int | float | bool], on_error: LastError
) -> Producer:
    """A producer of that slot, which nobody else is from then on. Raises TargetUnavailable."""
    name = fencing.transactional_id(slot)
    own = transactional(name, {**fencing.options, **options})
    producer = Producer(with_tokens({**own, "error_cb": on_error}), logger=QUIET)
    try:
        persist(lambda: producer.init_transactions(fencing.timeout), fencing.timeout)
    except KafkaException as error:
        hint = remedy(
            error.args[0], f"WRITE on transactional id {name}", "check the transaction coordinator of the target"
        )
        raise TargetUnavailable(
            f"{name}: cannot begin to write in transactions: {named(error.args[0])}; last seen: {on_error}; {hint}"
        ) from error
    return producer


def transactional(name: str, options: Mapping[str, str | int | float | bool]) -> ClientOptions:
    """Options of the producer of one transactional id."""
    own: ClientOptions = {
        "partitioner": "murmur2_random",  # progress lies where Kafka Connect would put it
        "allow.auto.create.topics": False,
        **options,
        "transactional.id": name,
    }
    own.pop("enable.gapless.guarantee", None)  # a gap aborts the transaction
    own["transaction.timeout.ms"] = transaction_ms(own)
    return own


def transaction_ms(options: Mapping[str, Any]) -> int:
    """After how many milliseconds a coordinator aborts a transaction of a producer with these options."""
    return min(_LONGEST_MS, int(options.get("message.timeout.ms", 120_000)) + 60_000)


def persist(call: Callable[[], object], seconds: float) -> None:
    """Repeat a call of the transaction API while its error says so (KIP-360)."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
