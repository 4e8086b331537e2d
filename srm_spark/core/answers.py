"""What drivers answer to acts: records of the progress topic, under keys of our own (`core/last_run.py`). No I/O.

```
key   ["srm-spark",{"flow":"A->B","acts":"taken"}]        value {"v":1,"act":"6f0c…","driver":"host pid 7","at":17…}
key   ["srm-spark",{"flow":"A->B","carried_out":"6f0c…"}] value {"v":1,"driver":"host pid 7","at":17…}
```

The first is the newest act that counts in the driver that owns the flow, and with it everything before. The second ends
an act on offsets: it is carried out once, whatever dies meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
    declined: Mapping[int, str] = field(default_factory=dict)
    """Of an act on offsets: partition → why nothing was done."""


@dataclass
class Answers:
    """All of one flow."""

    flow: Flow
    taken: Answer | None = None
    carried_out: dict[str, Answer] = field(default_factory=dict)
    """Id of an act on offsets → what came of it."""

    def take(self, key: bytes | None, value: bytes | None) -> bool:
        """Take in a record; whether it is one of them."""
        if not (key or b"").startswith(_PREFIX):  # nearly all records of the topic are progress
            return False
        try:
            _, named = json.loads(key or b"")
            if named.get("flow") != str(self.flow) or not named.keys() & {"acts", "carried_out"}:
                return False
            answer = _answer(named.get("carried_out"), json.loads(value or b""))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            return False
        if "acts" in named:
            self.taken = answer
        else:
            self.carried_out[answer.act] = answer
        return True

    def forget(self) -> None:
        """Nothing is known."""
        self.taken = None
        self.carried_out.clear()


def taken_record(flow: Flow, answer: Answer) -> tuple[bytes, bytes]:
    """Key and value: this act counts, and everything before."""
    value = {"v": _VERSION, "act": answer.act, "driver": answer.driver, "at": answer.at}
    return _json([_CONNECTOR, {"flow": str(flow), "acts": "taken"}]), _json(value)


def carried_out_record(flow: Flow, answer: Answer) -> tuple[bytes, bytes]:
    """Key and value: this act on offsets is over."""
    declined = {"declined": {str(n): why for n, why in answer.declined.items()}} if answer.declined else {}
    value = {"v": _VERSION, "driver": answer.driver, "at": answer.at, **declined}
    return _json([_CONNECTOR, {"flow": str(flow), "carried_out": answer.act}]), _json(value)


def _answer(act: str | None, document: Mapping[str, Any]) -> Answer:
    if document["v"] != _VERSION:
        raise ValueError(document["v"])
    declined = {int(number): str(why) for number, why in document.get("declined", {}).items()}
    act = document["act"] if act is None else act
    return Answer(str(act), str(document["driver"]), int(document["at"]), declined)


def _json(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
