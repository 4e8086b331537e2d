"""`fetch("driver")`: the paths of a jar set, downloaded once, checked always.

```
.cache/jars/<set>/*.jar     complete and verified; appears by one rename, so readers need no lock
.cache/jars/.ivy/           Ivy's own cache; only between a download that broke and the next one
```
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from srm_spark.errors import SetupError
from srm_spark.jars import cache, ivy
from srm_spark.jars.java import java_command
from srm_spark.jars.manifest import JAR_SETS, JarSet

log = logging.getLogger(__name__)


def fetch(set_name: str) -> list[Path]:
    """The jars of a set, sorted by name; downloads them when they are missing. Needs no network otherwise."""
    jar_set = _jar_set(set_name)
    expected = cache.checksums().get(set_name, {})
    directory = _directory(set_name)
    if not cache.complete(directory, expected):
        with cache.locked(directory.parent):
            if not cache.complete(directory, expected):
                _download(jar_set, directory, expected)
    cache.verify(directory, expected)
    return sorted(directory.glob("*.jar"))


def cached(set_name: str) -> bool:
    """Whether `fetch` would need no network."""
    return cache.complete(_directory(set_name), cache.checksums().get(_jar_set(set_name).name, {}))


def pin(set_names: Iterable[str] = tuple(JAR_SETS)) -> None:
    """Download the sets afresh and write down what came: the checksums that everybody else then insists on."""
    with tempfile.TemporaryDirectory() as scratch:
        directories = {name: Path(scratch) / name for name in set_names}
        for name, directory in directories.items():
            ivy.retrieve(_jar_set(name), java_command(), Path(scratch) / "ivy", directory)
        cache.write_checksums(directories)


def _jar_set(name: str) -> JarSet:
    if name not in JAR_SETS:
        raise SetupError(f"unknown jar set {name!r}; there are: {', '.join(JAR_SETS)}")
    return JAR_SETS[name]


def _directory(set_name: str) -> Path:
    return cache.cache_dir() / "jars" / set_name


def _download(jar_set: JarSet, directory: Path, expected: dict[str, str]) -> None:
    log.info("downloading the jars of set %r (%d jars) to %s", jar_set.name, len(expected), directory)
    work = directory.parent / ".ivy"
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{jar_set.name}-") as scratch:
        fresh = Path(scratch) / jar_set.name
        ivy.retrieve(jar_set, java_command(), work, fresh)
        # From here on Ivy's cache has done its work; what is wrong with it must not come back at the next attempt.
        shutil.rmtree(work)
        _compare_names(jar_set, {jar.name for jar in fresh.glob("*.jar")}, set(expected))
        cache.verify(fresh, expected)
        if directory.exists():
            directory.rename(Path(scratch) / "replaced")
        fresh.rename(directory)


def _compare_names(jar_set: JarSet, got: set[str], expected: set[str]) -> None:
    if got != expected:
        raise SetupError(
            f"the repository resolves jar set {jar_set.name!r} differently from {cache.CHECKSUMS.name}: "
            f"missing {sorted(expected - got)}, unexpected {sorted(got - expected)}; "
            "if manifest.py was changed on purpose run: python -m srm_spark.jars --pin; "
            f"else check {ivy.REPOSITORY_VARIABLE}"
        )
