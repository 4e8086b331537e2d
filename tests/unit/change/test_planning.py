"""What a plan says of worlds in memory: what is to do and why, what is left out and why, what is lost."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srm_spark.change.planning import KeptKind
from srm_spark.change.steps import Stage, of_stage
from srm_spark.cli.plan_view import drift_lines, plan_lines
from srm_spark.core.acls import GROUP, Acl
from srm_spark.core.codec import decode_map_key
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.tail import TailRecord
from srm_spark.flow.topics.internal_topics import ensure_topic, map_topic
from srm_spark.plan.rights import WriteRights
from tests.unit.change.examples import COPY, DAY, READS, WEEK, add, drive, flow_of, held, planned, run_plan, write_plan
from tests.unit.memory_flow import HERE, MemoryFlow

INTERNAL = [
    "create-internal-topic on B: mm2-offsets.A.internal: 25 partitions, factor 1, cleanup.policy=compact",
    "create-internal-topic on B: mm2-leases.A.internal: 1 partition, factor 1, cleanup.policy=compact, "
    "min.cleanable.dirty.ratio=0.1, min.compaction.lag.ms=600000, segment.ms=600000",
    "create-internal-topic on B: mm2-offset-map.A.internal: 1 partition, factor 1, cleanup.policy=compact",
    "create-internal-topic on B: mm2-control.A.internal: 1 partition, factor 1, cleanup.policy=compact",
    "create-internal-topic on B: mm2-srm-status.A.internal: 1 partition, factor 1, cleanup.policy=compact, "
    "message.timestamp.type=LogAppendTime, min.cleanable.dirty.ratio=0.1, segment.ms=600000",
    "create-internal-topic on B: srm-metrics-A.internal: 1 partition, factor 1, cleanup.policy=delete, "
    "retention.ms=10800000, segment.ms=1800000",
    "create-internal-topic on B: srm-meta.internal: 1 partition, factor 1, cleanup.policy=compact",
    "create-internal-topic on A: mm2-offset-syncs.B.internal: 1 partition, factor 1, cleanup.policy=compact",
]


def said(flow: MemoryFlow, *, prune: bool = False) -> list[str]:
    return [f"{step.does} on {step.on}: {step}" for step in planned(flow, prune=prune).steps]


def test_a_new_flow_needs_everything() -> None:
    plan = planned(flow_of())
    assert [f"{step.does} on {step.on}: {step}" for step in plan.steps] == [
        *INTERNAL,
        f"create-topic on B: A.t: 1 partition, factor 1, retention.ms={DAY}",
        "add-acl on B: ALLOW READ on topic A.t to User:ann from *",
    ]
    assert [step.reason for step in plan.steps] == [
        "for how far each partition was replicated",
        "the flow writes there",
        "for the offset map",
        "for the lists of srm-control",
        "the flow writes there",
        "the flow writes there",
        "the flow writes there",
        "for offset syncs",
        "t matches the topic filter (t.*)",
        "A has ALLOW READ on topic t to User:ann from *",
    ]


def partly(flow: MemoryFlow) -> None:
    """Half of it is there, by hand and by a run of before."""
    add(flow.source, "t2", 3, retention_ms=DAY)
    add(flow.source, "t3", 1, segment_bytes="1000000")
    add(flow.target, "A.t2", 1, retention_ms=WEEK)
    add(flow.target, "A.t3", 2, segment_bytes="1000000", retention_ms="7")


def run_before(flow: MemoryFlow) -> None:
    """A driver ran; then the source was changed."""
    add(flow.source, "t2", 1, segment_bytes="1000000")
    flow.write(b"a")
    flow.run()
    drive(flow)
    del flow.source.held["t2"].configs["segment.bytes"]
    flow.source.held["t"].configs["segment.bytes"] = "2000000"
    flow.source.entries = {READS._replace(operation=operation) for operation in ("DESCRIBE", "WRITE")}


WORLDS: dict[str, Callable[[MemoryFlow], None]] = {
    "new": lambda _: None,
    "partly": partly,
    "run before": run_before,
}
SETTINGS = [
    {},
    {"sync_topic_acls_removal_enabled": "true", "target_override_policy": "reset"},
    {"sync_topic_acls_write_policy": "failover", "config_properties_always": "max.*"},
    {"use_defaults_from": "source", "sync_group_acls_enabled": "true", "offset-syncs_topic_location": "target"},
    {"sync_topic_configs_enabled": "false", "sync_topic_acls_enabled": "false"},
]


@pytest.mark.parametrize("keys", SETTINGS, ids=lambda keys: "+".join(keys) or "defaults")
@pytest.mark.parametrize("world", WORLDS)
def test_a_plan_says_exactly_what_a_flow_s_start_does(tmp_path: Path, world: str, keys: dict[str, str]) -> None:
    """Two worlds that are alike: a driver starts on one, the plan of the other is applied."""
    driven, applied = flow_of(**keys), flow_of(**keys)
    for flow in (driven, applied):
        WORLDS[world](flow)
    before = held(applied)
    path = write_plan(applied, tmp_path / "plan.json")
    assert held(applied) == before, "a plan changes nothing"
    run_plan(applied, path)
    drive(driven)
    after = held(applied)
    assert after == held(driven)
    drive(applied)
    assert held(applied) == after, "a flow has nothing left to do behind it"
    assert planned(applied).steps == ()


@pytest.mark.parametrize(
    ("keys", "topic"),
    [
        ({"mode": "realtime"}, "mm2-realtime.A.internal"),
        ({"refused_record_policy": "park"}, "mm2-quarantine.A.internal"),
        ({"emit_checkpoints_enabled": "true"}, "A.checkpoints.internal"),
        ({"offset-syncs_topic_location": "target"}, "mm2-offset-syncs.A.internal"),
    ],
)
def test_every_topic_that_holds_state_is_planned(keys: dict[str, str], topic: str) -> None:
    steps = of_stage(planned(flow_of(**keys)).steps, Stage.INTERNAL)
    assert ("B", topic) in [(step.on, str(step).split(":")[0]) for step in steps]


def test_where_everything_is_there_nothing_is_to_do() -> None:
    flow = flow_of()
    drive(flow)
    plan = planned(flow)
    assert (plan.steps, plan.kept, plan.losing, plan.is_alike) == ((), (), {}, True)


def test_what_was_changed_by_hand_is_found() -> None:
    flow = flow_of()
    drive(flow)
    add(flow.source, "t2")
    flow.source.held["t"].partitions += flow.source.held["t2"].partitions
    remote = flow.target.held["A.t"].configs
    remote |= {"retention.ms": WEEK, "segment.bytes": "7"}
    assert said(flow) == [
        "create-topic on B: A.t2: 1 partition, factor 1",
        "add-partitions on B: A.t: 1 -> 2 partitions",
        f"change-configs on B: A.t: retention.ms {WEEK} -> {DAY}",
    ]
    assert [step.reason for step in planned(flow).steps] == ["t2 matches the topic filter (t.*)", "t has 2", "t has it"]
    (kept,) = planned(flow).kept
    assert (kept.kind, kept.name, kept.text.split(":")[0]) == (KeptKind.CONFIG, "A.t", "segment.bytes=7")


def test_what_came_from_the_source_goes_with_it() -> None:
    flow = flow_of()
    drive(flow)
    del flow.source.held["t"].configs["retention.ms"]
    (step,) = planned(flow).steps
    assert (str(step), step.reason) == (f"A.t: retention.ms {DAY} -> not set", "t has its default")


def test_what_is_left_out_is_said_with_its_reason() -> None:
    flow = flow_of(groups_exclude="console-.*", emit_checkpoints_enabled="true")
    for topic in ("other", "__consumer_offsets", "mm2-offsets.X.internal", "B.back"):
        add(flow.source, topic)
    flow.source.held["t"].configs["min.insync.replicas"] = "2"
    writes, other = READS._replace(operation="WRITE"), READS._replace(name="other")
    prefixed, everything = READS._replace(pattern="PREFIXED"), READS._replace(name="*")
    flow.source.entries = {READS, writes, other, prefixed, everything}
    flow.source.group_calls.committed = {"g": {}, "console-1": {}}
    plan = planned(flow)
    assert plan.world.skipped == {
        "B.back": "has already been on the target",
        "__consumer_offsets": "is an internal topic",
        "mm2-offsets.X.internal": "is an internal topic",
        "other": "matches no pattern of the topic filter",
    }
    left_out = "config.properties.exclude has min.insync.replicas"
    assert plan.skipped_configs == {("min.insync.replicas", left_out): ("t",)}
    pattern = "it is about a prefix or *; see sync.topic.acls.patterns.enabled"
    assert plan.skipped_acls == {
        writes: "only the flow writes copies",
        other: "its topic does not flow",
        prefixed: pattern,
        everything: pattern,
    }
    assert plan.world.groups.taken == ("g",)
    assert plan.world.groups.left_out == {"console-1": "groups.exclude has console-.*"}


def test_groups_and_patterns_that_are_not_taken() -> None:
    flow = flow_of(sync_group_acls_enabled="true", sync_topic_acls_patterns_enabled="true", groups="g")
    mine, theirs = READS._replace(name="g", kind=GROUP), READS._replace(name="h", kind=GROUP)
    deletes = READS._replace(pattern="PREFIXED", operation="DELETE")
    flow.source.entries = {mine, theirs, deletes}
    plan = planned(flow)
    assert plan.skipped_acls == {
        theirs: "its group is not taken",
        deletes: "of what a prefix allows only reading is translated",
    }
    assert [str(step) for step in of_stage(plan.steps, Stage.ACLS)] == [str(mine)]


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_cluster_without_an_authorizer_has_no_steps_for_acls(side: str) -> None:
    flow = flow_of()
    getattr(flow, side).entries = None
    plan = planned(flow)
    assert of_stage(plan.steps, Stage.ACLS) == ()
    assert plan.world.acls == f"{getattr(flow, side).alias} has no authorizer"


def test_records_that_the_source_has_deleted_already_are_lost() -> None:
    flow = flow_of()
    flow.write(b"a", b"b", b"c", b"d")
    flow.start()
    flow.record(*flow.copy(1))
    flow.log.delete_before(3)
    (loss,) = planned(flow).world.losses
    assert (loss.partition, loss.offsets) == (HERE, OffsetRange(1, 3))
    flow.record(*flow.copy(2, start=3))
    flow.log.delete_before(4)
    assert planned(flow).world.losses == (), "everything that is gone was copied"


def test_configs_by_which_a_remote_topic_is_worse_off() -> None:
    flow = flow_of()
    plan = planned(flow)
    assert plan.losing == {}
    assert "has no topic that tells" in plan.unknown[0], "an empty target does not tell its defaults"
    drive(flow)
    flow.target.held["A.t"].configs["cleanup.policy"] = "compact"
    flow.source.held["t"].configs["cleanup.policy"] = "delete"
    assert planned(flow).losing == {}, "a step mends it"
    flow.source.held["t"].configs.clear()
    flow.source.held["t"].configs["segment.bytes"] = "7"
    flow.target.held["A.t"].configs["retention.ms"] = "5"
    flow.target.held["A.t"].configs.pop("cleanup.policy")
    (losing,) = planned(flow).losing["A.t"]
    assert (losing.key, losing.there, losing.here) == ("retention.ms", "5", WEEK)


def test_the_defaults_of_the_target_are_read_off_its_topics() -> None:
    flow = flow_of(config_properties_exclude="retention.ms")
    flow.source.held["t"].configs["retention.ms"] = "-1"
    add(flow.target, "other", segment_bytes="7", retention_ms="8")
    assert planned(flow).losing == {}, "that topic sets it itself"
    add(flow.target, "another")
    (losing,) = planned(flow).losing["A.t"]
    assert (losing.key, losing.there, losing.here) == ("retention.ms", WEEK, "-1")


def test_each_kind_of_difference_is_drift() -> None:
    flow = flow_of(config_properties_exclude="retention.ms")
    drive(flow)
    assert planned(flow).is_alike
    flow.target.held["A.t"].configs["retention.ms"] = "5"
    plan = planned(flow)
    assert (plan.steps, plan.drift, list(plan.losing), plan.is_alike) == ((), (), ["A.t"], False)
    flow.target.held["A.t"].configs = {"segment.bytes": "7"}
    plan = planned(flow)
    assert (plan.steps, len(plan.drift), list(plan.losing), plan.is_alike) == ((), 1, [], False)


def test_acls_that_were_made_here_go_only_by_choice() -> None:
    flow = flow_of()
    drive(flow)
    by_hand = COPY._replace(principal="User:bob")
    assert flow.target.entries is not None
    flow.target.entries.add(by_hand)
    flow.source.entries = set()
    assert said(flow) == []
    assert [(one.kind, one.name) for one in planned(flow).drift] == [
        (KeptKind.STALE_ACL, "A.t"),
        (KeptKind.ACL, "A.t"),
    ]
    assert said(flow, prune=True) == [f"remove-acl on B: {COPY}"]
    assert [one.kind for one in planned(flow, prune=True).drift] == [KeptKind.ACL]


def test_what_is_staged_for_a_failover_is_told_and_no_difference() -> None:
    flow = flow_of(sync_topic_acls_write_policy="failover")
    writes, copy = READS._replace(operation="WRITE"), COPY._replace(operation="WRITE")
    flow.source.entries = {READS, writes}
    drive(flow)
    plan = planned(flow, prune=True)
    assert (plan.steps, plan.staged, plan.skipped_acls, plan.is_alike) == ((), ((copy, False),), {}, True)
    assert f"    {copy}" in plan_lines(plan)
    WriteRights(flow.settings, allows=True, reach=flow.reach).set()
    flow.source.entries = set()  # a source that comes back from a disaster knows nobody
    plan = planned(flow, prune=True)
    assert [str(step) for step in plan.steps] == [str(COPY)]
    assert plan.staged == ((copy, True),)
    assert f"    {copy}: in force; srm-control failback takes it back" in plan_lines(plan)
    drive(flow)
    assert planned(flow, prune=True).staged == ((copy, True),), "a driver that runs on knows it, too"
    flow.change(flow_of().settings)
    assert f"remove-acl on B: {copy}" in said(flow, prune=True)


def test_topics_stay_whatever_becomes_of_their_source() -> None:
    flow = flow_of()
    add(flow.source, "t2", 1)
    drive(flow)
    flow.source.delete("t2")
    flow.target.held["A.t"].partitions += flow.target.held["A.t2"].partitions
    for prune in (False, True):
        plan = planned(flow, prune=prune)
        assert plan.steps == ()
        assert [(one.kind, one.name) for one in plan.kept] == [(KeptKind.PARTITIONS, "A.t"), (KeptKind.ORPHAN, "A.t2")]
        assert len(plan.drift) == 1
        assert [str(one.text) for one in plan.orphans] == ["t2 is gone on A; made here; no topic is ever deleted"]


def test_a_remote_topic_that_somebody_else_made_is_told_from_ours() -> None:
    flow = flow_of()
    drive(flow)
    flow.target.delete("A.t")
    add(flow.target, "A.t")
    flow.change(flow_of(**{"A->B_topics": "other"}).settings)
    plan = planned(flow)
    assert [(one.kind, one.text) for one in plan.kept] == [
        (KeptKind.TOPIC, "t does not flow; not recorded as made here; no topic is ever deleted")
    ]
    assert plan.orphans == ()


def lose(flow: MemoryFlow) -> None:
    """Somebody deletes the topic of the offset map; a start makes an empty one."""
    flow.target.delete(flow.settings.map_topic)
    ensure_topic(flow.target, map_topic(flow.settings))


def garble(flow: MemoryFlow) -> None:
    """Somebody writes into it, over what is recorded, too."""
    log = flow.target.log(TopicPartition(flow.settings.map_topic, 0))
    for key in {one.key for one in log.records.values()} | {b"\xff", b"[]", b'["acls"]', None}:
        log.append(TailRecord(0, 1, key, b'{"v":1,"made":[[1]]}'))


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda flow: flow.target.delete(flow.settings.map_topic), "is not there, so nothing on B counts as made here"),
        (lose, "knows nothing of what was copied, so it was lost; nothing on B counts as made here"),
        (garble, "records of topic mm2-offset-map.A.internal cannot be read"),
    ],
    ids=["gone", "lost", "garbled"],
)
def test_where_the_record_is_lost_nothing_is_ours_and_that_is_said(
    harm: Callable[[MemoryFlow], None], told: str
) -> None:
    flow = flow_of()
    flow.write(b"a")
    flow.run()
    drive(flow)
    harm(flow)
    flow.source.entries = set()
    del flow.source.held["t"].configs["retention.ms"]
    plan = planned(flow, prune=True)
    assert [step for step in plan.steps if step.stage is not Stage.INTERNAL] == []
    assert any(told in line for line in plan.unknown), plan.unknown
    assert any(told in line for line in drift_lines(planned(flow)))
    assert {one.kind for one in plan.kept} == {KeptKind.CONFIG, KeptKind.ACL}


def test_where_the_record_holds_what_was_made_and_no_offsets_nothing_is_lost() -> None:
    flow = flow_of()
    flow.write(b"a")
    flow.run()
    drive(flow)
    records = flow.target.log(TopicPartition(flow.settings.map_topic, 0)).records
    for offset in [offset for offset, one in records.items() if decode_map_key(one.key) is not None]:
        del records[offset]
    flow.source.entries = set()
    plan = planned(flow, prune=True)
    assert not [line for line in plan.unknown if "made here" in line]
    assert [step.stage for step in plan.steps] == [Stage.ACLS]


def test_a_remote_topic_that_was_deleted_is_not_made_anew_unless_that_is_said() -> None:
    flow = flow_of(target_changed_policy="stop")
    flow.write(b"a")
    flow.run()
    drive(flow)
    flow.target.delete("A.t")
    plan = planned(flow)
    assert of_stage(plan.steps, Stage.TOPICS) == ()
    assert "target.changed.policy=resume" in plan.world.skipped["t"]
    flow.change(flow_of(target_changed_policy="resume").settings)
    assert len(of_stage(planned(flow).steps, Stage.TOPICS)) == 1


def test_a_renamed_remote_topic_waits_for_a_decision() -> None:
    flow = flow_of()
    flow.write(b"a")
    flow.run()
    flow.change(flow_of(replication_policy_separator="-").settings)
    plan = planned(flow)
    assert plan.is_open
    assert of_stage(plan.steps, Stage.TOPICS) == ()
    assert "target.renamed.policy" in plan.world.skipped["t"]
    flow.change(flow_of(replication_policy_separator="-", target_renamed_policy="resume").settings)
    plan = planned(flow)
    assert not plan.is_open
    assert [str(step).split(":")[0] for step in of_stage(plan.steps, Stage.TOPICS)] == ["A-t"]


def test_who_runs_the_flow_is_said() -> None:
    flow = flow_of()
    assert planned(flow).world.owner is None
    flow.lease.owner = "a driver"
    assert planned(flow).world.owner == "a driver"


def test_a_thousand_topics_take_seconds() -> None:
    flow = flow_of()
    for number in range(1000):
        add(flow.source, f"t{number}", 3, retention_ms=DAY)
        if number % 2:
            add(flow.target, f"A.t{number}", 1)
    flow.source.entries = {READS._replace(name=f"t{number}") for number in range(1000)}
    began = time.monotonic()
    plan = planned(flow)
    assert time.monotonic() - began < 10
    assert [len(of_stage(plan.steps, stage)) for stage in Stage] == [8, 501, 500, 500, 1000, 0]


KEYS_OF_TOPICS = ["retention.ms", "segment.bytes", "max.message.bytes", "min.insync.replicas"]
VALUES = st.dictionaries(st.sampled_from(KEYS_OF_TOPICS), st.sampled_from(["1000000", "2000000"]))
ACLS = st.sets(
    st.builds(
        Acl,
        st.sampled_from(["t", "t2", "other"]),
        st.just("LITERAL"),
        st.sampled_from(["User:ann", "User:bob"]),
        st.just("*"),
        st.sampled_from(["READ", "WRITE", "ALL", "DESCRIBE"]),
        st.sampled_from(["ALLOW", "DENY"]),
    ),
    max_size=6,
)
CHOSEN = st.fixed_dictionaries(
    {},
    optional={
        "config_properties_never": st.sampled_from(["retention.*", "seg.*|max.*"]),
        "config_properties_always": st.sampled_from(["min.*", "max.message.bytes"]),
        "config_properties_usually": st.just("min.insync.replicas"),
        "use_defaults_from": st.just("source"),
        "target_override_policy": st.just("reset"),
        "sync_topic_acls_removal_enabled": st.just("true"),
        "sync_topic_acls_write_policy": st.just("failover"),
    },
)


class Sides(NamedTuple):
    """What is set on the topic of the source, on its remote topic by hand, and who may do what."""

    here: dict[str, str]
    by_hand: dict[str, str]
    acls: set[Acl]
    acls_by_hand: set[Acl]


SIDES = st.builds(Sides, VALUES, VALUES, ACLS, ACLS)


@settings(max_examples=30, deadline=None)
@given(before=CHOSEN, after=CHOSEN, first=SIDES, then=SIDES, prune=st.booleans())
def test_behind_a_plan_nothing_is_left_and_only_what_is_ours_was_taken_back(
    before: dict[str, str], after: dict[str, str], first: Sides, then: Sides, *, prune: bool
) -> None:
    """A flow ran by some rules; then its source, its target and its rules were changed."""
    flow = flow_of(**before)
    flow.source.held["t"].configs, flow.source.entries = first.here, first.acls
    drive(flow)
    flow.source.held["t"].configs, flow.source.entries = then.here, then.acls
    remote, entries = flow.target.held["A.t"].configs, flow.target.entries
    assert entries is not None
    remote |= then.by_hand
    entries |= {acl._replace(name="A.t") for acl in then.acls_by_hand}
    was = held(flow)
    flow.change(flow_of(**after).settings)
    with tempfile.TemporaryDirectory() as folder:
        run_plan(flow, write_plan(flow, Path(folder) / "plan.json", prune=prune))
    again = planned(flow, prune=prune)
    assert again.steps == ()
    gone = {key: value for key, value in was["B"]["A.t"][1].items() if key not in remote}
    ours = was["ours"].get("A.t", {})
    if "target_override_policy" not in after:
        assert gone.items() <= ours.items(), "a config that somebody set is never taken back"
    assert was["ACLs"] - flow.target.entries <= was["made"], "nor is an ACL"
    if prune:
        assert not [one for one in again.kept if one.kind in (KeptKind.STALE_ACL, KeptKind.STALE_CONFIG)]
