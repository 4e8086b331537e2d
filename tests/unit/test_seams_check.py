"""The check of `make lint` that tests lean on seams alone finds what it is there for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.seams import found_in, main


@pytest.mark.parametrize(
    "line",
    [
        "from tests.unit.test_rows import row",
        "from tests.unit import test_rows",
        "import tests.broker.test_groups",
        "from .test_rows import row",
        'monkeypatch.setattr(fetch, "_MORE_SECONDS", 0.1)',
        'monkeypatch.setattr("srm_spark.state.map_table._ROWS", 2)',
        'monkeypatch.setattr("srm_spark._hidden.ROWS", 2)',
        'monkeypatch.delattr(fetch, "_WAIT")',
        'setattr(fetch, "_WAIT", 2)',
        'with mock.patch("srm_spark.kafka.fetch._WAIT", 2): pass',
        'with patch.object(fetch, "_WAIT", 2): pass',
        "fetch._WAIT = 2",
        "reader._position += 1",
    ],
)
def test_each_way_around_a_seam_is_found(line: str) -> None:
    assert [at for at, _ in found_in(f"x = 1\n{line}\n")] == [2]


@pytest.mark.parametrize(
    "line",
    [
        "from tests.unit.arrow_rows import run_of",
        "from hypothesis.extra import test_something",
        'monkeypatch.setattr(fetch, "idle_sources", {})',
        'monkeypatch.setattr(Failure, "__init__", init)',
        "self._store = 1",
        "_SECONDS = 2",
    ],
)
def test_what_is_public_or_its_own_is_none(line: str) -> None:
    assert not list(found_in(line))


def test_the_tests_have_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(Path(__file__).parents[1]) == 0, capsys.readouterr().out
