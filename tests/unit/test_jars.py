"""Jar sets and the choice of a Java, without a JVM: fake `java` scripts and fake jars."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from srm_spark.errors import SetupError
from srm_spark.jars import JAR_SETS, Dependency, cache, ensure_java, fetch, find_java, ivy, java
from srm_spark.jars.cache import CACHE_VARIABLE, cache_dir
from srm_spark.jars.lock import read_lock, write_lock


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java; the path of a folder on its PATH."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(java, "SYSTEM_FOLDERS", ())
    return tmp_path / "path"


def make_java(home: Path, version: str) -> Path:
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '    java.home = {home}' >&2\necho 'openjdk version \"{version}\"' >&2\n")
    command.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "21" 2023-09-19 LTS', 21),
        ('openjdk version "1.8.0_402"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("bash: java: command not found", None),
    ],
)
def test_version_is_read_from_what_java_prints(line: str, version: int | None) -> None:
    assert java.parse_version(f"Picked up JAVA_TOOL_OPTIONS: -Dx=1\n{line}\nOpenJDK 64-Bit Server VM") == version


def test_java_home_wins_over_the_path(no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk21", "21.0.2")))
    on_path = make_java(tmp_path / "jdk17", "17.0.1")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert (find_java().home, find_java().version) == (tmp_path / "jdk21", 21)


def test_an_unsuitable_java_home_is_passed_over(no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk11", "11.0.2")))
    make_java(tmp_path / "cache" / "java", "17.0.1")
    assert find_java().home == tmp_path / "cache" / "java"
    assert not find_java().has_compiler
    assert java.unfit_java_home() == f"JAVA_HOME is {tmp_path / 'jdk11'}, which is Java 11"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    assert java.unfit_java_home() == f"JAVA_HOME is {tmp_path / 'nothing'}, where no Java answers"
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk17", "17.0.1")))
    assert java.unfit_java_home() is None


def test_spark_3_5_takes_no_java_21(no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk21", "21.0.2")))
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.7.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"Java 17 is needed, found only Java 21 at .*jdk21"):
        find_java()


def test_unsuitable_javas_are_named_with_the_remedy(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "jdk8", "1.8.0_402")))
    with pytest.raises(SetupError, match=r"found only Java 8 at .*jdk8; install a JDK 17 .*JAVA_HOME"):
        find_java()


def test_a_machine_without_java_is_told_what_to_install(no_java: Path) -> None:
    with pytest.raises(SetupError, match=r"no Java found.*apt-get install openjdk-17"):
        find_java()


def test_java_is_downloaded_and_nothing_installed_into_the_system(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(java, "download_java", lambda: tried.append("cjdk"))
    no_java.mkdir()
    (no_java / "apt-get").write_text("#!/bin/sh\necho called >> $0.log\n")
    (no_java / "apt-get").chmod(0o755)
    with pytest.raises(SetupError, match=r"no Java found.*as root run: apt-get install"):
        ensure_java()
    assert tried == ["cjdk"]
    assert not (no_java / "apt-get.log").exists()


def test_every_set_is_pinned() -> None:
    pinned = read_lock()
    assert set(pinned) == set(JAR_SETS)
    for jar_set in JAR_SETS.values():
        assert set(jar_set.dependencies) <= set(pinned[jar_set.name])
        assert jar_set.transitive or len(jar_set.dependencies) == len(pinned[jar_set.name])
    assert all(len(digest) == 64 for digests in pinned.values() for digest in digests.values())


def make_jar(directory: Path, name: str, content: bytes = b"jar") -> dict[str, str]:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(content)
    return {name: hashlib.sha256(content).hexdigest()}


def test_a_changed_jar_is_named(tmp_path: Path) -> None:
    expected = make_jar(tmp_path, "a-1.jar") | make_jar(tmp_path, "b-2.jar")
    cache.verify(tmp_path, expected)
    make_jar(tmp_path, "b-2.jar", b"something else")
    with pytest.raises(SetupError, match=r"^b-2\.jar is not the jar.*expected sha256 .*remove .*make setup"):
        cache.verify(tmp_path, expected)


def test_unchanged_jars_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = make_jar(tmp_path, "a-1.jar")
    cache.verify(tmp_path, expected)
    monkeypatch.setattr(cache, "sha256", lambda jar: pytest.fail(f"{jar} was read"))
    cache.verify(tmp_path, expected)


def test_new_checksums_make_old_jars_be_read_again(tmp_path: Path) -> None:
    cache.verify(tmp_path, make_jar(tmp_path, "a-1.jar"))
    with pytest.raises(SetupError, match=r"^a-1\.jar"):
        cache.verify(tmp_path, {"a-1.jar": "0" * 64})


def test_a_set_is_complete_only_with_exactly_its_jars(tmp_path: Path) -> None:
    expected = make_jar(tmp_path, "a-1.jar")
    assert cache.complete(tmp_path, expected)
    assert not cache.complete(tmp_path, {**expected, "b-2.jar": ""})
    assert not cache.complete(tmp_path, {})
    make_jar(tmp_path, "a-0.jar")
    assert not cache.complete(tmp_path, expected)


def test_a_written_lock_is_read_back(tmp_path: Path) -> None:
    pinned = {"driver-4.2": {Dependency("org.apache.kafka", "kafka_2.13", "4.3.1"): "0" * 64}}
    write_lock(pinned, tmp_path / "lock")
    assert read_lock(tmp_path / "lock") == pinned


def test_the_cache_is_the_variable_else_in_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv(CACHE_VARIABLE)
    assert cache_dir() == Path(__file__).parents[2] / ".cache"


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(SetupError, match=r"unknown jar set 'spark'; there are: driver, driver-3.5, driver-4.0"):
        fetch("spark")


@pytest.mark.parametrize(
    ("repository", "root"),
    [
        ("", ""),
        ("https://mirror.example/maven", ' root="https://mirror.example/maven/"'),
        ("/srv/maven/", ' root="file:///srv/maven/"'),
    ],
)
def test_the_repository_can_be_another(repository: str, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ivy.REPOSITORY_VARIABLE, repository)
    assert f'<ibiblio name="maven" m2compatible="true"{root}/>' in ivy.settings_xml(with_poms=True)


def test_a_failed_download_says_why_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ivy.REPOSITORY_VARIABLE, "http://mirror.example")
    gone = "\tServer access error at url http://mirror.example/a.pom (java.net.ConnectException: Connection refused)\n"
    message = str(ivy.failure_of(gone))
    assert "http://mirror.example does not answer (java.net.ConnectException: Connection refused)" in message
    assert message.endswith("or set SRM_SPARK_MAVEN_REPO to a Maven repository that is reachable (URL or directory)")
    absent = ":: io.delta#delta-storage;4.4.0: not found"
    assert "does not hold io.delta:delta-storage:4.4.0" in str(ivy.failure_of(absent))
