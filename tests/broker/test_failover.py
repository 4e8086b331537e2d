"""A group moves to the target when the source dies, and back with what it did there: nothing skipped or read twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from srm_spark.flow.status import FlowState
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Start
from tests.broker.mirror import SOON
from tests.group_io import committed, member, take
from tests.kafka_io import Kafka, Record, numbered, produce

FAST = {
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
}


@pytest.fixture
def dying() -> Iterator[LocalKafka]:
    """A cluster that the test may kill."""
    with LocalKafka("dying") as cluster:
        yield cluster


@pytest.mark.slow
def test_a_group_fails_over_and_back(dying: LocalKafka, secondary: KafkaCluster, start: Start, unique: str) -> None:
    a, b, topic, group = f"a{unique}", f"b{unique}", f"t-{unique}", f"g{unique}"
    here, there, remote = Kafka(dying), Kafka(secondary), f"{a}.{topic}"
    here.create(topic)
    producer = here.producer(transactional_id=f"tx-{unique}")
    producer.init_transactions(30)
    for number in range(4):  # the two sides count differently: markers and an aborted transaction
        producer.begin_transaction()
        produce(producer, topic, numbered(5, 1, f"{number}-"))
        assert producer.flush(30) == 0
        producer.abort_transaction(30) if number == 1 else producer.commit_transaction(30)
    written = [f"{number}-{n}".encode() for number in (0, 2, 3) for n in range(5)]
    keys = {**FAST, "groups": group, "topics": f".*{topic}", f"{a}.consumer.isolation.level": "read_committed"}
    driver = start({a: dying, b: secondary}, [f"{a}->{b}", f"{b}->{a}"], keys)

    reader = member(here, group, topic, isolation_level="read_committed")
    read = take(reader, 7)
    reader.close()
    await_until(lambda: committed(there, group, remote).get((remote, 0), (0, ""))[0] == 7, SOON, "synced to 7")
    dying.kill()

    reader = member(there, group, remote)
    read += take(reader, 6)
    reader.close()
    assert read == written[:13]

    dying.start()
    here.write(topic, [Record(None, b"new")])
    # Five records, a marker, five aborted ones, a marker, five, a marker, three of the last five: 21 offsets.
    await_until(lambda: committed(here, group, topic)[topic, 0][0] == 21, 2 * SOON, "the source knows of it")
    reader = member(here, group, topic, isolation_level="read_committed")
    read += take(reader, 3)
    reader.close()
    assert read == [*written, b"new"]
    stands = committed(here, group, topic)
    await_until(lambda: committed(there, group, remote)[remote, 0][0] == 16, SOON, "and forward again")
    assert committed(here, group, topic) == stands  # nothing goes back and forth
    await_until(lambda: {status.state for status in driver.status()} == {FlowState.RUNNING}, SOON, "both flows run")
