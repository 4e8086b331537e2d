"""Where downloads live, the lock that lets several processes fetch at once, and the check of what came."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from srm_spark.errors import SetupError

CACHE_VARIABLE = "SRM_SPARK_CACHE"

_STAMP = "verified.json"


def cache_dir() -> Path:
    """`$SRM_SPARK_CACHE`, else `.cache` of the checkout, else `~/.cache/srm-spark`."""
    named = os.environ.get(CACHE_VARIABLE, "")
    if named:
        return Path(named).expanduser().resolve()
    root = Path(__file__).resolve().parents[2]
    # An installed package lies in site-packages, which has no pyproject.toml of ours.
    if (root / "pyproject.toml").is_file() and (root / "srm_spark").is_dir():
        return root / ".cache"
    return Path.home() / ".cache" / "srm-spark"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory's lock; a second process waits here and then finds the work done."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def complete(directory: Path, expected: Mapping[str, str]) -> bool:
    """Whether the directory holds exactly the jars of the list, whatever is in them."""
    return bool(expected) and {jar.name for jar in directory.glob("*.jar")} == set(expected)


def verify(directory: Path, expected: Mapping[str, str]) -> None:
    """Compare every jar with its checksum; jars unchanged since the last time cost one `stat` each."""
    seen = _read_stamp(directory)
    stamp: dict[str, list[object]] = {}
    for name in sorted(expected):
        jar = directory / name
        stat = jar.stat()
        stamp[name] = [expected[name], stat.st_size, stat.st_mtime_ns]
        if seen.get(name) != stamp[name]:
            _check(jar, expected[name])
    if stamp != seen:
        scratch = directory / f"{_STAMP}.{os.getpid()}"
        with suppress(OSError):  # installed by somebody else: then each process compares
            scratch.write_text(json.dumps(stamp, indent=0))
            scratch.replace(directory / _STAMP)


def _check(jar: Path, expected: str) -> None:
    got = sha256(jar)
    if got != expected:
        raise SetupError(
            f"{jar.name} is not the jar that jars.lock names: expected sha256 {expected}, got {got}",
            f"remove {jar.parent} and run: make setup (if it comes back, the repository serves another file)",
        )


def sha256(jar: Path) -> str:
    """Digest of a file in hex."""
    digest = hashlib.sha256()
    with jar.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _read_stamp(directory: Path) -> dict[str, list[object]]:
    try:
        stamp: dict[str, list[object]] = json.loads((directory / _STAMP).read_text())
    except (OSError, ValueError):
        return {}
    return stamp
