"""What `srm-control groups status` prints where there is nothing to print. No cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.flow.groups.report import GroupReport

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
