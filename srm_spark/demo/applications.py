"""What goes on while the demo is kept: applications of both clusters that write, and a group that reads on one of them.

They write in waves. Between two of them the source stands still, so that a planned move finds it drained.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from types import TracebackType

from confluent_kafka import Producer

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.cluster import Committed, TopicSpec
from srm_spark.core.model import TopicPartition
from srm_spark.errors import SourceUnavailable, SrmError
from srm_spark.kafka.clients import QUIET, LastError, options
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.tokens import with_tokens

log = logging.getLogger(__name__)

READ, WAITING, RETURNED = "orders", "invoices", "returns"
"""A topic that flows and that the group reads, one that nobody lets flow yet, and the one of the way back."""
GROUP = "billing"
WAVE_SECONDS = 20.0
_TICK_SECONDS = 0.2
_COMMIT_TICKS = 10
_TIMEOUT_SECONDS = 15.0
_JOIN_SECONDS = 2 * _TIMEOUT_SECONDS


class Applications:
    """They run in a thread of their own between enter and exit; a broker that is down only makes them wait."""

    def __init__(self, primary: ClusterSettings, secondary: ClusterSettings) -> None:
        self._clusters = {
            one.alias: ClusterClient(one, SourceUnavailable, timeout=_TIMEOUT_SECONDS, role="applications-admin")
            for one in (primary, secondary)
        }
        self._primary, self._secondary = self._clusters.values()
        self._producers = [(_producer(primary), (READ, WAITING)), (_producer(secondary), (RETURNED,))]
        self._groups = self._primary.groups("READ")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-applications", daemon=True)

    def __enter__(self) -> Applications:
        """Make the topics, let the group have read what is there, begin to write. Raises SourceUnavailable."""
        for cluster, topic in ((self._primary, WAITING), (self._secondary, RETURNED)):
            for name, reason in cluster.create([TopicSpec(topic, 2, 1, {})]).items():
                if reason:
                    raise SourceUnavailable(f"cluster {cluster.alias}: topic {name} cannot be created: {reason}")
        self._commit()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)
        self._groups.close()

    def _run(self) -> None:
        begin, number = time.monotonic(), 0
        while not self._stop.wait(_TICK_SECONDS):
            number += 1
            if (time.monotonic() - begin) % (2 * WAVE_SECONDS) < WAVE_SECONDS:
                self._write(number)
            if number % _COMMIT_TICKS == 0:
                try:
                    self._commit()
                except SrmError as error:
                    log.warning("group %s cannot commit: %s", GROUP, error)

    def _write(self, number: int) -> None:
        for producer, topics in self._producers:
            producer.poll(0)
            for topic in topics:
                value = json.dumps({topic: number, "amount": number % 500}).encode()
                try:
                    producer.produce(topic, value, f"customer-{number % 1000}".encode())
                except BufferError:  # the broker is away since long
                    log.warning("a record of %s is not written", topic)

    def _commit(self) -> None:
        """The group has read everything: a consumer without a member, as applications with places of their own are."""
        partitions = [TopicPartition(READ, number) for number in range(self._primary.topics()[READ])]
        ends = self._primary.end_offsets(partitions)
        refused = self._groups.commit(GROUP, {place: Committed(end) for place, end in ends.items()})
        for place, failure in refused.items():
            if failure is not None:
                log.warning("group %s cannot commit %s: %s", GROUP, place, failure)


def _producer(cluster: ClusterSettings) -> Producer:
    fixed = {**options(cluster, {}, "applications"), "linger.ms": 20, "error_cb": LastError()}
    return Producer(with_tokens(fixed), logger=QUIET)
