"""What a plan was made from, as plain values: its hash says whether the world has moved, and a comparison where."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any


def canonical(document: object) -> str:
    """JSON of which there is one form only: sorted keys, no spaces."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(document: object) -> str:
    """SHA-256 of the canonical form."""
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def differences(then: object, now: object, path: str = "") -> Iterator[str]:
    """One line for each value that is another one now; names of what holds it in front."""
    if then == now:
        return
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for key in sorted(then.keys() | now.keys()):
            yield from differences(then.get(key), now.get(key), f"{path} {key}".strip())
    elif isinstance(then, list) and isinstance(now, list):
        yield from (f"{path}: {_text(one)} is gone" for one in then if one not in now)
        yield from (f"{path}: {_text(one)} is new" for one in now if one not in then)
    elif isinstance(then, Mapping) or isinstance(now, Mapping):
        yield f"{path} is {'new' if then is None else 'gone'}"
    else:
        yield f"{path}: {_text(then)} in the plan, {_text(now)} now"


def _text(value: Any) -> str:
    return "nothing" if value is None else value if isinstance(value, str) else canonical(value)
