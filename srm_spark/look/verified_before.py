"""How far each partition was compared before, and nothing was wrong: the next verification goes on there.

The file is written whenever a partition is done, so what was interrupted goes on where it was, too. A partition with a
difference stays where it stood, and shows it again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from srm_spark.core.model import Flow, OffsetRange, TopicPartition
from srm_spark.errors import VerificationStateError
from srm_spark.files import write_whole
from srm_spark.look.verify import Verified

_FORMAT = 1


@dataclass
class VerifiedBefore:
    """Safe to use from several threads."""

    path: Path
    flow: Flow
    ends: dict[TopicPartition, tuple[str | None, int]] = field(default_factory=dict)
    """By source partition: the id of its topic, and the first source offset that was not compared."""
    waits: bool = False
    """For `keep`: with nothing signed, the next one must not go on behind what no statement says."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begins(self, ids: Mapping[str, str]) -> dict[TopicPartition, int]:
        """Where to begin in topics that are still the ones with these ids."""
        return {
            partition: end
            for partition, (topic_id, end) in self.ends.items()
            if topic_id is not None and ids.get(partition.topic) == topic_id
        }

    def again(self, _: Mapping[str, str]) -> dict[TopicPartition, tuple[OffsetRange, ...]]:
        """Nothing: a partition that is not right stays where it stood."""
        return {}

    def took(self, found: Verified, topic_id: str | None) -> None:
        """Go on behind it, if all of it is equal, or explained. Raises VerificationStateError."""
        if not found.is_done:
            return
        with self._lock:
            self.ends[found.partition] = topic_id, found.source.end
            if not self.waits:
                self.keep()

    def keep(self) -> None:
        """Write it down. Raises VerificationStateError."""
        ends = [
            {"topic": one.topic, "partition": one.partition, "topic_id": known, "end": offset}
            for one, (known, offset) in sorted(self.ends.items())
        ]
        document = {"format": _FORMAT, "flow": str(self.flow), "partitions": ends}
        write_whole(self.path, json.dumps(document, indent=2) + "\n", VerificationStateError, "--state")


def verified_before(path: Path, flow: Flow, *, waits: bool = False) -> VerifiedBefore:
    """What an earlier one left; nothing where there is no file. Raises VerificationStateError for another's file."""
    before = VerifiedBefore(path, flow, waits=waits)
    if not path.exists():
        return before
    try:
        document = json.loads(path.read_text())
        if document["format"] != _FORMAT:
            raise VerificationStateError(f"{path}: format {document['format']}, expected {_FORMAT}")
        if document["flow"] != str(flow):
            raise VerificationStateError(f"{path}: it is of flow {document['flow']}; name another file with --state")
        for one in document["partitions"]:
            partition, topic_id = TopicPartition(str(one["topic"]), int(one["partition"])), one["topic_id"]
            before.ends[partition] = None if topic_id is None else str(topic_id), int(one["end"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"this is no state file of a verification ({type(error).__name__}: {error})"
        raise VerificationStateError(f"{path}: {what}; name another one with --state") from None
    return before
