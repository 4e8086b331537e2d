"""A task of the real-time lane by itself: what it has reported, and what becomes of one that outlives its driver."""

from __future__ import annotations

import pytest

from srm_spark.errors import TargetWriteFailed
from srm_spark.failure import FailureKind
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.lane_scene import LaneScene, running
from tests.broker.mirror import SOON
from tests.kafka_io import numbered, records

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
