"""Everything that MirrorMaker 2 skips in silence has an answer: a sentence, the rule that decided, and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.cli.explain import document, lines
from srm_spark.core.acls import Acl
from srm_spark.core.acts import Command, CommandKind, Scope
from srm_spark.core.cluster import Committed, TopicConfig
from srm_spark.core.driver_status import FlowState
from srm_spark.core.filters import NameFilter
from srm_spark.core.lists import Act, Change, ListKind
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.standstills import Standstill
from srm_spark.core.tail import TailRecord
from srm_spark.core.topic_configs import configs_key, configs_value
from srm_spark.errors import SourceUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.topics.internal_topics import ensure_topic, map_topic
from srm_spark.look.acls import explain_acls
from srm_spark.look.answer import Answer, Because, Rule, Verdict
from srm_spark.look.groups import explain_group
from srm_spark.look.properties import explain_property
from srm_spark.look.topics import explain_topic
from tests.memory_cluster import MemoryGroups
from tests.unit.memory_flow import HERE
from tests.unit.memory_run import World
from tests.unit.memory_words import act, say

ADDED_AT = 1_700_000_000_000
FLOWS, WAITS, LEFT_OUT, UNKNOWN = Verdict.FLOWS, Verdict.WAITS, Verdict.LEFT_OUT, Verdict.UNKNOWN
SYNCED = {"sync.group.offsets.enabled": "true", "emit.checkpoints.enabled": "true"}


class NotMine(NameFilter):
    """Of a user's own."""

    def matches(self, name: str) -> bool:
        return "mine" in name


OWN = f"{__name__}:NotMine"


def listed(world: World, kind: ListKind, change: Change) -> None:
    """Somebody changes the lists."""
    act(world, Act(kind, change, ADDED_AT, "ann@host", "it moves"))


def topic(world: World, name: str = "t", *, forbidden: bool = False) -> Answer:
    return explain_topic(
        world.flow.settings, name, world.flow.reach, lambda _, names: set(names) if forbidden else set()
    )


def group(world: World, name: str = "g") -> Answer:
    return explain_group(world.flow.settings, name, world.flow.reach)


def prop(world: World, name: str, of: str | None = "t") -> Answer:
    return explain_property(world.flow.settings, name, of, world.flow.reach)


def running() -> World:
    """Everything is copied, and a driver runs."""
    world = World()
    world.flow.write(b"a", b"b")
    world.copied()
    say(world)
    return world


def excluded() -> Answer:
    return topic(World({"A->B.topics.exclude": "x, t"}))


def denied() -> Answer:
    world = running()
    listed(world, ListKind.TOPICS, Change(add_deny=("t.*",)))
    return topic(world)


def heartbeats_off() -> Answer:
    world = World({"heartbeats.replication.enabled": "false", "A->B.topics": "t"})
    world.topic("heartbeats")
    return topic(world, "heartbeats")


def cycle() -> Answer:
    world = World()
    world.topic("B.t")
    return topic(world, "B.t")


def held(why: str, kind: FailureKind | None = None) -> Answer:
    world = running()
    say(world, standing=[Standstill(Scope("t"), why, kind)])
    return topic(world)


def partition_held() -> Answer:
    world = World()
    world.flow.write(b"a")
    world.refuse = lambda *_: Failure(FailureKind.TOO_LARGE, "it is too large")
    world.copied()
    say(world, standing=[Standstill(Scope("t", 0), "held at offset 0: it is too large")])
    return topic(world)


def flow_paused() -> Answer:
    world = running()
    say(world, standing=[Standstill(Scope(), "paused by ann@host: x", FailureKind.PAUSED)])
    return topic(world)


def names_cut_off() -> Answer:
    world = running()
    say(world, standing=[Standstill(Scope("u", number), "held at offset 0: x") for number in range(250)])
    return topic(world)


def no_remote_topic() -> Answer:
    world = running()
    world.topic("new", b"1")
    return topic(world, "new")


def too_few_partitions() -> Answer:
    world = running()
    world.flow.source.grow({"t": 3})
    return topic(world)


def killed() -> Answer:
    world = running()
    say(world, ago=60)
    return topic(world)


def stopped() -> Answer:
    world = running()
    say(world, FlowState.STOPPED, is_last=True)
    return topic(world)


def stalled() -> Answer:
    world = running()
    say(world, FlowState.STALLED, reason="B is slow")
    return topic(world)


def source_down() -> Answer:
    world = running()
    world.flow.source.down = "no route"
    return topic(world)


def target_down() -> Answer:
    world = running()
    world.flow.target.down = "no route"
    return topic(world)


def in_group(keys: dict[str, str], happens: Callable[[World], object] = lambda _: None) -> Answer:
    """A group of the source that stands at 1 of 2."""
    world = World({**SYNCED, **keys})
    world.flow.write(b"a", b"b")
    world.copied()
    world.flow.source.group_calls.committed["g"] = {HERE: Committed(1)}
    happens(world)
    return group(world)


def group_denied(world: World) -> None:
    listed(world, ListKind.GROUPS, Change(add_deny=("g",)))


def group_gone(world: World) -> None:
    del world.flow.source.group_calls.committed["g"]


def group_shared(world: World) -> None:
    class Shared(MemoryGroups):
        def others(self) -> list[str]:
            return ["g"]

    world.flow.source.group_calls = Shared()


def group_without_offsets(world: World) -> None:
    world.flow.source.group_calls.committed["g"] = {}


def group_refused(world: World) -> None:
    world.flow.source.group_calls.refused["g"] = Failure(FailureKind.GROUP_UNANSWERED, "it is not told")


def group_unsettled(world: World) -> None:
    world.flow.source.group_calls.committed["g"] = {}
    world.flow.source.group_calls.unsettled["g"] = {HERE}


def group_elsewhere(world: World) -> None:
    world.topic("__own")
    world.flow.source.group_calls.committed["g"] = {TopicPartition("__own", 0): Committed(0)}


def group_new(world: World) -> None:
    world.topic("new", b"1")
    world.flow.source.group_calls.committed["g"] = {TopicPartition("new", 0): Committed(1)}


def group_active(world: World) -> None:
    world.flow.target.group_calls.live["g"] = ("somebody",)


def group_ahead(world: World) -> None:
    world.flow.target.group_calls.committed["g"] = {TopicPartition("A.t", 0): Committed(2)}


def group_before_the_first_run(world: World) -> None:
    world.flow.target.held.clear()


def group_and_source_down(world: World) -> None:
    class Down(MemoryGroups):
        def names(self) -> list[str]:
            raise SourceUnavailable("no route")

    world.flow.source.group_calls = Down()


def with_config(name: str, config: TopicConfig | None = None, **remote: str) -> Answer:
    """A property of a topic of the source, and what its remote topic has."""
    world = running()
    world.flow.target.held["A.t"].configs |= {key.replace("_", "."): value for key, value in remote.items()}
    if config is not None:
        real = world.flow.source.configs
        world.flow.source.configs = lambda names: {  # type: ignore[method-assign]
            topic: {**found, name: config} for topic, found in real(names).items()
        }
    return prop(world, name)


SET = TopicConfig("5", is_default=False, is_static=False, is_read_only=False, is_sensitive=False, is_own=True)

SKIPPED: dict[str, tuple[Callable[[], Answer], Verdict, Because]] = {
    "topic: no pattern": (lambda: topic(World({"A->B.topics": "x"})), LEFT_OUT, Because.NOT_INCLUDED),
    "topic: excluded": (excluded, LEFT_OUT, Because.EXCLUDED),
    "topic: on the deny list": (denied, LEFT_OUT, Because.DENIED),
    "topic: filter class": (lambda: topic(World({"topic.filter.class": OWN})), LEFT_OUT, Because.FILTER_CLASS),
    "topic: of Kafka": (lambda: topic(World(), "__consumer_offsets"), LEFT_OUT, Because.INTERNAL),
    "topic: hidden": (lambda: topic(World(), ".hidden"), LEFT_OUT, Because.INTERNAL),
    "topic: of MirrorMaker 2": (lambda: topic(World(), "mm2-offset-syncs.B.internal"), LEFT_OUT, Because.INTERNAL),
    "topic: checkpoints": (lambda: topic(World(), "C.checkpoints.internal"), LEFT_OUT, Because.INTERNAL),
    "topic: our own": (lambda: topic(World(), "mm2-srm-status.B.internal"), LEFT_OUT, Because.INTERNAL),
    "topic: cycle": (cycle, LEFT_OUT, Because.CYCLE),
    "topic: heartbeats off": (heartbeats_off, LEFT_OUT, Because.NOT_INCLUDED),
    "topic: none of that name": (lambda: topic(World(), "nowhere"), WAITS, Because.NOT_SHOWN),
    "topic: READ not allowed": (lambda: topic(World(), forbidden=True), WAITS, Because.READ_DENIED),
    "topic: cannot be created": (lambda: held("A.t cannot be created on B: too many copies"), WAITS, Because.HELD),
    "topic: held by a policy": (lambda: held("A.t is gone on B, with all copies"), WAITS, Because.HELD),
    "topic: the whole flow is paused": (flow_paused, WAITS, Because.HELD),
    "topic: more stand still than are named": (names_cut_off, UNKNOWN, Because.HELD),
    "topic: a record is refused": (partition_held, WAITS, Because.PARTITIONS_HELD),
    "topic: no remote topic yet": (no_remote_topic, WAITS, Because.NO_REMOTE_TOPIC),
    "topic: too few partitions": (too_few_partitions, WAITS, Because.TOO_FEW_PARTITIONS),
    "topic: no driver ever": (lambda: topic(World()), WAITS, Because.NO_DRIVER),
    "topic: driver killed": (killed, WAITS, Because.NO_DRIVER),
    "topic: driver stopped": (stopped, WAITS, Because.NO_DRIVER),
    "topic: flow stalled": (stalled, WAITS, Because.FLOW_NOT_RUNNING),
    "topic: source down": (source_down, UNKNOWN, Because.SOURCE_DOWN),
    "topic: target down": (target_down, UNKNOWN, Because.TARGET_DOWN),
    "group: no pattern": (lambda: in_group({"A->B.groups": "x"}), LEFT_OUT, Because.NOT_INCLUDED),
    "group: excluded": (lambda: in_group({"A->B.groups.exclude": "g"}), LEFT_OUT, Because.EXCLUDED),
    "group: on the deny list": (lambda: in_group({}, group_denied), LEFT_OUT, Because.DENIED),
    "group: filter class": (lambda: in_group({"group.filter.class": OWN}), LEFT_OUT, Because.FILTER_CLASS),
    "group: all off": (lambda: in_group(dict.fromkeys(SYNCED, "false")), LEFT_OUT, Because.SWITCHED_OFF),
    "group: none of that name": (lambda: in_group({}, group_gone), WAITS, Because.NOT_SHOWN),
    "group: of shares or streams": (lambda: in_group({}, group_shared), LEFT_OUT, Because.NO_CONSUMER_GROUP),
    "group: no offsets": (lambda: in_group({}, group_without_offsets), WAITS, Because.NO_OFFSETS),
    "group: not told": (lambda: in_group({}, group_refused), WAITS, Because.REFUSED),
    "group: in a transaction": (lambda: in_group({}, group_unsettled), WAITS, Because.REFUSED),
    "group: reads what does not flow": (lambda: in_group({}, group_elsewhere), LEFT_OUT, Because.NO_TOPIC_FLOWS),
    "group: no translation": (lambda: in_group({}, group_new), WAITS, Because.UNTRANSLATED),
    "group: active on the target": (lambda: in_group({}, group_active), WAITS, Because.ACTIVE),
    "group: ahead on the target": (lambda: in_group({}, group_ahead), WAITS, Because.AHEAD),
    "group: the flow never ran": (lambda: in_group({}, group_before_the_first_run), WAITS, Because.NO_DRIVER),
    "group: source down": (lambda: in_group({}, group_and_source_down), UNKNOWN, Because.SOURCE_DOWN),
    "property: excluded": (lambda: prop(World(), "min.insync.replicas"), LEFT_OUT, Because.EXCLUDED),
    "property: never": (
        lambda: prop(World({"config.properties.never": "retention.*"}), "retention.ms"),
        LEFT_OUT,
        Because.EXCLUDED,
    ),
    "property: filter class": (
        lambda: prop(World({"config.property.filter.class": OWN}), "retention.ms"),
        LEFT_OUT,
        Because.FILTER_CLASS,
    ),
    "property: switched off": (
        lambda: prop(World({"sync.topic.configs.enabled": "false"}), "retention.ms"),
        LEFT_OUT,
        Because.SWITCHED_OFF,
    ),
    "property: no such topic": (lambda: prop(running(), "retention.ms", "x"), LEFT_OUT, Because.NOT_SHOWN),
    "property: no remote topic": (lambda: prop(World(), "retention.ms"), WAITS, Because.NO_REMOTE_TOPIC),
    "property: unknown": (lambda: with_config("retention.mss"), LEFT_OUT, Because.NO_PROPERTY),
    "property: default on the source": (lambda: with_config("retention.ms"), LEFT_OUT, Because.DEFAULT),
    "property: read-only": (lambda: with_config("x", replace(SET, is_read_only=True)), LEFT_OUT, Because.READ_ONLY),
    "property: secret": (lambda: with_config("x", replace(SET, is_sensitive=True)), LEFT_OUT, Because.SENSITIVE),
    "property: of brokers": (
        lambda: with_config("x", replace(SET, is_static=True)),
        LEFT_OUT,
        Because.STATIC,
    ),
    "property: set by hand": (lambda: with_config("retention.ms", retention_ms="7"), LEFT_OUT, Because.KEPT),
    "property: differs": (lambda: with_config("retention.ms", SET, retention_ms="7"), WAITS, Because.DIFFERENT),
}


@pytest.mark.parametrize("case", SKIPPED)
def test_what_is_skipped_is_explained(case: str) -> None:
    ask, verdict, because = SKIPPED[case]
    answer = ask()
    assert (answer.verdict, answer.because) == (verdict, because), answer
    assert len(answer.why) > 10
    # A hold says by itself what helps: its sentence is made where it is found.
    assert answer.remedy or answer.because is Because.HELD, answer
    assert len(list(lines(answer))) >= 2
    json.dumps(document(answer))


def test_what_helps_against_a_pause_is_its_end() -> None:
    for answer in (held("whatever it says", FailureKind.PAUSED), flow_paused()):
        assert (answer.remedy, answer.waits_for) == ("srm-control resume", "its end")
    assert held("paused by nobody: only a sentence").remedy is None


def test_a_topic_that_a_driver_of_before_named_is_not_taken_for_a_partition() -> None:
    world = running()
    world.topic("t-2024", b"1")
    act(world, Command(CommandKind.PAUSE, Scope("t-2024"), 1, "ann@host", "x"))
    say(world, standing=[Standstill(Scope("t", 2024), "paused by ann@host: x"), Standstill(Scope("t", 0), "no")])
    whole = topic(world, "t-2024")
    assert (whole.because, whole.why) == (Because.HELD, "it is held: paused by ann@host: x")
    assert whole.remedy == FailureKind.PAUSED.remedy
    assert topic(world).because is Because.PARTITIONS_HELD


def test_a_rule_of_a_file_is_named_with_its_line() -> None:
    answer = excluded()
    assert answer.rule is not None
    assert answer.rule.text == "t"
    assert answer.rule.place.endswith(": A->B.topics.exclude")
    assert ".properties:" in answer.rule.place
    default = topic(World(), "some.replica").rule
    assert default == Rule(r".*\.replica", "default of topics.exclude")


def test_an_entry_of_a_list_is_named_with_who_added_it_when_and_why() -> None:
    answer = denied()
    topic_of_lists = "mm2-control.A.internal"
    assert answer.rule == Rule(
        "t.*", f"the deny list of topics in topic {topic_of_lists}", "ann@host", ADDED_AT, "it moves"
    )
    assert answer.since == ADDED_AT
    assert answer.remedy == "srm-control topics --source A --target B --remove-blacklist 't.*'"
    assert (
        f"  rule   t.* [the deny list of topics in topic {topic_of_lists}, added by ann@host at 2023-11-14T22:13:20Z: "
        "it moves]"
    ) in list(lines(answer))


def test_a_topic_that_flows_says_by_which_rule_and_how_far_it_is() -> None:
    world = running()
    world.flow.write(b"c")
    answer = topic(world)
    assert (answer.verdict, answer.because) == (FLOWS, Because.INCLUDED)
    assert answer.facts == {"remote topic": "A.t", "partitions": "1", "not copied yet": "1 record"}
    assert topic(world, "heartbeats").because is Because.NOT_SHOWN


def test_a_topic_of_the_allow_list_flows_since_it_was_added() -> None:
    world = World({"A->B.topics": "", "dialect": "srm"})
    listed(world, ListKind.TOPICS, Change(add=("t",)))
    world.copied()
    say(world)
    answer = topic(world)
    assert (answer.verdict, answer.since) == (FLOWS, ADDED_AT)
    assert answer.rule is not None
    assert answer.rule.who == "ann@host"


def test_the_name_of_a_remote_topic_is_taken_for_its_source_topic() -> None:
    answer = topic(running(), "A.t")
    assert (answer.subject, answer.verdict) == ("topic t", FLOWS)
    assert "A.t" in answer.facts["asked for"]


def test_a_driver_that_was_killed_is_named_with_the_moment_since_when_nothing_is_known() -> None:
    answer = killed()
    assert "here pid 1 is silent" in answer.why
    assert answer.since is not None


def test_a_group_in_sync_says_where_it_stands() -> None:
    def commits(world: World) -> None:
        world.flow.target.group_calls.committed["g"] = {TopicPartition("A.t", 0): Committed(1)}

    answer = in_group({}, commits)
    assert (answer.verdict, answer.because) == (FLOWS, Because.INCLUDED)
    assert answer.facts == {"t-0 at 1": "on B A.t-0 at 1: exact; in step already"}
    unsynced = in_group({"sync.group.offsets.enabled": "false"})
    assert unsynced.verdict is FLOWS
    assert "sync.group.offsets.enabled = true" in (unsynced.remedy or "")


def test_a_partition_that_stands_still_is_told_with_what_helps() -> None:
    answer = partition_held()
    assert answer.why == "1 of 1 partition stands still: t-0 held at offset 0: it is too large"
    assert answer.remedy == FailureKind.TOO_LARGE.remedy


def test_of_a_group_that_reads_what_does_not_flow_each_topic_is_explained() -> None:
    assert in_group({}, group_elsewhere).facts == {"topic __own": "is an internal topic"}


def test_a_property_that_came_from_the_source_is_to_go_back_with_it() -> None:
    world = running()
    world.flow.target.held["A.t"].configs["retention.ms"] = "7"
    ensure_topic(world.flow.target, map_topic(world.flow.settings))
    log = world.flow.target.log(TopicPartition(world.flow.settings.map_topic, 0))
    log.append(TailRecord(0, 1, configs_key("A.t"), configs_value({"retention.ms": "7"})))
    answer = prop(world, "retention.ms")
    assert (answer.verdict, answer.because) == (WAITS, Because.DIFFERENT)
    assert "back to its default" in answer.why


def test_a_property_that_both_have_flows() -> None:
    answer = with_config("retention.ms", SET, retention_ms="5")
    assert (answer.verdict, answer.why) == (FLOWS, "A.t has what t has: 5")
    assert prop(World(), "retention.ms", None).verdict is FLOWS


def test_the_class_of_a_property_is_said_with_its_place() -> None:
    keys = {"config.properties.always": "max.*", "config.properties.usually": "min.insync.replicas"}
    for name, key, why in (
        ("max.message.bytes", "always", "it is always copied, its default, too"),
        ("min.insync.replicas", "usually", "it is usually copied"),
    ):
        answer = prop(World(keys), name, None)
        assert answer.verdict is FLOWS
        assert answer.why.startswith(f"config.properties.{key} has {keys[f'config.properties.{key}']}: {why}")
        assert answer.rule is not None
        assert answer.rule.place.endswith(f"config.properties.{key}")
    left_out = prop(World(), "min.insync.replicas", None)
    assert "config.properties.usually = min.insync.replicas" in (left_out.remedy or "")


ANN = Acl("t", "LITERAL", "User:ann", "*", "READ", "ALLOW")


def acls(here: set[Acl] | None, there: set[Acl] | None = frozenset(), **keys: str) -> list[tuple[Verdict, Because]]:  # type: ignore[assignment]
    world = World({name.replace("_", "."): value for name, value in keys.items()})
    world.flow.source.entries, world.flow.target.entries = here, None if there is None else set(there)
    found = explain_acls(world.flow.settings, "t", world.flow.reach)
    assert all((one.why and one.remedy) or one.verdict is FLOWS for one in found)
    return [(one.verdict, one.because) for one in found]


@pytest.mark.parametrize(
    ("acl", "verdict", "because"),
    [
        (ANN, WAITS, Because.DIFFERENT),
        (ANN._replace(operation="WRITE"), LEFT_OUT, Because.WRITE),
        (ANN._replace(operation="WRITE", permission="DENY"), WAITS, Because.DIFFERENT),
        (ANN._replace(pattern="PREFIXED", name=""), LEFT_OUT, Because.PATTERN),
        (ANN._replace(name="*"), LEFT_OUT, Because.PATTERN),
    ],
)
def test_each_acl_has_an_answer(acl: Acl, verdict: Verdict, because: Because) -> None:
    assert acls({acl, ANN._replace(name="other")}) == [(verdict, because)]


def test_what_is_staged_for_a_failover_is_said() -> None:
    writes, everything = ANN._replace(operation="WRITE"), ANN._replace(operation="ALL", principal="User:bob")
    staged = writes._replace(name="A.t")
    world = World({"sync.topic.acls.write.policy": "failover"})
    world.flow.source.entries, world.flow.target.entries = {writes, everything}, set()
    of_writing, of_all = explain_acls(world.flow.settings, "t", world.flow.reach)
    assert (of_writing.verdict, of_writing.because) == (WAITS, Because.STAGED)
    assert of_writing.why == f"staged for failover: {staged}"
    assert of_all.because is Because.DIFFERENT
    assert of_all.facts == {"staged for failover": str(staged._replace(principal="User:bob"))}
    world.flow.target.entries = {staged}
    of_writing, _ = explain_acls(world.flow.settings, "t", world.flow.reach)
    assert (of_writing.verdict, of_writing.why) == (FLOWS, f"in force since a failover: {staged}")


def test_acls_that_are_there_or_can_be_nowhere() -> None:
    assert acls({ANN}, {ANN._replace(name="A.t")}) == [(FLOWS, Because.INCLUDED)]
    assert acls(None) == acls({ANN}, None) == [(LEFT_OUT, Because.NO_AUTHORIZER)]
    assert acls(set()) == [(LEFT_OUT, Because.NOT_SHOWN)]
    assert acls({ANN}, sync_topic_acls_enabled="false") == [(LEFT_OUT, Because.SWITCHED_OFF)]
    assert acls({ANN}, topics_exclude="t") == [(LEFT_OUT, Because.NO_TOPIC_FLOWS)]


@pytest.mark.parametrize("what", ["topic", "group", "property", "acl"])
def test_the_commands_print_for_people_and_for_programs(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "srm.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"
    )
    answer = Answer(Flow("A", "B"), f"{what} x", WAITS, Because.HELD, "so it is", since=ADDED_AT, remedy="wait")
    many = (answer,) if what == "acl" else answer
    name = "explain_acls" if what == "acl" else f"explain_{what}"
    monkeypatch.setattr(f"srm_spark.cli.explain.{name}", lambda *_: many)
    for_people = CliRunner().invoke(main, ["explain", what, "x", "--config", str(path)])
    assert for_people.output.splitlines() == [
        f"A->B {what} x: waits",
        "  why    so it is",
        "  since  2023-11-14T22:13:20Z",
        "  to do  wait",
    ]
    (found,) = json.loads(CliRunner().invoke(main, ["explain", what, "x", "--config", str(path), "-o", "json"]).output)
    assert (found["verdict"], found["because"], found["since"]) == ("waits", "held", "2023-11-14T22:13:20Z")
