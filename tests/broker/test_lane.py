"""A task of the real-time lane by itself: what it has reported, and what becomes of one that outlives its driver."""

from __future__ import annotations

import random

import pytest

from srm_spark.core.record_batch import HEADER_BYTES, batches_in
from srm_spark.errors import TargetWriteFailed
from srm_spark.failure import FailureKind
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.lane_scene import LaneScene, running
from tests.broker.mirror import SOON
from tests.kafka_io import Record, numbered, records
from tests.raw_records import read_batches

PARTITIONS = 2


@pytest.fixture
def scene(primary: KafkaCluster, secondary: KafkaCluster, unique: str) -> LaneScene:
    return LaneScene(primary, secondary, f"t{unique}", PARTITIONS)


def test_a_lane_that_outlives_its_driver_is_refused_by_the_target(scene: LaneScene) -> None:
    """It has nobody to ask: nothing but the brokers keeps what it writes from coming twice."""
    old = scene.task(scene.fence())
    scene.source.write(scene.topic, numbered(200, PARTITIONS))
    with running(old) as raised:
        await_until(lambda: scene.target.given(scene.remote) == 200, SOON, "200 copies")
        heir = scene.task(scene.fence())
        scene.source.write(scene.topic, numbered(100, PARTITIONS, "later "))
        scene.told(old, lambda one: one.report is not None and one.report.failure is not None)
    assert [type(error) for error in raised] == [TargetWriteFailed]
    assert scene.target.given(scene.remote) == 200
    failures = {one.report.failure.kind for one in scene.told(old) if one.report is not None and one.report.failure}
    assert failures == {FailureKind.OVERTAKEN}
    with running(heir):
        await_until(lambda: scene.target.given(scene.remote) == 300, SOON, "300 copies")
    assert records(scene.target.read(scene.remote)) == records(scene.source.read(scene.topic))


def test_a_lane_that_is_told_to_end_has_reported_everything(scene: LaneScene) -> None:
    task = scene.task(scene.fence())
    with running(task):
        scene.source.write(scene.topic, numbered(1, PARTITIONS))
        await_until(lambda: scene.target.given(scene.remote) == 1, SOON, "the first copy")
        scene.source.write(scene.topic, numbered(999, PARTITIONS))
        await_until(lambda: scene.target.given(scene.remote) > 1, SOON, "more copies")
    reported = [one.report for one in scene.told(task) if one.report is not None]
    assert sum(report.records for report in reported) == scene.target.given(scene.remote)
    assert all(report.failure is None for report in reported)


def test_batches_go_as_they_came(scene: LaneScene, primary: KafkaCluster, secondary: KafkaCluster) -> None:
    """But for the name of who writes them, and where they lie."""
    task, chance = scene.task(scene.fence()), random.Random(1)
    written = [Record(b"k%d" % at, chance.randbytes(200) * 4, at % PARTITIONS) for at in range(4000)]
    with running(task):
        scene.source.write(scene.topic, written, compression_type="lz4", linger_ms=500, batch_size=500_000)
        await_until(lambda: scene.target.given(scene.remote) == 4000, SOON, "4000 copies")
    reported = [one.report for one in scene.told(task) if one.report is not None]
    assert sum(report.whole for report in reported) == sum(report.records for report in reported) == 4000
    for number in range(PARTITIONS):
        came, went = (
            [(one.codec, data[one.at + HEADER_BYTES : one.at + one.size]) for one in batches_in(memoryview(data))]
            for data in (
                read_batches(primary, scene.topic, number, scene.source.ends(scene.topic)[number]),
                read_batches(secondary, scene.remote, number, scene.target.ends(scene.remote)[number]),
            )
        )
        assert went[1:] == came, "behind the marker of the one that took over"
        assert {codec for codec, _ in came} == {"lz4"}
