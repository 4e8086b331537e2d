"""What `srm-control offsets rebuild` prints and how it ends. No cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.errors import LeaseHeld
from srm_spark.flow.rebuild import Rebuilt

CONFIG = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"
P, Q, R = (TopicPartition("t", number) for number in range(3))


def rebuild(folder: Path) -> Result:
    path = folder / "srm.properties"
    path.write_text(CONFIG)
    return CliRunner().invoke(main, ["offsets", "rebuild", "--config", str(path), "--source", "A", "--target", "B"])


def test_each_partition_has_a_line_and_one_that_is_left_alone_shows_in_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = [Rebuilt(P, OffsetRange(0, 12), 9), Rebuilt(Q, OffsetRange(4, 4))]
    monkeypatch.setattr("srm_spark.cli.rebuild.rebuild_map", lambda *_: tuple(done))
    answer = rebuild(tmp_path)
    assert (answer.exit_code, answer.output.splitlines()) == (
        0,
        ["t-0: 9 records, source offsets 0 to 11", "t-1: nothing is missing"],
    )
    done.append(Rebuilt(R, OffsetRange(0, 0), refusal="they do not pair up"))
    answer = rebuild(tmp_path)
    assert (answer.exit_code, answer.output.splitlines()[-1]) == (3, "t-2: not rebuilt: they do not pair up")


def test_a_flow_that_runs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def held(*_: object) -> tuple[Rebuilt, ...]:
        raise LeaseHeld("flow A->B: a driver runs it")

    monkeypatch.setattr("srm_spark.cli.rebuild.rebuild_map", held)
    answer = rebuild(tmp_path)
    assert (answer.exit_code, "a driver runs it" in answer.output) == (1, True)
