"""The pages that are made from the program are those in docs/."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.cli.document import pages

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["commands.md", "failures.md"])
def test_a_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text() == pages()[name], "run: python -m srm_spark.cli.document docs"
