"""A driver that gets other settings restarts the flow that changed and leaves the others alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from srm_spark.config import load_settings
from srm_spark.driver import Driver
from srm_spark.testing import KafkaCluster
from tests.broker.conftest import Start
from tests.broker.mirror import assert_copied, await_lag_zero, write_config
from tests.kafka_io import Kafka, numbered
from tests.lease_io import standing


def _owner(target: Kafka, flow: str) -> str:
    """Holder of the driver's lease, another one where a flow starts again; empty where nobody has it."""
    found = standing(target, flow)
    return "" if found.is_free else found.holder


def test_only_the_flow_that_changed_starts_again(
    primary: KafkaCluster, secondary: KafkaCluster, start: Start, unique: str, tmp_path: Path
) -> None:
    a, b, c = (f"{name}{unique}" for name in "abc")
    clusters: Mapping[str, KafkaCluster] = {a: primary, b: secondary, c: primary}
    source, target = Kafka(primary), Kafka(secondary)
    changing, staying = f"{a}->{b}", f"{c}->{b}"
    keys = {f"{changing}.topics": f"one-{unique}", f"{staying}.topics": f"two-{unique}"}
    for topic in (f"one-{unique}", f"two-{unique}", f"late-{unique}"):
        source.create(topic)
        source.write(topic, numbered(20))
    driver = start(clusters, [changing, staying], keys)
    await_lag_zero(driver)
    owners = {flow: _owner(target, flow) for flow in (changing, staying)}

    def reload(flows: list[str], more: Mapping[str, str]) -> list[str]:
        path = write_config(tmp_path / "again.properties", clusters, flows, {**keys, **more})
        return list(driver.reload(load_settings([path])).describe())

    assert reload([changing, staying], {}) == ["no flow changed"]
    told = reload([changing, staying], {f"{changing}.topics": f"one-{unique}, late-{unique}"})
    assert told == [f"flow={changing} starts again: changed topics.include"]
    assert_copied(source, f"late-{unique}", target, f"{a}.late-{unique}")
    await_lag_zero(driver)
    assert target.given(f"{a}.one-{unique}") == 20, "nothing is copied again"
    assert _owner(target, staying) == owners[staying]
    assert _owner(target, changing) != owners[changing]
    assert reload([staying], {}) == [f"flow={changing} stops"]
    assert [str(status.flow) for status in driver.status()] == [staying]
    assert not _owner(target, changing)
    assert _owner(target, staying) == owners[staying]
    assert _is_fed(driver, source, target, f"two-{unique}", f"{c}.two-{unique}")


def _is_fed(driver: Driver, source: Kafka, target: Kafka, topic: str, remote: str) -> bool:
    source.write(topic, numbered(5, prefix="more"))
    assert_copied(source, topic, target, remote)
    await_lag_zero(driver)
    return True
