"""A folder of wheels for machines without a network, with a pip that only writes down what it was asked for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.bundle import EXTRAS
from srm_spark.cli.control import main
from srm_spark.errors import SetupError
from srm_spark.jars import cache, cached, fetch
from srm_spark.jars.bundle import bundle
from srm_spark.jars.installed import PACKAGE, installed
from srm_spark.jars.lock import read_lock
from srm_spark.jars.sparks import driver_jars

OURS = driver_jars().name
ROOT = Path(__file__).parents[2]
VERSION = distribution("srm-spark").version


@dataclass
class Pip:
    asked: list[list[str]] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    jars: list[list[str]] = field(default_factory=list)
    fails: bool = False

    def __call__(self, arguments: Sequence[str]) -> None:
        self.asked.append(list(arguments))
        folder = Path(arguments[arguments.index("--wheel-dir") + 1])
        project = Path(arguments[-1])
        if (project / "pyproject.toml").is_file():
            self.projects.append((project / "pyproject.toml").read_text())
            self.jars.append(sorted(jar.name for jar in (project / PACKAGE / OURS).glob("*.jar")))
            (folder / "jars.whl").write_text("jars")
        else:
            (folder / "rest.whl").write_text("the rest")
            if self.fails:
                raise SetupError("pip wheel failed: no network")


def test_jars_become_a_wheel_and_pip_gets_the_rest(tmp_path: Path) -> None:
    pip = Pip()
    made = bundle(tmp_path / "new" / "bundle", ["api", "compiled"], pip=pip)
    assert (made.folder, made.wheels, made.bytes) == (tmp_path / "new" / "bundle", ("jars.whl", "rest.whl"), 12)
    assert made.command == f"pip install --no-index --find-links {made.folder} 'srm-spark[api,compiled,jars]'"
    assert pip.asked[-1][-1].startswith("srm-spark[api,compiled,jars]")
    assert pip.jars == [sorted(jar.file_name for jar in read_lock()[OURS])]
    assert f'name = "srm-spark-jars"\nversion = "{VERSION}"\n' in pip.projects[0]
    assert [path.name for path in made.folder.parent.iterdir()] == ["bundle"], "nothing else is left"


def test_our_own_wheel_may_be_given(tmp_path: Path) -> None:
    pip, wheel = Pip(), tmp_path / "srm spark.whl"
    wheel.touch()
    bundle(tmp_path / "bundle", [], wheel, pip)
    assert pip.asked[-1][-1] == f"srm-spark[jars] @ {wheel.as_uri()}"
    assert f"pyspark=={distribution('pyspark').version}" in pip.asked[-1], "the jars are for it"


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        (None, f"srm-spark[jars]=={VERSION}"),
        ({"url": "https://example.org/srm.whl", "archive_info": {}}, "srm-spark[jars] @ https://example.org/srm.whl"),
        ({"url": ROOT.as_uri(), "dir_info": {"editable": True}}, f"srm-spark[jars] @ {ROOT.as_uri()}"),
    ],
)
def test_it_is_made_of_where_this_one_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: dict[str, object] | None, asked: str
) -> None:
    _installed_from(monkeypatch, recorded)
    pip = Pip()
    bundle(tmp_path / "bundle", [], pip=pip)
    assert pip.asked[-1][-1] == asked


def test_a_wheel_that_is_gone_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone one.whl"
    _installed_from(monkeypatch, {"url": gone.as_uri(), "archive_info": {}})
    with pytest.raises(SetupError, match=f"installed from {gone}, which is gone; name its wheel by --wheel"):
        bundle(tmp_path / "bundle", [], pip=Pip())
    assert not (tmp_path / "bundle").exists()


def _installed_from(monkeypatch: pytest.MonkeyPatch, recorded: dict[str, object] | None) -> None:
    class Installed:
        version = VERSION

        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return None if recorded is None else json.dumps(recorded)

    monkeypatch.setattr("srm_spark.jars.bundle.distribution", lambda _: Installed())


def test_what_failed_leaves_nothing_and_what_is_there_is_not_touched(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no network"):
        bundle(tmp_path / "bundle", [], pip=Pip(fails=True))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "bundle").mkdir()
    pip = Pip()
    with pytest.raises(SetupError, match=r"bundle is there already, .*; name a new folder"):
        bundle(tmp_path / "bundle", [], pip=pip)
    assert pip.asked == []


def test_the_command_names_the_folder_that_is_there(tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["bundle", "--out", str(tmp_path)])
    assert (told.exit_code, "is there already" in told.stderr) == (1, True)


def test_extras_are_those_of_the_package_and_the_jars_have_its_version() -> None:
    described = distribution("srm-spark")
    assert set(EXTRAS) == set(described.metadata.get_all("Provides-Extra") or ()) - {"jars", "bench"}
    assert f'srm-spark-jars=={VERSION}; extra == "jars"' in [one.replace("'", '"') for one in described.requires or ()]


@pytest.fixture
def jars_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the jars of an installed wheel lie; the cache is empty."""
    with pytest.raises(PackageNotFoundError):
        distribution("srm-spark-jars")
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    folder = tmp_path / "site" / PACKAGE / OURS
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise AssertionError('nobody imports it')\n")
    return folder


def test_installed_jars_are_used_where_they_lie(jars_wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed("kafka") is None
    assert not cached("driver")
    downloaded = cache.cache_dir() / "jars" / OURS
    downloaded.mkdir(parents=True)
    for jar in read_lock()[OURS]:
        (downloaded / jar.file_name).write_bytes(b"")
    assert cached("driver"), "one that lacks jars is not used"
    shutil.rmtree(downloaded)
    for jar in read_lock()[OURS]:
        (jars_wheel / jar.file_name).write_bytes(b"")
    assert installed(OURS) == jars_wheel
    assert cached("driver")
    with pytest.raises(SetupError, match=r"is not the jar that jars\.lock names"):
        fetch("driver")
    monkeypatch.setattr(cache, "sha256", lambda jar: _digests()[jar.name])
    jars_wheel.chmod(0o555)
    assert {jar.parent for jar in fetch("driver")} == {jars_wheel}
    assert len(fetch("driver")) == len(read_lock()[OURS])


def _digests() -> dict[str, str]:
    return {jar.file_name: digest for jar, digest in read_lock()[OURS].items()}
