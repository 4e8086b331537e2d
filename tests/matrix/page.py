"""The table of Sparks in docs/compatibility.md, between its two marks, and the results beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.matrix.areas import AREAS, PAIRS, Pair

PAGE = Path("docs/compatibility.md")
_BEGIN, _END = "<!-- by make matrix -->", "<!-- end -->"


def keep(pair: Pair, found: Mapping[str, Any], page: Path = PAGE) -> None:
    """Put the results of one Spark beside the page, and all that are there into it."""
    store = page.with_suffix(".json")
    known: dict[str, Any] = json.loads(store.read_text()) if store.is_file() else {}
    before = known.get(pair.spark, {})
    still = before.get("areas", {}) if before.get("ran") == found["ran"] else {}
    known[pair.spark] = {**found, "areas": {**still, **found["areas"]}}
    store.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    text = page.read_text()
    head, rest = text.split(_BEGIN)
    page.write_text(f"{head}{_BEGIN}\n{table(known)}\n{_END}{rest.split(_END)[1]}")


def table(known: Mapping[str, Any]) -> str:
    """The results, a column for each Spark."""
    there = [pair.spark for pair in PAIRS if pair.spark in known]
    ran = [known[spark]["ran"] for spark in there]
    lines = [
        "| | " + " | ".join(f"Spark {one['spark']}, Python {one['python']}" for one in ran) + " |",
        "|---|" + "---|" * len(there),
    ]
    for area in AREAS:
        lines.append(f"| {area} | " + " | ".join(_cell(known[spark]["areas"].get(area)) for spark in there) + " |")
    lines.append("| on | " + " | ".join(one["at"] for one in ran) + " |")
    return "\n".join(lines)


def _cell(found: Mapping[str, int] | None) -> str:
    if not found:
        return "not run"
    return ", ".join(f"{found[kind]} {kind}" for kind in ("failed", "passed", "skipped") if found.get(kind))
