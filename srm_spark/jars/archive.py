"""Archives of loaded classes, by which a JVM starts with half of the CPU time (JEP 350, class-data sharing).

`make setup` makes them, and whoever builds an image should. A JVM looks by itself whether an archive fits its version,
its options and its class path, and starts as ever where it does not.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from srm_spark.jars.cache import cache_dir, locked
from srm_spark.jars.java import java_command
from srm_spark.jars.lock import LOCK
from srm_spark.jars.manifest import line_of
from srm_spark.jars.sparks import spark_version

_FORM = "2: jars on the class path"
"""Archives that were made in another way fit none of the JVMs of today."""
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""A JVM says on its standard output that an archive does not fit, and of each class that goes into none."""


def archive(name: str) -> Path:
    """Where the archive of this Java and these jars is kept; a JVM wants to find them where they were."""
    spark = spark_version() or "no-spark"
    made_of = "\n".join((_FORM, java_command(), str(cache_dir()), spark, LOCK.read_text(encoding="utf-8")))
    return cache_dir() / "archives" / f"{name}-{line_of(spark)}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}.jsa"


def archive_options(name: str) -> tuple[str, ...]:
    """Options of a JVM that takes its classes from the archive; none where there is none."""
    path = archive(name)
    return (f"-XX:SharedArchiveFile={path}", *_QUIET) if path.is_file() else ()


@contextmanager
def recording(name: str) -> Iterator[tuple[str, ...] | None]:
    """Options of a JVM that leaves the archive behind when it ends, which must be within the block.

    None where the archive is there already. One process at a time.
    """
    path = archive(name)
    with locked(path.parent):
        if path.is_file():
            yield None
            return
        scratch = path.with_suffix(f".{os.getpid()}")
        try:
            yield (f"-XX:ArchiveClassesAtExit={scratch}", *_QUIET)
            for old in path.parent.glob(f"{path.stem.rpartition('-')[0]}-*.jsa"):
                old.unlink()
            if scratch.is_file():
                scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)
