"""`python -m srm_spark.python_workers`: Spark's daemon of Python workers, with less to do for each of them.

Spark puts `pyspark.zip` in front of the installed package, and nothing keeps what was compiled from a zip file: the
daemon and every worker of it would compile pyspark anew, a second of a core each. What all tasks need is loaded before
the workers are forked, for all of them.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import runpy
import sys
import zipfile
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

DAEMON_KEY = "spark.python.daemon.module"
DAEMON = "srm_spark.python_workers"
"""This module, for that setting where this package is installed for the workers."""
FOR_ALL = ("pyspark.worker", "srm_spark.kafka.batches.brokers")
"""Modules that start no thread, by which a fork would be unsafe: pyarrow and librdkafka are for the workers to load."""
_ZIPPED = ("pyspark.zip", "py4j-*-src.zip")
_VERSION = re.compile(r"""__version__[^=]*=\s*["']([^"']+)""")


def installed_first(path: Sequence[str]) -> list[str]:
    """A `sys.path` without Spark's zip files; as it is where py4j or that pyspark is nowhere else."""
    zipped = [entry for entry in path if any(Path(entry).match(name) for name in _ZIPPED)]
    unzipped = [entry for entry in path if entry not in zipped]
    is_whole = all(PathFinder.find_spec(package, unzipped) for package in ("pyspark", "py4j"))
    return unzipped if is_whole and all(map(_is_installed, zipped)) else list(path)


def _is_installed(archive: str) -> bool:
    """Whether the installed pyspark is that of the archive: workers of another one do not understand their JVM."""
    try:
        with zipfile.ZipFile(archive) as opened:
            found = _VERSION.search(opened.read("pyspark/version.py").decode())
    except (OSError, KeyError, zipfile.BadZipFile):  # py4j's, or none that anything could be loaded from
        return True
    return found is not None and found[1] == importlib.metadata.version("pyspark")


if __name__ == "__main__":
    sys.path[:] = installed_first(sys.path)
    for module in FOR_ALL:
        importlib.import_module(module)
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
