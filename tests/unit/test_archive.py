"""Where archives of classes lie, and when a JVM is told of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.jars import archive as archives
from srm_spark.jars.archive import archive, archive_options, recording
from srm_spark.jars.cache import CACHE_VARIABLE
from srm_spark.testing.java import java_arguments


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def record(name: str, *, breaks_off: bool = False) -> None:
    """As a JVM does that ends."""
    with recording(name) as options:
        assert options is not None
        Path(options[0].partition("=")[2]).write_text(name)
        if breaks_off:
            raise RuntimeError("the JVM did not end")


def test_a_jvm_is_told_of_an_archive_once_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srm_spark.testing.java.fetch", lambda _: [Path("jars/one.jar")])
    assert archive_options("kafka") == ()
    record("kafka")
    assert archive_options("kafka")[0] == f"-XX:SharedArchiveFile={archive('kafka')}"
    assert archive_options("kafka")[0] in java_arguments("kafka.Kafka", [])
    options = java_arguments("kafka.Kafka", [], jvm_options=["-XX:ArchiveClassesAtExit=other"])
    assert archive_options("kafka")[0] not in options, "who records one takes none"
    with recording("kafka") as again:
        assert again is None


def test_one_of_other_jars_is_none_and_goes_when_a_new_one_comes(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record("kafka")
    record("spark")
    before = archive("kafka")
    lock = tmp_path / "other.lock"
    lock.write_text("other jars")
    monkeypatch.setattr(archives, "LOCK", lock)
    assert archive_options("kafka") == ()
    record("kafka")
    assert archive("kafka") != before
    assert {path.name.partition("-")[0] for path in (cache / "archives").glob("*.jsa")} == {"kafka", "spark"}
    assert not before.exists()


def test_a_jvm_that_breaks_off_leaves_none(cache: Path) -> None:
    with pytest.raises(RuntimeError):
        record("kafka", breaks_off=True)
    with recording("kafka"):
        pass  # nothing was written
    assert list((cache / "archives").glob("kafka*")) == []
