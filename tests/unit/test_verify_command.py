"""What `srm-control verify` declines before it reads anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main


@pytest.mark.parametrize("more", [("--since", "2026-11-27T08:00:00Z"), ("--sample", "5")])
def test_what_is_not_compared_from_the_beginning_leaves_no_state(more: tuple[str, ...], tmp_path: Path) -> None:
    """A later one would go on behind records that nobody has looked at."""
    file = tmp_path / "srm.properties"
    file.write_text("")
    result = CliRunner().invoke(main, ["verify", "--config", str(file), "--state", str(tmp_path / "state"), *more])
    assert result.exit_code == 2
    assert f"{more[0].removeprefix('--')} or --state" in " ".join(result.output.split())
    assert not (tmp_path / "state").exists()
