"""Where machine code of the loops is kept (`kafka/jit.py`). Apart from them: who only asks does not load numba."""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from pathlib import Path


def cache_folder(wanted: str = "", here: Path = Path(__file__).parent) -> Path | None:
    """Where it is: below `wanted`, beside the loops, or below the user's folder for such things.

    None where the sources cannot be read, as in an archive.
    """
    try:
        sources = [here / "jit.py", *sorted(here.glob("batches/*loop*.py"))]
        content = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except (OSError, RuntimeError):  # there is no home
        return None
    beside = here / "__pycache__" if os.access(here, os.W_OK) else home / "srm-spark"
    return Path(wanted or beside, f"loops-{content}")


def is_filled() -> bool:
    """Whether the loops were compiled before for this Python, so that to load them takes half a second and not ten."""
    folder = cache_folder(os.environ.get("NUMBA_CACHE_DIR", ""))
    last = "skim_loop.*.py{}{}*.nbi".format(*sys.version_info)  # of those that are loaded
    return folder is not None and any(folder.rglob(last))
