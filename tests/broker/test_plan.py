"""A plan is applied to real clusters; Kafka's own tools and a driver say that nothing of it is missing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.core.acls import Acl
from srm_spark.core.cluster import ConfigChange, TopicSpec
from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.broker.authorized import AUTHORIZED, client
from tests.broker.conftest import Start
from tests.broker.mirror import SOON, await_lag_zero, write_config

KEYS = {
    "topics": "orders, users",
    "sync.topic.configs.interval.seconds": "1",
    "sync.topic.acls.enabled": "true",
    "sync.topic.acls.interval.seconds": "1",
}
READS = Acl("orders", "LITERAL", "User:ann", "*", "READ", "ALLOW")


def described(broker: LocalKafka) -> Mapping[str, str]:
    """What Kafka's own tools say of the remote topics."""
    of_topic = ("--entity-type", "topics", "--entity-name", "A.orders")
    return {
        "topics": broker.tool("org.apache.kafka.tools.TopicCommand", "--describe", "--topic", "A.*").stdout,
        "configs": broker.tool("kafka.admin.ConfigCommand", "--describe", *of_topic).stdout,
        "acls": broker.tool("org.apache.kafka.tools.AclCommand", "--list", "--topic", "A.orders").stdout,
    }


@pytest.mark.slow
def test_a_plan_is_applied_and_a_driver_has_nothing_left_to_do(
    local_kafka: Callable[..., LocalKafka], start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, target = (local_kafka(name, overrides=AUTHORIZED) for name in ("plan-source", "plan-target"))
    clusters = {"A": source, "B": target}
    config = write_config(tmp_path / "srm.properties", clusters, ["A->B"], KEYS)
    here, there = client(source), client(target)
    path = tmp_path / "plan.json"

    def ask(*words: str) -> Result:
        return CliRunner().invoke(main, ["--config", str(config), *words])

    def drift_is(code: int) -> bool:
        return ask("drift").exit_code == code

    assert not any(here.create([TopicSpec("orders", 3, 1, {"retention.ms": "86400000"})]).values())
    assert not any(here.create([TopicSpec("users", 2, 1, {})]).values())
    assert not any(there.create([TopicSpec("A.users", 1, 1, {})]).values())
    assert not any(here.add_acls([READS]).values())
    planned = ask("plan", "--out", str(path))
    assert planned.exit_code == 0, planned.output
    steps = json.loads(path.read_text())["flows"][0]["steps"]
    does = [step["does"] for step in steps]
    assert does == [*["create-internal-topic"] * 9, "create-topic", "add-partitions", "add-acl"], planned.output

    applied = ask("apply", str(path), "--yes")
    assert applied.exit_code == 0, applied.output
    told = described(target)
    assert "Topic: A.orders" in told["topics"]
    assert "PartitionCount: 3" in told["topics"]
    assert "PartitionCount: 2" in told["topics"]
    assert "retention.ms=86400000" in told["configs"]
    assert "principal=User:ann, host=*, operation=READ, permissionType=ALLOW" in told["acls"]
    again = ask("apply", str(path), "--yes")
    assert (again.exit_code, "nothing was changed" in again.output) == (0, True), again.output
    await_until(lambda: drift_is(0), SOON, lambda: ask("drift").output)

    by_hand = {"A.orders": [ConfigChange("retention.ms", "1000"), ConfigChange("segment.bytes", "20000000")]}
    assert not any(there.alter(by_hand).values())
    await_until(lambda: "A.orders: segment.bytes=20000000" in ask("drift").output, SOON, "it is seen")
    text = ask("drift").output
    assert "~ A.orders: retention.ms 1000 -> 86400000" in text
    ask("plan", "--out", str(path))
    assert ask("apply", str(path), "--yes").exit_code == 0
    assert not any(there.alter({"A.orders": [ConfigChange("segment.bytes", None)]}).values())
    await_until(lambda: drift_is(0), SOON, lambda: ask("drift").output)

    before = there.topics(), there.acls(["TOPIC"]), there.configs(["A.orders", "A.users"])
    with caplog.at_level(logging.INFO, "srm_spark"):
        driver = start(clusters, ["A->B"], KEYS)
        await_lag_zero(driver)
        await_until(lambda: "nothing to change" in ask("plan").output, SOON, lambda: ask("plan").output)
    assert "runs the flow and does all of this by itself" in ask("plan").output
    assert (there.topics(), there.acls(["TOPIC"]), there.configs(["A.orders", "A.users"])) == before
    changes = ("created", "as on the source now", "added", "removed", "cannot be")
    assert [line for line in caplog.messages if any(word in line for word in changes)] == []
