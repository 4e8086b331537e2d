"""Copies that are in the log and that nobody who reads committed records sees count as gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.core.limits import Limits, Route
from srm_spark.core.model import Interval, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.translation import IntervalMap
from srm_spark.flow.clusters import connect
from srm_spark.flow.recovery.agreement import differing_copies, first_difference
from tests.broker.conftest import Pair
from tests.kafka_io import numbered

COUNT = 2500
"""More than one stretch of what is compared."""


@pytest.mark.parametrize(("ends_in", "first"), [("commit", None), ("abort", 1700)])
def test_a_transaction_that_turned_out_to_be_aborted(
    pair: Pair, tmp_path: Path, ends_in: str, first: int | None
) -> None:
    """As behind an unclean election that cost its marker: the map knows its records as copied."""
    kept = 1700
    for cluster, topic in ((pair.source, pair.topic()), (pair.target, pair.remote())):
        cluster.create(topic)
        cluster.write(topic, [one._replace(timestamp=1) for one in numbered(kept)])
    late = [one._replace(timestamp=1) for one in numbered(COUNT - kept, prefix="late ")]
    pair.source.write(pair.topic(), late)
    producer = pair.target.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    producer.begin_transaction()
    for one in late:
        producer.produce(pair.remote(), one.value, one.key, timestamp=1)
    producer.flush(30)
    {"commit": producer.commit_transaction, "abort": producer.abort_transaction}[ends_in](30)

    settings, partition = pair.settings(tmp_path), TopicPartition(pair.topic(), 0)
    known, routes = PartitionMap(), {pair.topic(): Route(pair.remote(), Limits())}
    known.put(IntervalMap(OffsetRange(0, COUNT), COUNT, (Interval(0, 0, COUNT),)))
    differing = differing_copies(connect(settings), routes, {partition: known}, {partition: COUNT})
    assert differing == (set() if first is None else {partition})
    ends = {"source": OffsetRange(0, COUNT), "target": OffsetRange(0, COUNT + 1)}
    assert first_difference(connect(settings), routes[pair.topic()], known, partition, COUNT, **ends) == first


def test_a_marker_in_the_place_of_a_copy(pair: Pair, tmp_path: Path) -> None:
    """An unclean election cuts the log off, and the marker that comes next lies where the first lost copy was."""
    kept = 5
    for cluster, topic in ((pair.source, pair.topic()), (pair.target, pair.remote())):
        cluster.create(topic)
        cluster.write(topic, [one._replace(timestamp=1) for one in numbered(kept)])
    pair.source.write(pair.topic(), [one._replace(timestamp=1) for one in numbered(kept, prefix="late ")])
    producer = pair.target.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(pair.remote(), b"somebody else's", b"k", timestamp=1)
    producer.flush(30)
    producer.commit_transaction(30)

    settings, partition = pair.settings(tmp_path), TopicPartition(pair.topic(), 0)
    known, marker = PartitionMap(), kept + 1
    intervals = (Interval(0, 0, kept), Interval(kept, marker, kept))  # the marker is what is at the first one's place
    known.put(IntervalMap(OffsetRange(0, 2 * kept), marker + kept, intervals))
    ends = {"source": OffsetRange(0, 2 * kept), "target": OffsetRange(0, marker + 1)}
    route = Route(pair.remote(), Limits())
    assert first_difference(connect(settings), route, known, partition, 2 * kept, **ends) == kept
