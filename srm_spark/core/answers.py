"""What drivers answer to acts: records of the progress topic, under keys of our own (`core/last_run.py`). No I/O.

```
key   ["srm-spark",{"flow":"A->B","acts":"taken"}]        value {"v":1,"act":"6f0c…","driver":"host pid 7","at":17…}
key   ["srm-spark",{"flow":"A->B","offsets":"6f0c…"}]     value {"v":1,"act":"6f0c…","driver":"host pid 7","at":17…}
```

The first is the newest act that counts in the driver that owns the flow, and with it everything before. The second
says what came of an act on offsets: it was done, or `"declined"` says why not. It is written with the position itself,
in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    declined: str | None = None
    """Why an act on offsets was not carried out; None where it was."""


@dataclass
class Answers:
    """All of one flow."""

    flow: Flow
    taken: Answer | None = None
    shifted: dict[str, Answer] = field(default_factory=dict)
    """Id of an act on offsets → what came of it."""

    def take(self, key: bytes | None, value: bytes | None) -> bool:
        """Take in a record; whether it is one of them."""
        if not (key or b"").startswith(_PREFIX):  # nearly all records of the topic are progress
            return False
        try:
            _, named = json.loads(key or b"")
            if named.get("flow") != str(self.flow) or not named.keys() & {"acts", "offsets"}:
                return False
            answer = _answer(json.loads(value or b""))
            if "acts" in named:
                self.taken = answer
            else:
                self.shifted[answer.act] = answer
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            return False
        return True

    def forget(self) -> None:
        """Nothing is known."""
        self.taken = None
        self.shifted.clear()


def taken_record(flow: Flow, answer: Answer) -> tuple[bytes, bytes]:
    """Key and value: this act counts, and everything before."""
    return compact_json([_CONNECTOR, {"flow": str(flow), "acts": "taken"}]), _value(answer)


def shifted_record(flow: Flow, answer: Answer) -> tuple[bytes, bytes]:
    """Key and value: what came of an act on offsets."""
    return compact_json([_CONNECTOR, {"flow": str(flow), "offsets": answer.act}]), _value(answer)


def _value(answer: Answer) -> bytes:
    declined = {} if answer.declined is None else {"declined": answer.declined}
    return compact_json({"v": _VERSION, "act": answer.act, "driver": answer.driver, "at": answer.at, **declined})


def _answer(document: Mapping[str, Any]) -> Answer:
    if document["v"] != _VERSION:
        raise ValueError(document["v"])
    declined = document.get("declined")
    said = None if declined is None else str(declined)
    return Answer(str(document["act"]), str(document["driver"]), int(document["at"]), said)
