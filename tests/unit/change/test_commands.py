"""What `srm-control plan`, `apply` and `drift` print, and how they end. The clusters are in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from srm_spark.change.report import report_path
from srm_spark.cli.control import main
from srm_spark.config.load import load
from srm_spark.config.settings import FlowSettings
from srm_spark.core.model import TopicPartition
from srm_spark.doctor.report import Finding, failed, ok, unknown
from tests.unit.change.examples import DAY, READS, WEEK, add, drive, flow_of
from tests.unit.memory_flow import MemoryFlow

CONFIG = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"
CONFIG += "emit.heartbeats.enabled = false\n"
PLAN = f"""\
A->B: 10 changes
  internal topics on B
    + mm2-offsets.A.internal: 25 partitions, factor 1, cleanup.policy=compact  (for how far each partition was \
replicated)
    + mm2-leases.A.internal: 1 partition, factor 1, cleanup.policy=compact, min.cleanable.dirty.ratio=0.1, \
min.compaction.lag.ms=600000, segment.ms=600000  (the flow writes there)
    + mm2-offset-map.A.internal: 1 partition, factor 1, cleanup.policy=compact  (for the offset map)
    + mm2-control.A.internal: 1 partition, factor 1, cleanup.policy=compact  (for the lists of srm-control)
    + mm2-srm-status.A.internal: 1 partition, factor 1, cleanup.policy=compact, message.timestamp.type=LogAppendTime, \
min.cleanable.dirty.ratio=0.1, segment.ms=600000  (the flow writes there)
    + srm-metrics-A.internal: 1 partition, factor 1, cleanup.policy=delete, retention.ms=10800000, segment.ms=1800000  \
(the flow writes there)
    + srm-meta.internal: 1 partition, factor 1, cleanup.policy=compact  (the flow writes there)
  internal topics on A
    + mm2-offset-syncs.B.internal: 1 partition, factor 1, cleanup.policy=compact  (for offset syncs)
  remote topics on B
    + A.t: 1 partition, factor 1, retention.ms={DAY}  (t matches the topic filter (t.*))
  ACLs on B
    + ALLOW READ on topic A.t to User:ann from *  (A has ALLOW READ on topic t to User:ann from *)
  groups: neither checkpoints nor group offsets are wanted
  is left out
    1 topic (__consumer_offsets): is an internal topic
  is not allowed, or not known
    read: it is missing; allow it
    1 right cannot be told from here; srm-driver doctor has details
    whether the defaults of B lose records of the 1 topic to create: B has no topic that tells
  no remote topic has another name than before
no topic and no partition is ever deleted
"""

Ask = Callable[..., Result]


@pytest.fixture
def flow(monkeypatch: pytest.MonkeyPatch) -> MemoryFlow:
    made = flow_of()

    def rights(_: FlowSettings) -> list[Finding]:
        return [ok("a", "b"), failed("read", "it is missing", "allow it"), unknown("c", "d")]

    monkeypatch.setattr("srm_spark.cli.plan.connect", made.reach)
    monkeypatch.setattr("srm_spark.cli.plan.rights_of", rights)
    return made


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    path = tmp_path / "srm.properties"
    path.write_text(CONFIG)

    def asked(*words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, ["--config", str(path), *words], input=stdin)

    return asked


def read(result: Result) -> Any:
    return json.loads(result.stdout)


def test_a_plan_is_printed_with_reasons(flow: MemoryFlow, ask: Ask) -> None:
    add(flow.source, "__consumer_offsets")
    result = ask("plan")
    assert (result.output, result.exit_code) == (PLAN, 0)


def test_a_plan_as_json_is_what_is_written(flow: MemoryFlow, ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    result = ask("plan", "--out", str(path), "--prune", "-o", "json")
    assert read(result) == json.loads(path.read_text())
    (of_flow,) = read(result)["flows"]
    assert [step["does"] for step in of_flow["steps"]][8:] == ["create-topic", "add-acl"]
    assert [finding["health"] for finding in of_flow["rights"]] == ["failed", "unknown"]
    assert "srm-control apply" in result.stderr


def test_losses_and_what_is_kept_and_a_driver_are_printed(flow: MemoryFlow, ask: Ask) -> None:
    flow.write(b"a", b"b")
    flow.run()
    drive(flow)
    flow.write(b"c", b"d", b"e")
    flow.log.delete_before(4)
    flow.source.held["t"].configs.clear()
    flow.target.held["A.t"].configs["retention.ms"] = "5"
    flow.target.held["mm2-offsets.A.internal"].configs["cleanup.policy"] = "delete"
    flow.lease.owner = "host-1"
    text = ask("plan").output
    assert "  host-1 runs the flow and does all of this by itself, but for what only --prune removes\n" in text
    assert "  is kept as it is\n    A.t: retention.ms=5: set by hand; target.override.policy = reset takes it" in text
    assert "    t-0: offsets 2 to 3 are deleted on A and were never copied\n" in text
    assert f"    retention.ms=5 and not {WEEK}: copies go earlier (A.t)\n" in text
    assert "mm2-offsets.A.internal on B holds how far each partition was replicated and has cleanup.policy" in text


def test_long_lists_are_cut(flow: MemoryFlow, ask: Ask) -> None:
    for number in range(30):
        add(flow.source, f"t{number}")
    result = ask("plan")
    assert result.output.count("    + A.t") == 20
    assert "    and 11 more: -o json has all of them\n" in result.output


def test_a_decision_that_is_open_shows_in_the_exit_code(flow: MemoryFlow, ask: Ask) -> None:
    flow.write(b"a")
    flow.run()
    flow.change(flow_of(replication_policy_separator="-").settings)
    result = ask("plan")
    assert result.exit_code == 3
    assert (
        "  t: A.t -> A-t, which is not there yet\n    * target.renamed.policy = stop: the topic waits" in result.output
    )


def test_the_files_are_read_once(flow: MemoryFlow, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = mock.Mock(wraps=load)
    monkeypatch.setattr("srm_spark.cli.options.load", reads)
    path = str(tmp_path / "plan.json")
    for words in (("plan", "--out", path, "--flow", "A->B"), ("drift",), ("apply", path, "--yes")):
        ask(*words)
        assert reads.call_count == 1, words
        reads.reset_mock()


def test_a_plan_is_applied_and_a_second_run_says_that_nothing_is_left(
    flow: MemoryFlow, ask: Ask, tmp_path: Path
) -> None:
    path = str(tmp_path / "plan.json")
    ask("plan", "--out", path)
    refused = ask("apply", path, stdin="n\n")
    assert (refused.exit_code, "nothing was changed" in refused.output, flow.target.held) == (1, True, {})
    result = ask("apply", path, stdin="y\n")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "A->B: 10 changes done, 0 refused")
    assert "    + A.t: 1 partition, factor 1" in result.stderr
    assert "no topic and no partition is ever deleted" in result.stderr
    assert (tmp_path / "plan.report.json").exists()
    again = ask("apply", path, "--yes")
    assert (again.exit_code, again.stdout.splitlines()[-1]) == (0, "nothing is left to do; nothing was changed")
    assert read(ask("apply", path, "--yes", "-o", "json"))["ended"] is not None


def test_a_plan_of_nothing_writes_no_report(flow: MemoryFlow, ask: Ask, tmp_path: Path) -> None:
    drive(flow)
    path = str(tmp_path / "plan.json")
    assert "A->B: nothing to change\n" in ask("plan", "--out", path).output
    assert "nothing is left to do" in ask("apply", path, "--yes").output
    assert not (tmp_path / "plan.report.json").exists()


def test_a_refused_step_shows_in_the_exit_code(flow: MemoryFlow, ask: Ask, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    ask("plan", "--out", path)
    flow.target.forbidden = {"A.t": "not allowed"}
    result = ask("apply", path, "--yes")
    assert result.exit_code == 3
    assert "    ALLOW READ on topic A.t to User:ann from *: not allowed\n" in result.stdout
    flow.target.forbidden = {}
    assert ask("apply", path, "--yes").exit_code == 0


def test_a_world_that_has_moved_is_an_error(flow: MemoryFlow, ask: Ask, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    ask("plan", "--out", path)
    add(flow.source, "t2")
    result = ask("apply", path, "--yes")
    assert (result.exit_code, "A->B: not in the plan: create-topic on B: A.t2" in result.output) == (1, True)
    assert flow.target.held == {}


def test_an_interrupt_says_how_to_go_on(flow: MemoryFlow, ask: Ask, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    ask("plan", "--out", path)

    def happens(what: str) -> None:
        if what == "add ACLs":
            raise KeyboardInterrupt

    flow.target.happens = happens
    result = ask("apply", path, "--yes")
    assert (result.exit_code, "the same command goes on" in result.output) == (130, True)
    flow.target.happens = lambda _: None
    assert ask("apply", path, "--yes").stdout.splitlines()[0] == "A->B: 10 changes done, 0 refused"


@pytest.mark.parametrize("word", ["plan", "drift", "apply"])
def test_an_interrupt_in_front_of_any_change_ends_the_command(
    flow: MemoryFlow, ask: Ask, tmp_path: Path, word: str
) -> None:
    def happens(_: str) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "plan.json"
    ask("plan", "--out", str(path))
    flow.target.happens = happens
    result = ask(word, *([str(path), "--yes"] if word == "apply" else []))
    assert (result.exit_code, result.output.splitlines()[-1]) == (130, "interrupted")
    assert not report_path(path).exists()


def test_a_question_that_nobody_answers_is_an_error(flow: MemoryFlow, ask: Ask, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    ask("plan", "--out", path)
    nobody = ask("apply", path, stdin="")
    assert (nobody.exit_code, flow.target.held) == (1, {})


def test_a_cluster_that_goes_away_says_how_to_go_on(flow: MemoryFlow, ask: Ask, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    ask("plan", "--out", path)

    def happens(what: str) -> None:
        if what == "add ACLs":
            flow.target.down = "no broker answers"

    flow.target.happens = happens
    result = ask("apply", path, "--yes")
    assert (result.exit_code, "the same command goes on" in result.output) == (1, True)
    assert result.output.splitlines()[-1] == "Error: cluster B (memory:B): cannot add ACLs: no broker answers"
    flow.target.happens, flow.target.down = lambda _: None, None
    assert ask("apply", path, "--yes").stdout.splitlines()[0] == "A->B: 10 changes done, 0 refused"


def test_a_run_that_stopped_behind_its_last_step_is_finished(flow: MemoryFlow, ask: Ask, tmp_path: Path) -> None:
    """What was made here, and what came from the source, is recorded, though no step is left."""
    flow.source.entries = set()
    path = str(tmp_path / "plan.json")
    ask("plan", "--out", path)

    def happens(what: str) -> None:
        if what == "list topics" and "A.t" in flow.target.held:
            raise KeyboardInterrupt

    flow.target.happens = happens
    assert ask("apply", path, "--yes").exit_code == 130
    flow.target.happens = lambda _: None
    assert "every step is done; what an earlier run had to record is recorded\n" in ask("apply", path).output
    assert flow.target.log(TopicPartition("mm2-offset-map.A.internal", 0)).end == 2
    assert "nothing is left" in ask("apply", path, "--yes").output


def test_a_cluster_that_is_away_is_an_error(flow: MemoryFlow, ask: Ask, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    ask("plan", "--out", path)
    flow.target.down = "no broker answers"
    for words in (("plan",), ("drift",), ("apply", path, "--yes")):
        result = ask(*words)
        assert (result.exit_code, "no broker answers" in result.output) == (1, True)


def test_a_plan_of_a_flow_that_is_not_there_is_told(flow: MemoryFlow, ask: Ask, tmp_path: Path) -> None:
    assert flow.settings.flow.source == "A"
    path = tmp_path / "plan.json"
    ask("plan", "--out", str(path))
    path.write_text(path.read_text().replace('"flow": "A->B"', '"flow": "A->C"', 1))
    result = ask("apply", str(path), "--yes")
    assert (result.exit_code, "A->C is not an enabled flow of these files" in result.output) == (1, True)


def test_drift_says_what_differs(flow: MemoryFlow, ask: Ask) -> None:
    drive(flow)
    result = ask("drift")
    assert (result.exit_code, result.output) == (0, "A->B: nothing differs\n")
    flow.target.held["A.t"].configs |= {"retention.ms": WEEK, "segment.bytes": "7"}
    assert flow.target.entries is not None
    flow.target.entries.add(READS._replace(name="A.t", principal="User:bob"))
    result = ask("drift")
    assert result.exit_code == 3
    assert result.output.splitlines() == [
        "A->B: 1 change to apply, 2 differences kept",
        "  configs that apply would change",
        f"    ~ A.t: retention.ms {WEEK} -> {DAY}  (t has it)",
        "  is kept as it is",
        "    A.t: segment.bytes=7: set by hand; target.override.policy = reset takes it back",
        "    A.t: ALLOW READ on topic A.t to User:bob from *: made by somebody else",
    ]
    (of_flow,) = read(ask("drift", "-o", "json"))["flows"]
    assert [one["kind"] for one in of_flow["kept"]] == ["config", "acl"]
    flow.target.held["A.t"].configs = {"retention.ms": DAY}
    flow.source.held["t"].configs.clear()
    flow.target.held["A.t"].configs["retention.ms"] = "5"
    assert "1 topic worse off" in ask("drift").output
