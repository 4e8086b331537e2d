"""A folder for what is worth nothing once this process has ended: Spark's temporary files, checkpoints of queries.

```
srm-spark-x1y2.lock    locked for as long as its process lives, however that ends
srm-spark-x1y2/        goes with the process; where that was killed, with the next start of any other
```
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX, _LOCK = "srm-spark-", ".lock"


@functools.cache
def scratch() -> Path:
    """The folder of this process. The first call removes what killed processes left."""
    _sweep(Path(tempfile.gettempdir()))
    number, name = tempfile.mkstemp(prefix=_PREFIX)
    fcntl.flock(number, fcntl.LOCK_EX)  # held until the process ends: nobody closes it
    lock = Path(name).rename(f"{name}{_LOCK}")  # only now: nobody may find it unlocked
    folder = Path(name)
    folder.mkdir(mode=0o700)
    atexit.register(_remove, lock)
    return folder


def _sweep(parent: Path) -> None:
    for lock in parent.glob(f"{_PREFIX}*{_LOCK}"):
        try:
            number = os.open(lock, os.O_RDWR)
        except OSError:  # somebody else's, or gone by now
            continue
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(lock)
        except OSError:  # its process lives
            pass
        finally:
            os.close(number)


def _remove(lock: Path) -> None:
    """Remove a folder, then its lock; what a JVM that is ending still writes there stays for the next start."""
    folder = lock.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        lock.unlink(missing_ok=True)
