"""Plans and reports as JSON: to the byte, read back, and refused where they are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from srm_spark.change.document import FORMAT, load_plan, plans_document
from srm_spark.change.facts import canonical, differences, digest
from srm_spark.change.report import FlowReport, RunReport, load_report, save_report
from srm_spark.change.steps import (
    AddAcl,
    AddPartitions,
    ChangeConfigs,
    CreateInternalTopic,
    CreateTopic,
    RemoveAcl,
    Stage,
    step_document,
    step_of,
)
from srm_spark.errors import PlanError
from tests.unit.change.examples import COPY, DAY, flow_of, planned, write_plan

STEPS = [
    CreateInternalTopic("B", "mm2-offsets.A.internal", 25, 3, (("cleanup.policy", "compact"),), reason="r"),
    CreateTopic("B", "A.ü", 3, 2, (("retention.ms", DAY),), reason="r"),
    AddPartitions("B", "A.t", 1, 3, reason="r"),
    ChangeConfigs("B", "A.t", (("retention.ms", None, DAY), ("segment.bytes", "7", None)), reason="r"),
    AddAcl("B", COPY, reason="r"),
    RemoveAcl("B", COPY, reason="r"),
]
GOLDEN = (
    '[{"configs":{"cleanup.policy":"compact"},"does":"create-internal-topic","on":"B","partitions":25,"reason":"r",'
    '"replication_factor":3,"topic":"mm2-offsets.A.internal"},'
    '{"configs":{"retention.ms":"86400000"},"does":"create-topic","on":"B","partitions":3,"reason":"r",'
    '"replication_factor":2,"topic":"A.ü"},'
    '{"does":"add-partitions","from":1,"on":"B","reason":"r","to":3,"topic":"A.t"},'
    '{"configs":[{"from":null,"key":"retention.ms","to":"86400000"},{"from":"7","key":"segment.bytes","to":null}],'
    '"does":"change-configs","on":"B","reason":"r","topic":"A.t"},'
    '{"acl":{"host":"*","kind":"TOPIC","name":"A.t","operation":"READ","pattern":"LITERAL","permission":"ALLOW",'
    '"principal":"User:ann"},"does":"add-acl","on":"B","reason":"r"},'
    '{"acl":{"host":"*","kind":"TOPIC","name":"A.t","operation":"READ","pattern":"LITERAL","permission":"ALLOW",'
    '"principal":"User:ann"},"does":"remove-acl","on":"B","reason":"r"}]'
)
MADE_FROM = (
    '{"ACLs":{"made":[],"stale":[],"there":[],"wanted":["ALLOW READ on topic A.t to User:ann from *"]},"flow":"A->B",'
    '"internal topics":{"A mm2-offset-syncs.B.internal":null,"B mm2-control.A.internal":null,'
    '"B mm2-leases.A.internal":null,'
    '"B mm2-offset-map.A.internal":null,"B mm2-offsets.A.internal":null,"B mm2-srm-status.A.internal":null,'
    '"B srm-meta.internal":null,"B srm-metrics-A.internal":null},"prune":false,"source":"memory:A",'
    '"target":"memory:B","topics":{"t":{"configs":{"retention.ms":"86400000"},"partitions":1,'
    '"recorded configs":{},"remote configs":{},"remote partitions":null,'
    '"remote topic":"A.t"}}}'
)


def test_steps_are_written_to_the_byte_and_read_back() -> None:
    assert canonical([step_document(step) for step in STEPS]) == GOLDEN
    read = [step_of(one) for one in json.loads(GOLDEN)]
    assert read == STEPS
    assert [step.reason for step in read] == ["r"] * 6
    assert len({*read, *STEPS}) == 6


def test_what_a_plan_was_made_from_is_written_to_the_byte() -> None:
    plan = planned(flow_of())
    assert canonical(plan.made_from) == MADE_FROM
    assert plan.hash == "f5466845d3d38ca406e35f22f1f559e4695b6174dd98fe35368eb7af0a425d75"


def test_a_plan_is_read_back(tmp_path: Path) -> None:
    flow = flow_of()
    read, plan = load_plan(write_plan(flow, tmp_path / "plan.json", prune=True)), planned(flow, prune=True)
    assert (read.prune, [one.flow for one in read.flows]) == (True, ["A->B"])
    assert (read.flows[0].steps, read.flows[0].hash) == (plan.steps, plan.hash)
    assert digest(read.flows[0].made_from) == plan.hash
    assert read.id != load_plan(write_plan(flow, tmp_path / "plan.json")).id


def test_a_plan_tells_everything_that_the_text_tells() -> None:
    (flow,) = plans_document([planned(flow_of())], prune=False)["flows"]
    assert flow.keys() == {
        "flow",
        "hash",
        "owner",
        "steps",
        "kept",
        "losing_configs",
        "losses",
        "groups",
        "skipped",
        "staged_acls",
        "renames",
        "rights",
        "internal_topics",
        "warnings",
        "unknown",
        "made_from",
    }


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format":1}', '{"format":1,"prune":false,"flows":[{}]}', "null"])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(PlanError, match="this is no plan"):
        load_plan(path)


def test_a_plan_that_is_not_there_of_another_format_or_changed_by_hand_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(PlanError, match="cannot be read"):
        load_plan(path)
    document = json.loads(write_plan(flow_of(), path).read_text())
    path.write_text(json.dumps({**document, "format": 2}))
    with pytest.raises(PlanError, match="format 2, expected 1"):
        load_plan(path)
    document["flows"][0]["made_from"]["topics"]["t"]["partitions"] = 7
    path.write_text(json.dumps(document))
    with pytest.raises(PlanError, match="does not have its hash"):
        load_plan(path)
    document["flows"][0]["steps"][0]["does"] = "delete-topic"
    path.write_text(json.dumps(document))
    with pytest.raises(PlanError, match="a step that does 'delete-topic'"):
        load_plan(path)


def test_a_plan_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"cannot be written: .* --out"):
        write_plan(flow_of(), tmp_path / "none" / "plan.json")


def test_a_report_is_read_back_and_belongs_to_one_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.report.json"
    assert load_report(path, "p") is None
    report = FlowReport().entered(Stage.TOPICS).left(STEPS[:2], {STEPS[1]: "no"}).entered(Stage.ACLS)
    whole = RunReport("p", "2026-11-25T15:00:00Z", None, {"A->B": report})
    save_report(path, whole)
    assert load_report(path, "p") == whole
    assert load_report(path, "q") is None
    assert report.may_be_done(STEPS) == {*STEPS[4:], STEPS[1]}
    for text in ("[]", "{}", '{"format": 1, "plan": "p"}', "{"):
        path.write_text(text)
        with pytest.raises(PlanError, match="no report of a plan"):
            load_report(path, "p")
    path.write_text('{"format": 2}')
    with pytest.raises(PlanError, match="format 2, expected 1"):
        load_report(path, "p")


def test_differences_name_what_they_are_about() -> None:
    then = {"topics": {"t": {"partitions": 1}, "gone": {"partitions": 2}}, "ACLs": ["a", "b"], "prune": False}
    now = {"topics": {"t": {"partitions": 3}, "new": {"partitions": 1}}, "ACLs": ["b", "c"], "prune": False}
    assert list(differences(then, now)) == [
        "ACLs: a is gone",
        "ACLs: c is new",
        "topics gone is gone",
        "topics new is new",
        "topics t partitions: 1 in the plan, 3 now",
    ]


ODD = {
    "too deep": "[" * 200_000,
    "no facts": '{"format":FORMAT,"prune":false,"flows":[{"flow":"A->B","hash":"x","made_from":1,"steps":[]}]}',
    "no value": '{"format":FORMAT,"prune":false,"flows":[{"flow":"A->B","hash":"x","made_from":{},"steps":'
    '[{"does":"change-configs","on":"B","topic":"x","configs":[{"key":"a","from":[1],"to":null}]}]}]}',
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_what_is_no_plan_is_a_clear_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text.replace("FORMAT", str(FORMAT)))
    with pytest.raises(PlanError, match="this is no plan"):
        load_plan(path)


def test_a_report_that_is_too_deep_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "plan.report.json"
    path.write_text("[" * 200_000)
    with pytest.raises(PlanError, match="this is no report of a plan"):
        load_report(path, "x")


def test_each_part_of_an_acl_of_a_step_is_a_text() -> None:
    acl = {**COPY._asdict(), "name": ["A.t"]}
    (step,) = {step_of({"does": "add-acl", "on": "B", "acl": acl})}
    assert str(step)
