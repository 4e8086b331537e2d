"""Remote topics: made before the first record, like the source's, grown with it, and by nobody else.

Those that are refused, or there already: `tests/unit/test_run.py`.
"""

from __future__ import annotations

from tests.broker.conftest import Pair
from tests.broker.mirror import await_count, await_lag_zero
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
