"""What of a flow a verification was asked to look at, as its statement says it. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ALL_TOPICS = ".*"


def part_of(asked: Mapping[str, Any]) -> str | None:
    """In words, where that was not everything; None where it was."""
    parts = [
        f"topics {asked['topics']}" if asked["topics"] != _ALL_TOPICS else "",
        f"partition {asked['partition']}" if asked.get("partition") is not None else "",
        f"records since {asked['since']}" if asked.get("since") is not None else "",
        f"a sample of {asked['sample']} records" if asked.get("sample") is not None else "",
        "what came behind earlier verifications" if asked.get("goes_on") else "",
    ]
    return ", ".join(filter(None, parts)) or None
