"""A folder of wheels from which pip installs srm-spark where there is no network: itself, what it needs, and the jars.

```
bundle/srm_spark-0.1.0-py3-none-any.whl
bundle/srm_spark_jars-0.1.0-py3-none-any.whl    what `fetch("driver")` downloads elsewhere
bundle/pyspark-4.2.0-py2.py3-none-any.whl …     for this Python on this kind of machine
```
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution, version
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from srm_spark.errors import SetupError
from srm_spark.jars.commands import run
from srm_spark.jars.fetch import fetch
from srm_spark.jars.installed import PACKAGE
from srm_spark.jars.sparks import driver_jars

_NAME = "srm-spark"
_PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
description = "The jars that srm-spark {version} needs beside pyspark"

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""

Pip = Callable[[Sequence[str]], None]


@dataclass(frozen=True)
class Bundle:
    """What was made."""

    folder: Path
    wheels: tuple[str, ...]
    """Names of the files."""
    bytes: int
    requirement: str
    """What pip is asked for."""

    @property
    def command(self) -> str:
        """What installs it, in a virtual environment or by pipx."""
        return f"pip install --no-index --find-links {self.folder} '{self.requirement}'"


def run_pip(arguments: Sequence[str]) -> None:
    """The pip of this Python. Raises SetupError, with its last words."""
    if find_spec("pip") is None:
        raise SetupError("this Python has no pip", f"run: {sys.executable} -m ensurepip")
    run([sys.executable, "-m", "pip", *arguments], f"pip {arguments[0]}", "check the network, and pip's index")


def bundle(folder: Path, extras: Sequence[str], wheel: Path | None = None, pip: Pip = run_pip) -> Bundle:
    """Make the folder, which must not be there yet; takes minutes, and the network.

    `extras` are those of srm-spark; its own wheel is made of where it was installed from, unless it is given. Raises
    SetupError, and leaves no folder behind then.
    """
    if folder.exists():
        raise SetupError(f"{folder} is there already, and may hold wheels of another version", "name a new folder")
    named = f"{_NAME}[{','.join(sorted({*extras, 'jars'}))}]"
    whole = f"{named} @ {wheel.resolve().as_uri()}" if wheel else f"{named}{_origin()}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        made = Path(scratch) / "wheels"
        made.mkdir()
        # No pip downloads a package that nobody publishes, and jars.lock judges the content anyway.
        pip(["wheel", "--quiet", "--no-deps", "--wheel-dir", str(made), str(_jars_project(Path(scratch) / "project"))])
        # The jars are for the Spark of here.
        spark = f"pyspark=={version('pyspark')}"
        pip(["wheel", "--quiet", "--find-links", str(made), "--wheel-dir", str(made), spark, whole])
        made.rename(folder)
    wheels = sorted(folder.glob("*.whl"))
    size = sum(each.stat().st_size for each in wheels)
    return Bundle(folder, tuple(each.name for each in wheels), size, named)


def _jars_project(folder: Path) -> Path:
    package = folder / PACKAGE
    jar_set = driver_jars(version("pyspark")).name
    jars = package / jar_set
    jars.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for jar in fetch(jar_set):
        shutil.copy2(jar, jars)
    text = _PROJECT.format(name=PACKAGE.replace("_", "-"), version=version(_NAME), package=PACKAGE)
    (folder / "pyproject.toml").write_text(text)
    return folder


def _origin() -> str:
    """How pip finds this srm-spark again: where it was installed from (PEP 610), else by its version."""
    installed = distribution(_NAME)
    recorded = installed.read_text("direct_url.json")
    if recorded is None:
        return f"=={installed.version}"
    url = str(json.loads(recorded)["url"])
    place = urlsplit(url)
    if place.scheme == "file" and not Path(url2pathname(place.path)).exists():
        where = url2pathname(place.path)
        raise SetupError(f"srm-spark was installed from {where}, which is gone", "name its wheel by --wheel")
    return f" @ {url}"
