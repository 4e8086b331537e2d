"""Files that are read again when they are others, without a restart."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from srm_spark.errors import ConfigError

log = logging.getLogger(__name__)
_T = TypeVar("_T")
_T_contra = TypeVar("_T_contra", contravariant=True)
_LOOK_SECONDS = 10.0

Stamp = tuple[tuple[int, int, int], ...]
"""Of each file: which one it is, when it was written, in nanoseconds, and its size."""


class FileWatch:
    """Looks at files from `start` until `stop`, in a thread of its own."""

    def __init__(self, paths: Sequence[str], read: Callable[[], None]) -> None:
        """`paths` were read just now; `read` reads them again, keeps what was there if that cannot be used, tells of
        it, and never raises."""
        self._paths, self._read = paths, read
        self._seen = self._stamp()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="files", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._over.set()
        self._thread.join()

    def look(self) -> None:
        """Read once again where a file is another one."""
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            self._read()

    def _run(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self.look()

    def _stamp(self) -> Stamp:
        found = []
        for path in self._paths:
            try:
                status = Path(path).stat()
                found.append((status.st_ino, status.st_mtime_ns, status.st_size))
            except OSError:
                found.append((0, 0, 0))
        return tuple(found)


class Kept(Protocol[_T_contra]):
    """What lives on what a file says."""

    is_current: bool
    """False while the file cannot be used."""

    def replace(self, table: _T_contra, /) -> None:
        """From now on, this, which is current."""


def table_watch(path: str, read: Callable[[str], _T], kept: Kept[_T]) -> FileWatch:
    """Keeps something as its file is. One that cannot be used, for which `read` raises ConfigError, changes nothing,
    and is told once."""

    def again() -> None:
        try:
            kept.replace(read(path))
        except ConfigError as error:
            kept.is_current = False
            log.error("%s cannot be used, what it said before goes on: %s", path, "; ".join(map(str, error.problems)))
            return
        log.info("%s was read again", path)

    return FileWatch([path], again)
