"""Which copies a flow makes when its records carry a provenance header, and by what it knows its own. No I/O.

The header says where a record was first written and which way it came. A flow does not copy a record to a cluster on
which it has been, so records end their way where they began, in rings of any length:

```
written on A at orders-0, offset 7       A->B  copied as (A, orders-0, 7)
                                         B->C  copied as (A, orders-0, 7, via B)
                                         C->A  not copied: A is where it was written
                                         C->B  not copied: B is on its way
```

Only a header that names the record's own topic counts: applications hand headers on to what they write elsewhere
(Kafka Streams does), and such a record is a new one. The last header of the name decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from srm_spark.core.codec import PROVENANCE_HEADER, decode_provenance, encode_provenance
from srm_spark.core.model import Provenance, TopicPartition
from srm_spark.errors import CodecError

Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class Stamp:
    """What one flow writes on its copies."""

    source: str
    """Alias."""
    target: str
    """Alias."""

    def prefix(self, partition: TopicPartition) -> bytes:
        """What headers of records that were first written on the source begin with; the offset follows in 8 bytes."""
        return encode_provenance(Provenance(self.source, partition, 0))[:-8]

    def headers(self, partition: TopicPartition, offset: int, headers: Sequence[Header]) -> list[Header] | None:
        """Headers of the copy of a source record; None for one that is not copied."""
        at, known = _last(partition.topic, headers)
        if known is None:
            value = encode_provenance(Provenance(self.source, partition, offset))
            return [*headers, (PROVENANCE_HEADER, value)]
        if known.has_been_on(self.target):
            return None
        value = encode_provenance(replace(known, via=(*known.via, self.source)))
        return [*headers[:at], (PROVENANCE_HEADER, value), *headers[at + 1 :]]

    def is_ours(self, topic: str, headers: Sequence[Header]) -> bool:
        """Whether a record on the target is this flow's copy of a record of source topic `topic`."""
        _, known = _last(topic, headers)
        return known is not None and known.last == self.source


def _last(topic: str, headers: Sequence[Header]) -> tuple[int, Provenance | None]:
    """The last provenance header, where it speaks of a record of `topic`."""
    at = next((at for at in reversed(range(len(headers))) if headers[at][0] == PROVENANCE_HEADER), -1)
    if at < 0:
        return at, None
    try:
        known = decode_provenance(headers[at][1])
    except CodecError:
        return at, None
    return at, known if known.partition.topic == topic else None
