"""Our flow against MirrorMaker 2 and a bare loop in Go, on the same brokers: `make bench`."""

from __future__ import annotations

from importlib.util import find_spec

_MISSING = [name for name in ("matplotlib", "psutil") if find_spec(name) is None]
if _MISSING:
    raise ImportError(f"the benchmark needs {' and '.join(_MISSING)}: pip install 'srm-spark[bench]'")
