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


_WAYS = {"whole": "whole", "merged": "merged", "single": "one by one"}


def went(shares: Mapping[str, float]) -> str:
    """How records travelled, for people: `whole 97.3 %, merged 2.7 %`; shares from 0 to 1, see `bench.ways`."""
    known = {title: shares[way] for way, title in _WAYS.items() if shares.get(way)}
    return ", ".join(f"{title} {100 * share:.3g} %" for title, share in known.items()) or "unknown"


def merged(kept: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    """What was kept with what was found now; workloads, rates and sizes not measured now stay as they were."""
    result = {**kept, **figures}
    for part in ("workloads", "latency", "scale", "flows"):
        if part in kept and part in figures:
            result[part] = {**kept[part], **figures[part]}
    return result
