"""The virtual environment that executors of a cluster unpack: this package and what it needs, native code included.

pyspark is left out, the cluster has its own; it would triple the size. The loops over records are compiled: each worker
of each executor would do it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

from srm_spark.jars.cache import locked
from srm_spark.jars.commands import run
from srm_spark.kafka.loop_cache import cache_folder

ARCHIVE = Path("build") / "srm-spark-env.tar.gz"
PYTHON_VARIABLE = "SRM_PACK_PYTHON"
_COMPILE = "from srm_spark.kafka.batches.ways import best; best()"
"""numba loads what fits, and makes the rest: the environment may have another version of it than we have."""
_LOOPS = re.compile(r"""; extra == ['"]compiled['"]$""")
"""How the metadata marks what the compiled loops need."""


def pack(root: Path) -> Path:
    """Build the archive of the checkout `root`, or take the one that is there when nothing has changed."""
    archive = root / ARCHIVE
    python = os.environ.get(PYTHON_VARIABLE, "") or sys.executable
    key = _key(root, python)
    if archive.exists() and _written(archive.with_suffix(".key")) == key:
        return archive
    print(f"packing a virtual environment into {archive}", file=sys.stderr, flush=True)
    archive.parent.mkdir(exist_ok=True)
    with locked(archive.parent):
        environment = _environment(root, python)
        with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
            fresh = Path(scratch) / archive.name
            # Compressed quickly rather than well: it travels inside one cluster.
            with tarfile.open(fresh, "w:gz", compresslevel=1) as tar:
                tar.add(environment, arcname=".", filter=_without_bytecode)
            fresh.replace(archive)
        archive.with_suffix(".key").write_text(key)
    return archive


def _environment(root: Path, python: str) -> Path:
    """The environment as a folder. It stays: while requirements are the same, only this package is installed anew."""
    environment = root / ARCHIVE.parent / "environment"
    key_file = environment / ".key"
    key = f"{python} {sys.version} {requirements()}"
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    install = [*pip, "install", "--quiet", "--no-compile"]  # what it compiles does not travel
    if _written(key_file) != key:
        shutil.rmtree(environment, ignore_errors=True)
        _run([python, "-m", "venv", "--without-pip", str(environment)])
        _run([*install, *requirements()])
        key_file.write_text(key)
    _run([*install, "--no-deps", "--force-reinstall", str(root)])
    _bring_loops(environment)
    return environment


def _bring_loops(environment: Path) -> None:
    """Put compiled loops beside the package, made by the Python of the environment where ours are of another one."""
    ours = cache_folder()
    if ours is None:
        return
    compiled = subprocess.run(
        [str(environment / "bin" / "python"), "-c", _COMPILE],
        env={**os.environ, "NUMBA_CACHE_DIR": str(ours.parent)},
        cwd=environment,  # not the checkout, which would be imported
        capture_output=True,
        text=True,
        check=False,
    )
    if compiled.returncode != 0:
        said = (compiled.stderr or compiled.stdout).strip().splitlines()[-1:]
        print(f"without compiled loops, each executor makes its own: {''.join(said)}", file=sys.stderr, flush=True)
        return
    (package,) = environment.glob("lib/python*/site-packages/srm_spark/kafka")
    for old in package.glob("__pycache__/loops-*"):
        shutil.rmtree(old)
    shutil.copytree(ours, package / "__pycache__" / ours.name, ignore=shutil.ignore_patterns("*.tmp.*"))


def _written(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def requirements() -> list[str]:
    """What executors need at run time: neither pyspark, which is there, nor extras but that of the compiled loops."""
    needed = [_LOOPS.sub("", requirement) for requirement in requires("srm-spark") or []]
    return [name for name in needed if "extra ==" not in name and re.match(r"pyspark\b(?!-)", name) is None]


def _key(root: Path, python: str) -> str:
    processor = os.environ.get("NUMBA_CPU_NAME", "")
    digest = hashlib.sha256(f"{python} {sys.version} {processor} {requirements()}".encode())
    for path in _sources(root):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _sources(root: Path) -> Iterator[Path]:
    yield root / "pyproject.toml"
    for path in sorted((root / "srm_spark").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _without_bytecode(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.name.endswith(".pyc") else member


def _run(command: list[str]) -> None:
    what = f"cannot pack the environment, {' '.join(command[:6])} …"
    run(command, what, f"check the network, and that {PYTHON_VARIABLE} (if set) is a Python with the venv module")
