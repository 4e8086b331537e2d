"""How the last run of a flow ended: one record of the progress topic, under a key of our own.

A record here says who may still have requests on their way to the target. Kafka Connect reads every key of that topic
as a list of a connector's name and a map (`OffsetUtils.processPartitionKey`): this one is of a connector nobody runs.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from srm_spark.core.model import Flow

_CONNECTOR = "srm-spark"
_VERSION = 1


class LastRun(NamedTuple):
    """What is known of whoever wrote the flow last."""

    is_clean: bool
    """It ended by itself: everything that it wrote is acknowledged and recorded."""
    is_exactly_once: bool
    """It wrote records in transactions only, so the next one that begins a term has fenced it."""
    is_stamped: bool | None
    """Its copies got provenance headers; None where that is not recorded."""
    is_fenced: bool = False
    """It wrote records under the flow's own producer id only, so a new epoch refuses what it has under way."""

    def value(self) -> bytes:
        """As the record's value."""
        state = "clean" if self.is_clean else "running"
        fields = {"v": _VERSION, "run": state, "exactly_once": self.is_exactly_once, "stamped": self.is_stamped}
        return _json({**fields, "fenced": True} if self.is_fenced else fields)


UNKNOWN_RUN = LastRun(is_clean=False, is_exactly_once=False, is_stamped=None)
"""Nothing is recorded: whoever it was may be alive."""


def last_run_key(flow: Flow) -> bytes:
    """The key of a flow's record."""
    return _json([_CONNECTOR, {"flow": str(flow)}])


def decode_last_run(value: bytes | None) -> LastRun:
    """Read `LastRun.value`; what cannot be read is unknown."""
    try:
        document = json.loads(value or b"")
        if document["v"] != _VERSION:
            return UNKNOWN_RUN
        return LastRun(
            document["run"] == "clean",
            bool(document["exactly_once"]),
            bool(document["stamped"]),
            bool(document.get("fenced")),
        )
    except (ValueError, TypeError, KeyError):
        return UNKNOWN_RUN


def _json(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
