"""Every page of docs/procedures does on real brokers what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.terminal import terminal_of
from tests.procedures import pages, read_page


@pytest.mark.slow
@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_a_page_does_what_it_shows(path: Path, tmp_path: Path) -> None:
    page = read_page(path)
    with terminal_of(page, tmp_path) as terminal:
        for step in page.steps:
            try:
                terminal.take(step)
            except BaseException:
                print(terminal.logs())
                raise
