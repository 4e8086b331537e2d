"""`jars.lock`: every jar of every set with its sha256, one a line; written by `--pin`, read at every fetch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from srm_spark.jars.manifest import Dependency

LOCK = Path(__file__).with_name("jars.lock")


def read_lock(path: Path = LOCK) -> dict[str, dict[Dependency, str]]:
    """Set name → jar → sha256."""
    locked: dict[str, dict[Dependency, str]] = {}
    for line in path.read_text().splitlines():
        digest, jar_set, coordinates = line.split()
        locked.setdefault(jar_set, {})[Dependency.parse(coordinates)] = digest
    return locked


def write_lock(sets: Mapping[str, Mapping[Dependency, str]], path: Path = LOCK) -> None:
    """Write the file again."""
    lines = [
        f"{digest}  {name}  {dependency}\n"
        for name, jars in sorted(sets.items())
        for dependency, digest in sorted(jars.items())
    ]
    path.write_text("".join(lines))
