"""Selection and naming: which topics flow, and what they are called on the target."""

from __future__ import annotations

from srm_spark.flow.status import FlowState
from srm_spark.testing import KafkaCluster
from tests.broker.conftest import Pair, Start
from tests.broker.mirror import assert_copied, await_lag_zero, await_state
from tests.kafka_io import Kafka, Record, numbered

HEARTBEATS = "heartbeats"


def test_include_exclude_internal_topics_and_heartbeats(pair: Pair) -> None:
    """Whole names must match; internal topics flow never, heartbeats always."""
    u = pair.unique
    flow = [f"keep-{u}", f"keep-more-{u}", f"exact-{u}"]
    stay = [f"not-keep-{u}", f"exact-{u}-longer", f"keep-secret-{u}"]
    internal = [f"__keep-{u}", f".keep-{u}", f"mm2-keep-{u}.internal", f"keep-{u}.checkpoints.internal"]
    for topic in [*flow, *stay, *internal]:
        pair.source.create(topic)
        pair.source.write(topic, numbered(2))
    if HEARTBEATS not in pair.source.topics():
        pair.source.create(HEARTBEATS)
    pair.source.write(HEARTBEATS, [Record(b"k", b"v")])
    driver = pair.replicate(
        {
            "topics": rf"keep-.*{u}, exact-{u}, \..*{u}, _.*{u}, mm2.*{u}.*, .*{u}\.checkpoints\.internal",
            "topics.exclude": ".*secret.*",
            "heartbeats.replication.enabled": "true",
        }
    )
    for topic in [*flow, HEARTBEATS]:
        assert_copied(pair.source, topic, pair.target, f"{pair.alias}.{topic}")
    await_lag_zero(driver)
    mine = {name for name in pair.target.topics() if name.startswith(f"{pair.alias}.") and u in name[10:]}
    assert mine == {f"{pair.alias}.{topic}" for topic in flow}


def test_policies_name_the_remote_topics(
    start: Start, primary: KafkaCluster, secondary: KafkaCluster, unique: str
) -> None:
    names = {
        "d": f"d{unique}.{{}}",
        "s": f"s{unique}-_-{{}}",
        "i": "{}",
        "c": f"{{}}_from_c{unique}",
    }
    source, target = Kafka(primary), Kafka(secondary)
    clusters: dict[str, KafkaCluster] = {}
    keys = {}
    for kind in names:
        clusters |= {f"{kind}{unique}": primary, f"{kind}t{unique}": secondary}
        flow = f"{kind}{unique}->{kind}t{unique}"
        keys[f"{flow}.topics"] = f"{kind}-topic-{unique}"
        source.create(f"{kind}-topic-{unique}", 2)
        source.write(f"{kind}-topic-{unique}", numbered(20, 2, kind))
    flows = {kind: f"{kind}{unique}->{kind}t{unique}" for kind in names}
    keys[f"{flows['s']}.replication.policy.separator"] = "-_-"
    identity = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    keys[f"{flows['i']}.replication.policy.class"] = identity
    keys[f"{flows['c']}.replication.policy.class"] = "tests.broker.policies:SuffixPolicy"
    driver = start(clusters, list(flows.values()), keys)
    for kind, name in names.items():
        topic = f"{kind}-topic-{unique}"
        assert_copied(source, topic, target, name.format(topic))
        await_state(driver, flows[kind], FlowState.RUNNING)
    found = {name for name in target.topics() if f"-topic-{unique}" in name}
    assert found == {name.format(f"{kind}-topic-{unique}") for kind, name in names.items()}
