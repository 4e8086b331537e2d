"""What the logs in a query's checkpoint directory say of its batches. In broker tests Spark writes them."""

from __future__ import annotations

from pathlib import Path

from srm_spark.spark.offsets import is_amid_a_batch


def test_a_batch_is_in_progress_between_the_file_of_its_offsets_and_that_of_its_end(tmp_path: Path) -> None:
    assert not is_amid_a_batch(tmp_path), "Spark has written nothing"
    for log in ("offsets", "commits", "sources"):
        (tmp_path / log).mkdir()
    assert not is_amid_a_batch(tmp_path)
    (tmp_path / "offsets" / ".0.tmp").touch()
    assert not is_amid_a_batch(tmp_path)
    for number in ("9", "10"):  # by number, not by letters
        (tmp_path / "offsets" / number).touch()
        assert is_amid_a_batch(tmp_path)
        (tmp_path / "commits" / f".{number}.1f.tmp").touch()
        assert is_amid_a_batch(tmp_path)
        (tmp_path / "commits" / number).touch()
        assert not is_amid_a_batch(tmp_path)
