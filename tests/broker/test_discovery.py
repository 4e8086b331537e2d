"""Discovery: topics and partitions come and go while the driver runs; no record is lost or there twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from srm_spark.flow.status import FlowState
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_count, await_lag_zero, await_state
from tests.kafka_io import Kafka, Record, numbered, produce, records

PROMISED = 45.0
"""Seconds until a new topic flows at the latest, with other tests beside it: it is looked for every 5 s."""


@contextmanager
def load_on(cluster: Kafka, topic: str, partitions: int) -> Iterator[None]:
    """Some thousand records a second until the block ends."""
    is_over = threading.Event()

    def run() -> None:
        producer = cluster.producer()
        for turn in range(100_000):
            produce(producer, topic, numbered(100, partitions, f"{turn}-"))
            if is_over.wait(0.05):
                break
        assert producer.flush(30) == 0

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_new_topics_and_partitions_flow_beside_one_under_load(pair: Pair) -> None:
    for name, partitions in (("busy", 3), ("grows", 1)):
        pair.source.create(pair.topic(name), partitions)
    driver = pair.replicate({"refresh.topics.interval.seconds": "5"})
    with load_on(pair.source, pair.topic("busy"), 3):
        await_count(pair.target, pair.remote("busy"), 500)
        began = time.monotonic()
        pair.source.create(pair.topic("new"), 2)
        pair.source.write(pair.topic("new"), numbered(10, 2))
        await_count(pair.target, pair.remote("new"), 10)
        assert time.monotonic() - began < PROMISED
        pair.source.grow(pair.topic("grows"), 4)
        pair.source.write(pair.topic("grows"), numbered(40, 4))
        await_count(pair.target, pair.remote("grows"), 40)
    assert pair.target.topics()[pair.remote("grows")] == 4
    for name in ("busy", "new", "grows"):
        assert_copied(pair.source, pair.topic(name), pair.target, pair.remote(name))
    await_lag_zero(driver)
    assert driver.status()[0].topics == 3
    assert driver.status()[0].partitions == 9

    def took() -> float:
        pair.source.write(pair.topic("busy"), numbered(1))  # the others may have been copied before Spark was there
        return driver.status()[0].batch_ms.get("addBatch", 0)

    await_until(took, SOON, "what the newest batch took")


def test_a_deleted_topic_stops_nobody_and_a_new_one_of_its_name_starts_at_its_beginning(pair: Pair) -> None:
    for name in ("gone", "again", "stays"):
        pair.source.create(pair.topic(name))
        pair.source.write(pair.topic(name), numbered(5))
    driver = pair.replicate()
    for name in ("gone", "again", "stays"):
        await_count(pair.target, pair.remote(name), 5)
    pair.source.delete(pair.topic("gone"))
    pair.source.delete(pair.topic("again"))
    pair.source.create(pair.topic("again"))
    pair.source.write(pair.topic("again"), numbered(8, prefix="again"))  # more than before: old offsets exist again
    pair.source.write(pair.topic("stays"), [Record(b"k", b"after")])
    assert_copied(pair.source, pair.topic("stays"), pair.target, pair.remote("stays"))
    await_count(pair.target, pair.remote("again"), 13)
    wanted = numbered(5) + numbered(8, prefix="again")
    found = records(pair.target.read(pair.remote("again")))[0]
    assert [record.value for record in found] == [record.value for record in wanted]
    await_state(driver, pair.flow, FlowState.RUNNING)
    assert pair.target.given(pair.remote("gone")) == 5  # nothing is ever deleted on the target
    assert pair.topic("gone") not in pair.source.topics()  # and reading did not create it again
