"""Files that are there as a whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from srm_spark.errors import SrmError


def write_whole(path: Path, text: str, error: type[SrmError], option: str) -> None:
    """Write a file in one step, and let it outlive a loss of power. Raises `error`; `option` names another file."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError as failure:
        raise error(f"{path}: cannot be written: {failure.strerror}; name another file with {option}") from failure
