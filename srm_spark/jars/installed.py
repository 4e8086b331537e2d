"""Jars that came with a wheel of their own, `srm-spark[jars]`: where there is no network to download them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PACKAGE = "srm_spark_jars"


def installed(set_name: str) -> Path | None:
    """The folder of a set in that wheel; None where it is not installed, or does not have the set."""
    spec = find_spec(PACKAGE)
    for place in (spec.submodule_search_locations if spec else None) or ():
        if (folder := Path(place) / set_name).is_dir():
            return folder
    return None
