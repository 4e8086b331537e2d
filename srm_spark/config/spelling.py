"""Finds what somebody probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean x?` for the nearest of `known`; empty where nothing is near."""
    names = sorted(set(known))
    folded = {name.lower(): name for name in names}
    if word.lower() in folded:
        return f"did you mean {folded[word.lower()]}?"
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6 if len(word) < 4 else 0.75)
    return f"did you mean {near[0]}?" if near else ""
