"""Remote topics: made before the first record, like the source's, grown with it, and by nobody else."""

from __future__ import annotations

from tests.broker.conftest import Pair
from tests.broker.mirror import assert_copied, await_count, await_held, await_lag_zero
from tests.kafka_io import numbered


def test_a_remote_topic_gets_partitions_copies_and_configs_of_its_source(pair: Pair) -> None:
    own = {
        "retention.ms": "123456789",
        "cleanup.policy": "compact,delete",
        "max.message.bytes": "222222",
        "min.insync.replicas": "1",
        "message.timestamp.type": "LogAppendTime",
        "segment.ms": "77777777",
    }
    pair.source.create(pair.topic(), 5, own)
    pair.source.create(pair.topic("empty"), 2)
    pair.source.write(pair.topic(), numbered(10, 5))
    driver = pair.replicate({"config.properties.exclude": r"min\.insync.*, message\.timestamp\.type, segment\.ms"})
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    assert pair.target.topics()[pair.remote()] == 5
    copied = ("retention.ms", "cleanup.policy", "max.message.bytes")
    assert pair.target.configs(pair.remote()) == {key: own[key] for key in copied}
    assert pair.target.topics()[pair.remote("empty")] == 2
    assert pair.target.configs(pair.remote("empty")) == {}


def test_default_excludes_and_a_larger_target(pair: Pair) -> None:
    """A target with more partitions is left alone, and nothing of it is changed."""
    pair.source.create(pair.topic(), 1, {"min.insync.replicas": "1", "retention.ms": "-1"})
    pair.source.create(pair.topic("larger"), 2, {"retention.ms": "-1"})
    pair.target.create(pair.remote("larger"), 5, {"retention.ms": "999999999"})
    pair.source.write(pair.topic("larger"), numbered(20, 2))
    driver = pair.replicate()
    await_count(pair.target, pair.remote("larger"), 20)
    await_lag_zero(driver)
    assert pair.target.configs(pair.remote()) == {"retention.ms": "-1"}
    assert pair.target.configs(pair.remote("larger")) == {"retention.ms": "999999999"}
    assert [len(log) for log in pair.target.read(pair.remote("larger")).values()] == [10, 10, 0, 0, 0]


def test_a_topic_that_cannot_be_created_is_held_and_the_others_flow(pair: Pair) -> None:
    """One broker cannot keep two copies; what is there already needs no creation."""
    for name in ("there", "missing"):
        pair.source.create(pair.topic(name))
        pair.source.write(pair.topic(name), numbered(3))
    pair.target.create(pair.remote("there"))
    driver = pair.replicate({"replication.factor": "2"})
    assert_copied(pair.source, pair.topic("there"), pair.target, pair.remote("there"))
    reason = await_held(driver, [pair.topic("missing")])[pair.topic("missing")]
    assert reason.startswith(f"{pair.remote('missing')} cannot be created on {pair.target_alias}: ")
    assert "replication factor" in reason.lower()
    assert pair.remote("missing") not in pair.target.topics()
