"""Figures of several rounds, as they are kept in JSON."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

Spread = dict[str, float]
"""median, min, max"""


def spread(values: Sequence[float]) -> Spread:
    """Of one figure's rounds."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def spreads(rounds: Sequence[Any]) -> dict[str, Spread]:
    """Field → spread, of dataclasses of numbers."""
    fields = [asdict(one) for one in rounds]
    return {name: spread([one[name] for one in fields]) for name in fields[0]}


def merged(kept: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """What was kept with what was found now; workloads, rates and sizes not measured now stay as they were."""
    result = {**kept, **found}
    for part in ("workloads", "latency", "scale", "flows"):
        if part in kept and part in found:
            result[part] = {**kept[part], **found[part]}
    return result
