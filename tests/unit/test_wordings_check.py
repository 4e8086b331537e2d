"""The check of `make lint` that words of failures decide nothing finds what it is there for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.wordings import found_in, main


@pytest.mark.parametrize(
    "line",
    [
        'x = hold.reason.startswith("foreign writer")',
        'if "overflow" in failure: pass',
        "if SourceChanged.__name__ in failure: pass",
        'state = A if "UNKNOWN_MEMBER_ID" in refusal else B',
        'if failure == "no": pass',
        "lines = failure.splitlines()",
        "found = _DENIED.search(failure)",
        're.sub("x", "y", one.why)',
        'if "gone" in str(error): pass',
        'str(report.failure).partition(":")',
    ],
)
def test_each_way_to_look_into_a_sentence_is_found(line: str) -> None:
    assert list(found_in(f"x = 1\n{line}\n")) == [2]


@pytest.mark.parametrize(
    "line",
    ["if failure is None: pass", "if partition in failures: pass", 'text = f"{reason}; x"', "if old != reason: pass"],
)
def test_what_only_hands_it_on_is_none(line: str) -> None:
    assert not list(found_in(line))


def test_the_product_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(Path(__file__).parents[2] / "srm_spark") == 0, capsys.readouterr().out
