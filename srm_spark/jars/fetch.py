"""`fetch("driver")`: the paths of a jar set, downloaded once, checked always.

```
.cache/jars/<set>/*.jar     complete and verified; appears by one rename, so readers need no lock
.cache/jars/.ivy-<set>/     Ivy's own cache; only between a download that broke and the next one
```
Jars that were installed as a wheel (`installed.py`) are used where they lie.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from srm_spark.errors import SetupError
from srm_spark.jars import cache, ivy
from srm_spark.jars.installed import installed
from srm_spark.jars.java import java_command
from srm_spark.jars.lock import read_lock, write_lock
from srm_spark.jars.manifest import DRIVER, JAR_SETS, Dependency
from srm_spark.jars.sparks import driver_jars

log = logging.getLogger(__name__)


def fetch(set_name: str) -> list[Path]:
    """The jars of a set, sorted by name; downloads them when they are missing. Needs no network otherwise.

    Those of `driver` are for the Spark that would run here.
    """
    set_name = _named(set_name)
    pinned = _pinned(set_name)
    expected = _by_file(pinned)
    directory = _directory(set_name, expected)
    if not cache.complete(directory, expected):
        with cache.locked(directory.parent):
            if not cache.complete(directory, expected):
                _download(pinned, directory)
    cache.verify(directory, expected)
    return sorted(directory.glob("*.jar"))


def cached(set_name: str) -> bool:
    """Whether `fetch` would need no network."""
    set_name = _named(set_name)
    expected = _by_file(_pinned(set_name))
    return cache.complete(_directory(set_name, expected), expected)


def pin(set_names: Iterable[str] = tuple(JAR_SETS)) -> None:
    """Find out which jars the sets of the manifest consist of and write them down: everybody else then gets those."""
    with tempfile.TemporaryDirectory() as scratch:
        sets = {}
        for name in set_names:
            jars = ivy.resolve(JAR_SETS[name], java_command(), Path(scratch) / name)
            sets[name] = {dependency: cache.sha256(jar) for dependency, jar in jars.items()}
        write_lock(sets)


def _named(set_name: str) -> str:
    return driver_jars().name if set_name == DRIVER else set_name


def _pinned(set_name: str) -> dict[Dependency, str]:
    if set_name not in JAR_SETS:
        raise SetupError(f"unknown jar set {set_name!r}; there are: {', '.join((DRIVER, *JAR_SETS))}")
    pinned = read_lock().get(set_name, {})
    changed = [str(dependency) for dependency in JAR_SETS[set_name].dependencies if dependency not in pinned]
    if changed:
        raise SetupError(f"jars.lock does not hold {', '.join(changed)}", "run: python -m srm_spark.jars --pin")
    return pinned


def _by_file(pinned: Mapping[Dependency, str]) -> dict[str, str]:
    return {dependency.file_name: digest for dependency, digest in pinned.items()}


def _directory(set_name: str, expected: Mapping[str, str]) -> Path:
    there = installed(set_name)
    if there is not None and cache.complete(there, expected):
        return there
    return cache.cache_dir() / "jars" / set_name


def _download(pinned: Mapping[Dependency, str], directory: Path) -> None:
    log.info("downloading %d jars to %s", len(pinned), directory)
    work = directory.parent / f".ivy-{directory.name}"
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}-") as scratch:
        fresh = Path(scratch) / directory.name
        ivy.download(list(pinned), java_command(), work, fresh)
        # From here on Ivy's cache has done its work; what is wrong with it must not come back at the next attempt.
        shutil.rmtree(work)
        cache.verify(fresh, _by_file(pinned))
        if directory.exists():
            directory.rename(Path(scratch) / "replaced")
        fresh.rename(directory)
