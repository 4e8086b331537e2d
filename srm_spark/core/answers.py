"""What drivers answer to acts: records of the progress topic, under keys of our own (`core/last_run.py`). No I/O.

```
key   ["srm-spark",{"flow":"A->B","acts":"taken"}]        value {"v":1,"act":"6f0c…","driver":"host pid 7","at":17…}
```

It is the newest act that counts in the driver that owns the flow, and with it everything before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from srm_spark.core.compact_json import compact_json
from srm_spark.core.model import Flow

_CONNECTOR = "srm-spark"
_VERSION = 1
_PREFIX = b'["srm-spark",'


@dataclass(frozen=True)
class Answer:
    """What a driver says of an act."""

    act: str
    """Its id."""
    driver: str
    """`host pid N`."""
    at: int
    """Milliseconds since the epoch."""


@dataclass
class Answers:
    """All of one flow."""

    flow: Flow
    taken: Answer | None = None

    def take(self, key: bytes | None, value: bytes | None) -> bool:
        """Take in a record; whether it is one of them."""
        if not (key or b"").startswith(_PREFIX):  # nearly all records of the topic are progress
            return False
        try:
            _, named = json.loads(key or b"")
            if named.get("flow") != str(self.flow) or "acts" not in named:
                return False
            self.taken = _answer(json.loads(value or b""))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            return False
        return True

    def forget(self) -> None:
        """Nothing is known."""
        self.taken = None


def taken_record(flow: Flow, answer: Answer) -> tuple[bytes, bytes]:
    """Key and value: this act counts, and everything before."""
    value = {"v": _VERSION, "act": answer.act, "driver": answer.driver, "at": answer.at}
    return compact_json([_CONNECTOR, {"flow": str(flow), "acts": "taken"}]), compact_json(value)


def _answer(document: Mapping[str, Any]) -> Answer:
    if document["v"] != _VERSION:
        raise ValueError(document["v"])
    return Answer(str(document["act"]), str(document["driver"]), int(document["at"]))
