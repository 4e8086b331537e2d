"""What `srm-control groups status` prints where there is nothing to print. No cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.config.settings import FlowSettings
from srm_spark.core.filters import NameFilter
from srm_spark.core.model import TopicPartition
from srm_spark.flow.groups.report import GroupReport, GroupRow

CONFIG = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"


def test_without_groups_a_sentence_stands_in_for_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "srm_spark.cli.groups.report_groups", lambda *_: GroupReport((), None, left_out={"audit": "excluded"})
    )
    path = tmp_path / "srm.properties"
    path.write_text(CONFIG)
    asked = ["groups", "status", "--config", str(path), "--source", "A", "--target", "B", "--group", "billing.*"]
    assert CliRunner().invoke(main, asked).output.splitlines() == [
        "no group of A that matches billing.* has committed an offset on a topic of A->B",
        "not taken (excluded): audit",
    ]


def test_offsets_are_exported_on_a_host_without_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[FlowSettings] = []

    def found(settings: FlowSettings, groups: NameFilter) -> GroupReport:
        asked.append(settings)
        row = GroupRow("g", TopicPartition("A.t", 0), 7, 5, "checkpoint")
        return GroupReport((row,) if groups.matches("g") else (), "no file says where it is")

    monkeypatch.setattr("srm_spark.cli.groups.report_checkpoints", found)
    bare = ("--bootstrap-server", "k:9092", "offsets", "--source", "A", "--target", "B", "--export")
    answer = CliRunner().invoke(main, [*bare, "--group", "g", "--props", "client.id=me"])
    assert (answer.exit_code, answer.stdout) == (0, "g,A.t,0,5\n")
    assert "from checkpoints, since the source does not answer: no file says where it is" in answer.stderr
    assert (asked[0].target.bootstrap_servers, str(asked[0].flow)) == ("k:9092", "A->B")
    assert CliRunner().invoke(main, [*bare, "--group", "h"]).exit_code == 1
    assert "write --config FILE, or --bootstrap-servers" in CliRunner().invoke(main, bare[2:]).output
