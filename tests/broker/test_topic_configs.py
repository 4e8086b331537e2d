"""Configs and ACLs of remote topics are those that MirrorMaker 2 makes of the same source, with the same file."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.core.acls import GROUP, TOPIC, Acl
from srm_spark.core.cluster import ConfigChange, TopicSpec
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.testing import LocalKafka
from tests.awaiting import await_until
from tests.broker.authorized import AUTHORIZED, client
from tests.broker.conftest import Start
from tests.broker.mirror import SOON, write_config
from tests.broker.mirror_maker import mirror_maker
from tests.kafka_io import Kafka, numbered

pytestmark = pytest.mark.slow

KEYS = {
    "topics": "t.*",
    "sync.topic.configs.interval.seconds": "1",
    "sync.topic.acls.enabled": "true",
    "sync.topic.acls.interval.seconds": "1",
}
CHOICES: Mapping[str, tuple[str, ...]] = {
    "retention.ms": ("86400000", "-1"),
    "cleanup.policy": ("compact", "compact,delete", "delete"),
    "max.message.bytes": ("2000000", "1048588"),
    "segment.bytes": ("20000000",),
    "compression.type": ("lz4", "producer"),
    "min.insync.replicas": ("2",),
    "message.timestamp.type": ("LogAppendTime",),
    "message.timestamp.before.max.ms": ("9000000000000",),
    "unclean.leader.election.enable": ("true",),
    "retention.bytes": ("1000000000",),
    "preallocate": ("false",),
}
TOPICS = [f"t{number}" for number in range(8)]


def configs(cluster: ClusterClient) -> dict[str, dict[str, str | None]]:
    """What is set on each remote topic itself."""
    found = cluster.configs([f"A.{topic}" for topic in TOPICS])
    return {name: {key: one.value for key, one in of_topic.items() if one.is_own} for name, of_topic in found.items()}


def some_configs(chance: random.Random) -> dict[str, str]:
    return {key: chance.choice(values) for key, values in CHOICES.items() if chance.random() < 0.4}


def some_acls(chance: random.Random, count: int) -> set[Acl]:
    """For a prefix, too, and for a topic that does not flow; not for `*`, of which MirrorMaker 2 makes `A.*`."""
    return {
        Acl(
            chance.choice([*TOPICS, "other"]),
            chance.choice(["LITERAL", "LITERAL", "PREFIXED"]),
            chance.choice(["User:ann", "User:bob", "User:*"]),
            chance.choice(["*", "10.0.0.1"]),
            chance.choice(["READ", "WRITE", "ALL", "DESCRIBE", "DELETE", "ALTER", "DESCRIBE_CONFIGS"]),
            chance.choice(["ALLOW", "ALLOW", "DENY"]),
        )
        for _ in range(count)
    }


def has_seen(target: ClusterClient, remote: str, change: ConfigChange) -> bool:
    return configs(target)[remote].get(change.key) == change.value


def are_all(answers: Iterable[str | None]) -> bool:
    return not any(answers)


def test_configs_and_acls_are_those_that_mirror_maker_makes(
    local_kafka: Callable[..., LocalKafka], start: Start, chance: random.Random, tmp_path: Path
) -> None:
    source, theirs, ours = (local_kafka(name, overrides=AUTHORIZED) for name in ("configs", "theirs", "ours"))
    here, at_theirs, at_ours = client(source), client(theirs), client(ours)
    assert are_all(here.create(TopicSpec(topic, 1, 1, some_configs(chance)) for topic in TOPICS).values())
    assert are_all(here.add_acls(some_acls(chance, 40)).values())
    everywhere = ("--entity-type", "brokers", "--entity-default", "--alter")
    source.tool("kafka.admin.ConfigCommand", *everywhere, "--add-config", "log.cleaner.delete.retention.ms=7200000")
    Kafka(source).write(TOPICS[0], [one._replace(key=b"k") for one in numbered(3)])

    def are_equal() -> bool:
        return (
            configs(at_ours) == configs(at_theirs)
            and len(configs(at_ours)) == len(TOPICS)
            and at_ours.acls([TOPIC]) == at_theirs.acls([TOPIC])
        )

    def difference() -> str:
        return f"{configs(at_ours)}\nMM2 {configs(at_theirs)}\n{at_ours.acls([TOPIC])}\nMM2 {at_theirs.acls([TOPIC])}"

    with mirror_maker(tmp_path, {"A": source, "B": theirs}, "A->B", KEYS):
        start({"A": source, "B": ours}, ["A->B"], KEYS)
        # Before the first look at ACLs both have none.
        await_until(lambda: bool(at_ours.acls([TOPIC])) and are_equal(), 2 * SOON, difference)
        assert all("delete.retention.ms" in found for found in configs(at_ours).values())
        for _ in range(3):
            before = here.configs(TOPICS)
            changes = {topic: some_changes(chance, before[topic].keys()) for topic in chance.sample(TOPICS, 4)}
            changes[TOPICS[0]] = [ConfigChange("flush.messages", str(chance.randrange(1000, 2000)))]
            assert are_all(here.alter(changes).values())
            assert are_all(here.add_acls(some_acls(chance, 5)).values())
            await_until(partial(has_seen, at_theirs, "A.t0", changes[TOPICS[0]][0]), SOON, "MM2 has seen it")
            await_until(are_equal, SOON, difference)
        by_hand = {"A.t1": [ConfigChange("segment.ms", "100000000")]}
        assert are_all(at_theirs.alter(by_hand).values())
        assert are_all(at_ours.alter(by_hand).values())
        later = ConfigChange("flush.messages", "77")
        assert are_all(here.alter({"t2": [later]}).values())
        await_until(lambda: has_seen(at_theirs, "A.t2", later), SOON, "MM2 has seen it")
        await_until(lambda: has_seen(at_ours, "A.t2", later), SOON, "so have we")
        assert "segment.ms" not in configs(at_theirs)["A.t1"], "MirrorMaker 2 takes it back"
        assert configs(at_ours)["A.t1"]["segment.ms"] == "100000000", "what somebody set is kept"


def test_by_choice_patterns_and_groups_are_copied_and_what_was_copied_goes_again(
    local_kafka: Callable[..., LocalKafka], start: Start
) -> None:
    source, ours = local_kafka("more-acls", overrides=AUTHORIZED), local_kafka("more-acls-ours", overrides=AUTHORIZED)
    here, there = client(source), client(ours)
    reads, group = (
        Acl("t1", "LITERAL", "User:ann", "*", "READ", "ALLOW"),
        Acl("g", "LITERAL", "User:ann", "*", "READ", "ALLOW", GROUP),
    )
    prefixed, by_hand = reads._replace(name="t", pattern="PREFIXED"), reads._replace(name="A.t1", principal="User:bob")
    assert are_all(here.create([TopicSpec("t1", 1, 1, {})]).values())
    assert are_all(here.add_acls([reads, prefixed, group]).values())
    assert are_all(there.add_acls([by_hand]).values())
    more = ("sync.topic.acls.patterns.enabled", "sync.group.acls.enabled", "sync.topic.acls.removal.enabled")
    start({"A": source, "B": ours}, ["A->B"], KEYS | dict.fromkeys(more, "true") | {"groups": "g"})

    def are(*wanted: Acl) -> Callable[[], bool]:
        return lambda: there.acls([TOPIC, GROUP]) == {by_hand, *wanted}

    copies = reads._replace(name="A.t1"), prefixed._replace(name="A.t")
    await_until(are(*copies, group), SOON, lambda: f"{there.acls([TOPIC, GROUP])}")
    assert are_all(here.remove_acls([prefixed, group]).values())
    await_until(are(copies[0]), SOON, lambda: f"{there.acls([TOPIC, GROUP])}")


def test_who_may_write_is_staged_and_in_force_from_a_failover_to_its_failback(
    local_kafka: Callable[..., LocalKafka], start: Start, tmp_path: Path
) -> None:
    source, ours = (local_kafka(name, overrides=AUTHORIZED) for name in ("writers", "writers-ours"))
    here, there = client(source), client(ours)
    reads = Acl("t1", "LITERAL", "User:ann", "*", "READ", "ALLOW")
    writes = reads._replace(operation="WRITE")
    copy, written = reads._replace(name="A.t1"), writes._replace(name="A.t1")
    by_hand = written._replace(principal="User:bob")
    assert are_all(here.create([TopicSpec("t1", 1, 1, {})]).values())
    assert are_all(here.add_acls([reads, writes]).values())
    assert are_all(there.add_acls([by_hand]).values())
    keys = KEYS | {"sync.topic.acls.write.policy": "failover", "sync.topic.acls.removal.enabled": "true"}
    clusters, flows = {"A": source, "B": ours}, ["A->B", "B->A"]
    config = write_config(tmp_path / "srm.properties", clusters, flows, keys)

    def ask(*words: str) -> Result:
        return CliRunner().invoke(main, [*words, "--config", str(config), "--flow", "A->B"])

    start(clusters, flows, keys)
    await_until(lambda: there.acls([TOPIC]) == {copy, by_hand}, SOON, lambda: f"{there.acls([TOPIC])}")
    assert f"is staged for failover\n    {written}\n" in ask("plan").output, ask("plan").output
    state = ("--yes", "--state", str(tmp_path / "state.json"))
    over = ask("failover", *state)
    assert there.acls([TOPIC]) == {copy, by_hand, written}, over.output
    assert (over.exit_code, f"{written}: in force" in over.output) == (0, True), over.output
    assert are_all(here.remove_acls([reads, writes]).values())
    await_until(lambda: there.acls([TOPIC]) == {by_hand, written}, SOON, "the driver takes back what is no failover's")
    back = ask("failback", *state)
    assert there.acls([TOPIC]) == {by_hand}, back.output
    assert back.exit_code == 0, back.output


def some_changes(chance: random.Random, known: Iterable[str]) -> list[ConfigChange]:
    """Set, set anew, or taken back to the default."""
    keys = [key for key in CHOICES if key in set(known)]
    return [
        ConfigChange(key, None if chance.random() < 0.5 else chance.choice(CHOICES[key]))
        for key in chance.sample(keys, 4)
    ]
