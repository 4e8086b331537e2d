"""Load for the soak: one writer that never stops, and the comparison of what it wrote with what arrived."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from itertools import pairwise

from confluent_kafka import KafkaError, Message

from tests.kafka_io import Kafka, Log

_PER_SECOND = 300
"""Of one topic."""


class Load:
    """Writes numbered records in a thread; outages of the cluster only delay it."""

    def __init__(
        self, cluster: Kafka, topic: str, partitions: int, *, per_second: int = _PER_SECOND, size: int = 0
    ) -> None:
        """Values have at least `size` bytes."""
        self._per_second, self._size = per_second, size
        self.refused: list[KafkaError] = []
        self._producer = cluster.producer(enable_idempotence=True, message_timeout_ms=600_000, linger_ms=5)
        self._topic = topic
        self._partitions = partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Write no more, and wait until each record is acknowledged."""
        self._stop.set()
        self._thread.join(60)
        assert self._producer.flush(120) == 0
        assert not self.refused, self.refused

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(0.05):
            for _ in range(self._per_second // 20):
                key, value = b"k%d" % (number % 50), None if number % 17 == 0 else (b"v%d" % number).ljust(self._size)
                headers: list[tuple[str, str | bytes | None]] = [("number", b"%d" % number)]
                partition = number % self._partitions
                self._producer.produce(self._topic, value, key, partition, self._acknowledged, headers=headers)
                number += 1
            self._producer.poll(0)

    def _acknowledged(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.refused.append(error)


@dataclass
class Verdict:
    """What the two sides say when all is done."""

    records: int = 0
    lost: int = 0
    told: int = 0
    """Lost, too, but the flow said so, and why."""
    falsely_told: int = 0
    """Called lost by the flow, and there."""
    doubled: int = 0
    reordered: int = 0
    changed: int = 0
    """Of those that are there, with another key, value, header or timestamp."""
    wrong_in_map: int = 0
    """Records whose place on the target is not what the offset map says."""
    notes: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Nothing at all is wrong."""
        wrong = (self.lost, self.falsely_told, self.doubled, self.reordered, self.changed, self.wrong_in_map)
        return not any(wrong)

    def add(self, other: Verdict) -> None:
        """Take in what is wrong elsewhere."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def __str__(self) -> str:
        text = (
            f"{self.records} records: {self.lost} lost, {self.told} lost and told, {self.falsely_told} told and there, "
            f"{self.doubled} doubled, {self.reordered} reordered, "
            f"{self.changed} changed, {self.wrong_in_map} wrong in the map"
        )
        return "\n".join((text, *self.notes))


Pairs = dict[int, dict[int, int]]
"""Partition → source offset → target offset, as the offset map says."""
OffsetSets = Mapping[int, Set[int]]
"""Partition → source offsets."""


def compare(source: Log, remote: Log, mapped: Pairs | None = None, told: OffsetSets | None = None) -> Verdict:
    """Count what is wrong, record by record; without `mapped` the offset map is not judged.

    Records at `told` offsets were called lost by the flow.
    """
    verdict = Verdict()
    true = true_pairs(source, remote)
    for partition, written in source.items():
        found = remote[partition]
        place = {_number(stored.record.headers): stored for stored in written}
        numbers = [_number(stored.record.headers) for stored in found]
        seen = Counter(numbers)
        verdict.records += len(written)
        gone, said = place.keys() - seen.keys(), (told or {}).get(partition, frozenset())
        missing = {number for number in gone if place[number].offset not in said}
        verdict.lost += len(missing)
        verdict.told += len(gone) - len(missing)
        verdict.falsely_told += len(said & {stored.offset for number, stored in place.items() if number in seen})
        verdict.doubled += sum(count - 1 for count in seen.values())
        order = [place[number].offset for number in numbers if number in place]
        verdict.reordered += sum(second < first for first, second in pairwise(order))
        verdict.changed += sum(place[_number(s.record.headers)].record != s.record for s in found)
        pairs, says = true[partition], true[partition] if mapped is None else mapped.get(partition, {})
        wrong = {up for up in pairs.keys() | says.keys() if pairs.get(up) != says.get(up)} - said
        verdict.wrong_in_map += len(wrong)
        if missing or wrong:
            verdict.notes.append(f"partition {partition}: missing {sorted(missing)[:5]}, map at {sorted(wrong)[:5]}")
    return verdict


def true_pairs(source: Log, remote: Log) -> Pairs:
    """Where each record really lies."""
    pairs: Pairs = {}
    for partition, written in source.items():
        place = {_number(stored.record.headers): stored.offset for stored in written}
        pairs[partition] = {place[_number(s.record.headers)]: s.offset for s in remote[partition]}
    return pairs


def await_all(source: Kafka, topic: str, target: Kafka, remote: str, seconds: float) -> None:
    """Wait until as many records are committed on the target as the source has; what they are is compared later."""
    wanted = sum(map(len, source.read(topic).values()))
    deadline = time.monotonic() + seconds
    found = -1
    while found < wanted and time.monotonic() < deadline:
        time.sleep(1)  # each look reads the whole topic
        found = sum(map(len, target.read(remote, committed=True).values()))


def _number(headers: tuple[tuple[str, bytes | None], ...]) -> int:
    return int(dict(headers)["number"] or b"-1")
