"""Where machine code is kept: apart for each version of all that it is made of."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.kafka import compile_loops, jit
from srm_spark.kafka.loop_cache import cache_folder, is_filled

HERE = Path(jit.__file__).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The sources of the loops, to be changed."""
    folder = tmp_path / "kafka"
    (folder / "batches").mkdir(parents=True)
    for path in [HERE / "jit.py", *HERE.glob("batches/*loop*.py")]:
        shutil.copy(path, folder / path.relative_to(HERE))
    return folder


def test_it_is_another_folder_as_soon_as_a_helper_or_a_constant_is_another_one(copy: Path) -> None:
    first = cache_folder(here=copy)
    assert first is not None
    assert first.parent == copy / "__pycache__"
    assert cache_folder(here=copy) == first
    for name in ("loop_fields.py", "record_loop.py"):
        path = copy / "batches" / name
        path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))  # as long as before
        assert cache_folder(here=copy) != first
        first = cache_folder(here=copy)


def test_it_lies_where_one_wants_it_and_nowhere_for_an_archive(copy: Path, tmp_path: Path) -> None:
    wanted = cache_folder(str(tmp_path), copy)
    assert wanted is not None
    assert wanted.parent == tmp_path
    assert cache_folder(here=tmp_path / "srm_spark.zip" / "kafka") is None


def test_whether_they_were_compiled_before_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not is_filled()
    folder = cache_folder(str(tmp_path))
    assert folder is not None
    folder.mkdir()
    here = "py{}{}".format(*sys.version_info)
    for name in (f"unpack_loop.fill_rows-7.{here}.nbi", "skim_loop.skim_rows-7.py27.nbi"):
        (folder / name).touch()
        assert not is_filled(), "not all of them were, or for another Python"
    (folder / f"skim_loop.skim_rows-7.{here}.nbi").touch()
    assert is_filled()


def test_who_moves_whole_batches_does_not_load_numba() -> None:
    code = "import sys, srm_spark.kafka.batches.copy; print('numba' in sys.modules, 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_nothing_is_compiled_where_it_is_done_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_loops, "is_filled", lambda: True)
    monkeypatch.setattr(compile_loops, "best", lambda: pytest.fail("compiled again"))
    assert CliRunner().invoke(compile_loops.main).exit_code == 0


@pytest.mark.parametrize(
    ("missing", "said"),
    [("there is no numba", "are not compiled: there is no numba"), (None, "cannot be kept: .* NUMBA_CACHE_DIR")],
)
def test_loops_that_cannot_be_compiled_or_kept_are_told(
    missing: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_loops, "is_filled", lambda: False)
    monkeypatch.setattr(compile_loops, "why_interpreted", lambda: missing)
    monkeypatch.setattr(compile_loops, "best", lambda: None)
    done = CliRunner().invoke(compile_loops.main)
    assert done.exit_code == 1
    assert re.search(said, done.output)


@pytest.mark.slow
def test_the_next_process_finds_what_was_compiled(tmp_path: Path) -> None:
    """Half a minute: machine code for all loops."""
    command = [sys.executable, "-m", "srm_spark.kafka.compile_loops"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr for _ in range(2)
    ]
    assert said == ["compiling the loops over records, once\n", ""]
    elsewhere = tmp_path / "elsewhere"  # as executors unpack it
    shutil.copytree(Path(jit.__file__).parents[1], elsewhere / "srm_spark", ignore=shutil.ignore_patterns("*.pyc"))
    code = "from srm_spark.kafka.batches import ways; ways.best(); print(ways.__file__)"
    looked = {**environment, "NUMBA_DEBUG_CACHE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=elsewhere, env=looked, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1].startswith(str(elsewhere))
    assert "data loaded from" in done.stdout
    assert "data saved to" not in done.stdout
