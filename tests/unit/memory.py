"""Control topics in memory: what is written, in order, and failures on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from srm_spark.core.cluster import ControlRecord


@dataclass
class MemoryTopics:
    """A `Writer`; several may share `written`."""

    written: list[ControlRecord] = field(default_factory=list)
    refused: dict[str, Exception] = field(default_factory=dict)
    """Topic → what writing to it raises."""

    def write(self, records: Iterable[ControlRecord]) -> None:
        """All of them, or none from the first that is refused on."""
        for record in records:
            if record.topic in self.refused:
                raise self.refused[record.topic]
            self.written.append(record)

    def topics(self) -> list[str]:
        """Topics in the order in which they were written to."""
        return list(_in_a_row(record.topic for record in self.written))


def _in_a_row(names: Iterable[str]) -> Iterator[str]:
    last = None
    for name in names:
        if name != last:
            yield name
        last = name
