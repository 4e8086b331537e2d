"""What a consumer has fetched, taken out of librdkafka's queue: as runs of one partition, and what it says beside them.

`Fetched` does so by compiled loops, which lay records out as Arrow does: no Python object per record. `Consumed` does
the same by confluent-kafka's calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message

from srm_spark.core.model import TopicPartition
from srm_spark.core.rows import Run
from srm_spark.kafka.clients import kafka_partition
from srm_spark.kafka.librdkafka import ERROR_CALLBACK, client_of, library
from srm_spark.kafka.records import record_of

_LOOPS = "srm_spark.kafka.fetch_loop"
"""Imported when it is needed, for it needs numba."""
_AT_ONCE = 20_000
"""Records of one look into the queue; its bytes are bounded by what the consumer fetches ahead."""
_TOPIC, _PARTITION, _VALUE, _KEY, _OFFSET, _WORDS = 1, 2, 3, 5, 7, 8
"""Words of a `rd_kafka_message_t`; a field's length is behind its address."""
_HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
_Words = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Event:
    """An error of a partition, or that its end was reached, as a consumer says it among the records."""

    partition: TopicPartition
    error: KafkaError
    offset: int


class Fetched:
    """The queue of one consumer, which must have neither a callback nor a logger: their calls lie among the records.

    For errors it gets a callback that may be called from anywhere.
    """

    def __init__(self, consumer: Consumer, on_error: Callable[[KafkaError], None]) -> None:
        self._consumer = consumer
        self._library = library()
        client = client_of(consumer)
        self._on_error = ERROR_CALLBACK(lambda _, code, text, __: on_error(KafkaError(code, text.decode())))
        self._library.rd_kafka_conf_set_error_cb(self._library.rd_kafka_conf(client), self._on_error)
        self._queue = self._library.rd_kafka_queue_get_consumer(client)
        self._records = np.zeros(_AT_ONCE, np.int64)
        self._words = np.zeros((_AT_ONCE + 1, _WORDS), np.int64)  # the last row is scratch
        self._timestamps = np.zeros(_AT_ONCE, np.int64)
        self._headers = np.zeros(_AT_ONCE, np.int64)
        self._loops = import_module(_LOOPS)

    def close(self) -> None:
        """Let go of the queue and the consumer."""
        self._library.rd_kafka_queue_destroy(self._queue)
        self._consumer.close()

    def assign(self, starts: Mapping[TopicPartition, int]) -> None:
        """Fetch these partitions from these offsets on."""
        self._consumer.assign([kafka_partition(partition, start) for partition, start in starts.items()])

    def take(self, seconds: float) -> list[Run | Event]:
        """What is there, once something is; nothing after `seconds`."""
        count = self._loops.take(
            self._queue, int(seconds * 1000), self._records, self._words, self._timestamps, self._headers
        )
        try:
            return [self._piece(start, end) for start, end in pairwise(self._borders(count))]
        finally:
            self._loops.give_back(self._records[:count])

    def _borders(self, count: int) -> list[int]:
        """Where another partition begins, and both sides of an event."""
        if not count:
            return []
        words = self._words[:count]
        changes = np.diff(words[:, _TOPIC]) != 0
        changes |= np.diff(words[:, _PARTITION].astype(np.int32)) != 0
        is_event = words[:, 0].astype(np.int32) != 0
        changes |= is_event[1:] | is_event[:-1]
        return [0, *(np.flatnonzero(changes) + 1).tolist(), count]

    def _piece(self, start: int, end: int) -> Run | Event:
        words = self._words[start]
        name = self._library.rd_kafka_topic_name(int(words[_TOPIC])) if words[_TOPIC] else b""
        partition = TopicPartition(name.decode(), int(words[_PARTITION].astype(np.int32)))
        if code := int(words[0].astype(np.int32)):
            return Event(partition, KafkaError(code), int(words[_OFFSET]))
        return Run(
            partition,
            self._words[start:end, _OFFSET].copy(),
            self._timestamps[start:end].copy(),
            self._column(self._words, _KEY, start, end, pa.binary()),
            self._column(self._words, _VALUE, start, end, pa.binary()),
            self._header_lists(start, end),
        )

    def _header_lists(self, start: int, end: int) -> pa.Array:
        begins = _begins(self._headers[start:end])
        count = int(begins[-1])
        if not count:
            return pa.nulls(end - start, _HEADERS)
        fields = np.zeros((count + 1, 4), np.int64)  # the last row is scratch
        self._loops.measure_headers(self._records[start:end], fields)
        names, values = self._column(fields, 0, 0, count, pa.binary()), self._column(fields, 2, 0, count, pa.binary())
        return pa.ListArray.from_arrays(pa.array(begins), pa.StructArray.from_arrays([names, values], ["key", "value"]))

    def _column(self, words: _Words, column: int, start: int, end: int, kind: pa.DataType) -> pa.Array:
        """A field of the rows `start` to before `end`: its address is in `column`, its length behind it."""
        begins = _begins(words[start:end, column + 1])
        content = np.empty(int(begins[-1]), np.uint8)
        self._loops.copy_field(words, column, begins, start, content)
        is_there = words[start:end, column] != 0
        nulls = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
        return pa.Array.from_buffers(kind, end - start, [nulls, pa.py_buffer(begins), pa.py_buffer(content)])


class Consumed:
    """The same for a process without compiled loops: a call per record and field."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def close(self) -> None:
        """Let go of the consumer."""
        self._consumer.close()

    def assign(self, starts: Mapping[TopicPartition, int]) -> None:
        """Fetch these partitions from these offsets on."""
        self._consumer.assign([kafka_partition(partition, start) for partition, start in starts.items()])

    def take(self, seconds: float) -> list[Run | Event]:
        """What is there, once something is; nothing after `seconds`."""
        messages = self._consumer.consume(1, seconds)
        return list(_pieces(messages + self._consumer.consume(_AT_ONCE - 1, 0))) if messages else []


def _pieces(messages: list[Message]) -> Iterator[Run | Event]:
    for (topic, number, is_event), several in groupby(messages, lambda m: (m.topic(), m.partition(), bool(m.error()))):
        partition = TopicPartition(topic or "", -1 if number is None else number)
        if not is_event:
            yield Run.of(partition, [record_of(message) for message in several])
            continue
        for message in several:
            if (error := message.error()) is not None:
                yield Event(partition, error, message.offset() or 0)


def _begins(lengths: _Words) -> npt.NDArray[np.int32]:
    """Where each field begins behind the ones before it, and where the last one ends."""
    begins = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=begins[1:])
    return begins
