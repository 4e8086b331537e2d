"""How the status is shown: as a table, wide, as JSON and YAML, and again and again."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from rich.console import Console

from srm_spark.cli.control import main
from srm_spark.cli.status import watch
from srm_spark.cli.status_view import age, documents, size, text
from srm_spark.core.acts import Scope
from srm_spark.core.audit import Audit
from srm_spark.core.driver_status import DriverId, FlowDrivers, FlowState
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.standstills import Standstill
from srm_spark.look.flows import FlowReport, Lag, PartitionLag
from tests.unit.driver_samples import AT, HELD, OWNER

GOOD = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"
STANDBY = replace(OWNER, driver=DriverId("host-2", 12, 1), state=FlowState.WAITING)
FULL = FlowReport(
    Flow("A", "B"),
    AT,
    FlowDrivers(OWNER, standby=(STANDBY,)),
    Lag(12_000, 3_400_000, 2.5, "clusters"),
    (
        PartitionLag(TopicPartition("t", 0), TopicPartition("A.t", 0), 10, 10, 0),
        PartitionLag(TopicPartition("t", 1), TopicPartition("A.t", 1), None, 12_000, 12_000, "held at offset 0: no"),
    ),
    {HELD.scope: HELD},
)
SILENT = FlowReport(
    Flow("A", "B"),
    AT,
    FlowDrivers(silent=(replace(OWNER, at=AT - 90_000),)),
    Lag(unknown_since=AT - 90_000, reason="A does not answer"),
    source_down="A does not answer",
    unknown_since=AT - 90_000,
)
GONE = FlowReport(Flow("A", "B"), AT, lag=Lag(reason="B does not answer"), target_down="B does not answer")


def rows(shown: str) -> list[list[str]]:
    return [[cell for cell in line.split("  ") if cell.strip()] for line in shown.splitlines()]


def test_a_flow_that_runs() -> None:
    shown = text([FULL])
    cells = [cell.strip() for cell in rows(shown)[1]]
    assert cells == [
        "A->B",
        "running",
        "host-1 pid 4711",
        "12,000",
        "3.4 MB",
        "2.5 s",
        "1,234",
        "40 ms",
        "real time 1, micro-batch 1",
        "1",
        "2 of 3",
    ]
    assert "A->B: host-2 pid 12 stands by since 2023-11-14T22:13:23Z" in shown
    assert "A->B: t-1 stands still: held at offset 0: no" in shown
    assert "A->B: group g is not in sync: t-0: not synced: the group has members on the target" in shown
    assert "A->B: last error at 2023-11-14T22:12:25Z: B did not answer" in shown
    assert "A.t" not in shown, "partitions are for wide"


MINUTE = 60_000
SINCE = AT - 60 * MINUTE


@pytest.mark.parametrize(
    ("audit", "said"),
    [
        (Audit(60.0, AT), ["audit: none has ended yet"]),
        (Audit(60.0, SINCE, AT - MINUTE, 12_000), ["audit of 2023-11-14T22:12:25Z: 12000 records found right"]),
        (
            Audit(60.0, SINCE, AT - MINUTE, 12_000, 2, "t-0: 2 lost", 7, "u-1: u-1 is not on the source"),
            [
                "audit of 2023-11-14T22:12:25Z: copies differ",
                "2 differences, the first t-0: 2 lost: srm-control verify",
                "7 source offsets copied by others, of which the map knows nothing",
                "not looked at: u-1: u-1 is not on the source",
            ],
        ),
        (
            Audit(60.0, SINCE, AT - 9 * MINUTE, 5, failed="A does not answer"),
            [
                "no audit has ended since 2023-11-14T22:04:25Z: A does not answer",
                "audit of 2023-11-14T22:04:25Z: 5 records found right",
            ],
        ),
    ],
    ids=["begins", "right", "wrong", "late"],
)
def test_what_audits_found(audit: Audit, said: list[str]) -> None:
    report = replace(FULL, drivers=FlowDrivers(replace(OWNER, audit=audit)))
    lines = [line.strip().removeprefix("A->B: ") for line in text([report]).splitlines()]
    assert [line for line in lines if "audit" in line or line in said] == said
    (flow,) = documents([report])["flows"]
    assert json.loads(json.dumps(flow))["owner"]["audit"]["late"] == audit.late(AT)


@pytest.mark.parametrize(("goal", "said"), [(None, False), (3, False), (2, True)])
def test_a_goal_that_is_not_kept_is_told(goal: int | None, said: bool) -> None:
    report = replace(FULL, rpo_goal=goal)
    line = "A->B: a failover now would lose 2.5 s of data; the goal is 2.0 s"
    assert (line in text([report])) == said
    assert documents([report])["flows"][0]["rpo_goal_seconds"] == goal


def test_wide_has_topics_and_partitions() -> None:
    shown = text([FULL], is_wide=True)
    lines = [[cell.strip() for cell in line] for line in rows(shown)]
    assert ["t", "A.t", "all 2", "12,000", "1"] in lines
    assert ["0", "10", "10", "0"] in lines
    assert ["1", "nothing yet", "12000", "12000", "held at offset 0: no"] in lines


def test_what_nobody_knows_is_no_number() -> None:
    shown = text([SILENT])
    cells = [cell.strip() for cell in rows(shown)[1]]
    since = "unknown since 22:11:55Z"
    assert cells == ["A->B", since, "nobody", since, "unknown", "unknown", since, since, since, "0 recorded", since]
    assert "host-1 pid 4711 is silent: unknown since 2023-11-14T22:11:55Z" in shown
    document = documents([SILENT])["flows"][0]
    assert (document["state"], document["owner"], document["lag"]["records"]) == (None, None, None)
    assert document["unknown_since"] == document["lag"]["unknown_since"] == "2023-11-14T22:11:55Z"
    (silent,) = document["silent"]
    assert silent == {
        "host": "host-1",
        "pid": 4711,
        "started": "2023-11-14T22:13:20Z",
        "at": "2023-11-14T22:11:55Z",
        "last_state": "running",
        "reason": None,
    }


def test_a_target_that_does_not_answer_leaves_nothing() -> None:
    shown = text([GONE])
    assert [cell.strip() for cell in rows(shown)[1]] == ["A->B", "unknown", "nobody", *["unknown"] * 8]
    assert "A->B: nothing is known: B does not answer" in shown


def test_before_the_first_driver() -> None:
    shown = text([FlowReport(Flow("A", "B"), AT, lag=Lag(3, None, 1.0, "clusters"))])
    assert [cell.strip() for cell in rows(shown)[1]][1] == "no driver yet"
    assert "no driver has said anything here" in shown


def test_a_table_does_not_grow_with_what_is_held() -> None:
    held = {Scope("t", number): Standstill(Scope("t", number), "no") for number in range(50)}
    shown = text([replace(FULL, standing=held)])
    assert "… and 40 more" in shown
    assert "… and" not in text([replace(FULL, standing=held)], is_wide=True)
    more = replace(FULL, standing=held, drivers=FlowDrivers(replace(OWNER, held_more=7)))
    assert "… and 47 more" in text([more])
    assert "… and 7 more" in text([more], is_wide=True)


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (3 * 10**15, "3000.0 TB")],
)
def test_sizes(number: int, shown: str) -> None:
    assert size(number) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(0.04, "0.0 s"), (59, "59 s"), (600, "10 min"), (7200, "2.0 h")])
def test_ages(seconds: float, shown: str) -> None:
    assert age(seconds) == shown


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    path = tmp_path / "srm.properties"
    path.write_text(GOOD)
    found = [FULL]

    @contextmanager
    def looking(*_: object) -> Iterator[object]:
        yield lambda: tuple(found)

    monkeypatch.setattr("srm_spark.cli.status.looking", looking)

    def asked(*words: str, report: FlowReport = FULL) -> Result:
        found[0] = report
        return CliRunner().invoke(main, ["--config", str(path), "status", *words])

    return asked


def test_json_and_yaml_say_the_same(ask: Callable[..., Result]) -> None:
    as_json, as_yaml = ask("-o", "json"), ask("-o", "yaml")
    document = json.loads(as_json.stdout)
    assert yaml.safe_load(as_yaml.stdout) == document
    assert document["version"] == 1
    (flow,) = document["flows"]
    assert flow["owner"]["held"] == flow["held"] == {"t-1": "held at offset 0: no"}
    assert flow["owner"]["lanes"] == {"realtime": 1, "micro_batch": 1}
    assert flow["lag"] == {
        "records": 12_000,
        "bytes": 3_400_000,
        "seconds": 2.5,
        "told_by": "clusters",
        "unknown_since": None,
        "reason": None,
    }
    assert flow["partitions"][1] == {
        "partition": 1,
        "remote": "A.t",
        "next_offset": None,
        "end": 12_000,
        "records": 12_000,
        "held": "held at offset 0: no",
        "kind": None,
        "unknown": None,
        "topic": "t",
    }


def test_exit_codes(ask: Callable[..., Result]) -> None:
    assert ask().exit_code == ask("-o", "wide").exit_code == 0
    assert ask("-o", "wide", report=SILENT).exit_code == ask("-o", "json", report=GONE).exit_code == 3
    assert ask("--watch", "-o", "json").exit_code == 2


def test_a_watched_table_follows_what_is_found() -> None:
    waited: list[float] = []
    reports = iter([[FULL], [SILENT]])
    to = io.StringIO()
    console = Console(file=to, width=200, force_terminal=True)
    watch(lambda: next(reports), is_wide=False, console=console, rounds=range(2), wait=waited.append)
    assert waited == [2.0, 2.0]
    first, _, last = to.getvalue().partition("unknown since 22:11:55Z")
    assert "running" in first
    assert "is silent" in last


def test_a_watched_table_ends_by_ctrl_c_and_needs_no_terminal() -> None:
    def wait(_: float) -> None:
        raise KeyboardInterrupt

    to = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        watch(lambda: [FULL], is_wide=True, console=Console(file=to, width=200), wait=wait)
    assert ended.value.code == 130
    assert "host-1 pid 4711" in to.getvalue()
