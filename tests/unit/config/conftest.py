"""A configuration from a few lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from srm_spark.config.load import Loaded, load

END = "\ndialect = mm2\n"
"""Behind everything else, so that lines keep their numbers: who leaves topics out means MirrorMaker 2's default."""
BASE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"

Loader = Callable[..., Loaded]


@pytest.fixture
def loaded(tmp_path: Path) -> Loader:
    """`loaded(text)` loads a file of two clusters and one flow with `text` added; `base=""` leaves those out.

    It is one of MirrorMaker 2, unless `end` or `text` say something else.
    """

    def make(
        text: str = "", *, base: str = BASE, end: str = END, name: str = "srm.properties", **arguments: object
    ) -> Loaded:
        path = tmp_path / name
        path.write_text(base + text + (end if base and "dialect" not in text else ""), encoding="utf-8")
        return load([path], **arguments)  # type: ignore[arg-type]

    return make


def problems(loaded: Loaded) -> list[str]:
    """The problems without the folder of the file."""
    return [
        f"{Path(problem.location).name}|{problem.key}|{problem.message}|{problem.hint}"
        for problem in loaded.report.problems
    ]
