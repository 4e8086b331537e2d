"""What the failure of a query means: Spark's errors are long, and what counts is somewhere in the middle."""

from __future__ import annotations

import re

_DENIED = re.compile(r"Not authorized to access (topics?|group): \[?([^\]\n]+)\]?")


def denied_topics(failure: str) -> set[str]:
    """Source topics that Spark may not read, as far as a failure names them."""
    found = (names.split(", ") for kind, names in _DENIED.findall(failure) if kind != "group")
    return {name for names in found for name in names}


def first_cause(failure: str, source: str) -> str:
    """The line of a Spark error that says most: the innermost error of ours, else the first line."""
    lines = [line.strip() for line in failure.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("srm_spark.errors.")]
    inner = [line.partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    if not ours and (denied := _DENIED.search(failure)) is not None:
        what = f"READ on {denied[1].rstrip('s')} {denied[2]}"
        return f"Spark cannot read from {source}: {denied[0]}; allow {what} to the principal of these credentials"
    if ours:
        return ours[-1].partition(": ")[2]
    first = lines[0] if lines else "the query ended without a reason"
    return f"{first} ({inner[-1]})" if inner and inner[-1] not in first else first
