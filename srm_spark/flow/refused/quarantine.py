"""The quarantine on the target: records that could not be copied, kept until somebody replays or drops them.

A record here is a refused one of the source, see `srm_spark.core.quarantine`. The entry is written when all parts are
acknowledged, so one that can be seen is whole; it is dropped before its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster, ControlRecord, Writer
from srm_spark.core.model import OffsetRange, TopicPartition
from srm_spark.core.quarantine import (
    ENTRIES,
    PARTS,
    Ended,
    QuarantinedRecord,
    SourcePlace,
    decode_content,
    decode_end,
    decode_entry,
    decode_key,
    encode_end,
    encode_entry,
    end_key,
    entry_key,
    part_key,
    split_content,
)
from srm_spark.core.tail import TailRecord
from srm_spark.errors import CodecError, TargetUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.topics.followed import FollowedTopic


class Quarantine:
    """Reads the topic; `entries` is what the flow had put aside at the last look, in that order."""

    def __init__(self, settings: FlowSettings, target: Cluster, role: str) -> None:
        self._settings = settings
        self._target = target
        topic, timeout = settings.quarantine_topic, settings.admin_timeout_seconds
        self._is_there = False
        self.entries: dict[SourcePlace, QuarantinedRecord] = {}
        self.ended: dict[SourcePlace, Ended] = {}
        """What became of records that were put aside before."""
        self._topic = FollowedTopic(
            target, topic, role, TargetUnavailable, timeout, partitions=[ENTRIES], forget=self._forget
        )

    def refresh(self) -> None:
        """Take in what was written since the last call. Nothing is in quarantine where its topic is not there.

        Raises TargetUnavailable, also where an entry is of another version.
        """
        self._is_there = self._is_there or self._settings.quarantine_topic in self._target.topics()
        if not self._is_there:
            return
        for record in self._topic.new_records():
            place, _ = decode_key(record.key) or (None, None)
            if place is None:
                ended = decode_end(record.key, record.value)
                if ended is not None and ended.place.flow == self._settings.flow:
                    self.ended[ended.place] = ended
            elif place.flow != self._settings.flow:
                continue
            elif record.value is None:
                self.entries.pop(place, None)
            else:
                self.entries[place] = self._entry(place, record.value, record.offset)

    def _entry(self, place: SourcePlace, value: bytes, offset: int) -> QuarantinedRecord:
        try:
            return decode_entry(place, value)
        except CodecError as error:
            what = f"read what is in quarantine, in topic {self._settings.quarantine_topic}"
            way = "run the version that wrote it, or write a tombstone for its key to give that record up"
            raise self._target.refused(what, f"the record at offset {offset}: {error}; {way}") from error

    def offsets(self, topic_ids: Mapping[str, str]) -> dict[TopicPartition, set[int]]:
        """Source offsets of what is in quarantine, of the topics with these ids."""
        offsets: dict[TopicPartition, set[int]] = {}
        for place in self.entries:
            if place.topic_id == topic_ids.get(place.partition.topic):
                offsets.setdefault(place.partition, set()).add(place.offset)
        return offsets

    def endings(self, topic_ids: Mapping[str, str]) -> dict[TopicPartition, list[Ended]]:
        """What became of records that are not in quarantine any more, of the topics with these ids."""
        endings: dict[TopicPartition, list[Ended]] = {}
        for place, ended in self.ended.items():
            if place not in self.entries and place.topic_id == topic_ids.get(place.partition.topic):
                endings.setdefault(place.partition, []).append(ended)
        return endings

    def describe(self) -> dict[str, str]:
        """Source topic → how many records are in quarantine and why, for people."""
        reasons: dict[str, list[Failure]] = {}
        for place, entry in self.entries.items():
            reasons.setdefault(place.partition.topic, []).append(entry.why)
        return {topic: summary(kinds) for topic, kinds in reasons.items()}

    def contents(self, places: Iterable[SourcePlace]) -> Iterator[tuple[QuarantinedRecord, TailRecord]]:
        """These records as they were on the source, in the order in which they were put aside."""
        topic = TopicPartition(self._settings.quarantine_topic, PARTS)
        end = self._target.end_offsets([topic], committed=True).get(topic, 0)
        wanted = {place: self.entries[place] for place in places}
        parts: dict[SourcePlace, dict[int, bytes]] = {}
        for record in self._target.records(topic, OffsetRange(0, end)):
            place, part = decode_key(record.key) or (None, None)
            if place not in wanted or part is None or record.value is None:
                continue
            contents = parts.setdefault(place, {})
            contents[part] = record.value
            if len(contents) == wanted[place].parts:
                content = b"".join(contents[number] for number in sorted(contents))
                entry = wanted.pop(place)
                del parts[place]
                yield entry, decode_content(entry, content)

    def close(self) -> None:
        """Stop reading."""
        self._topic.close()
        self._forget()

    def _forget(self) -> None:
        self._is_there = False
        self.entries.clear()
        self.ended.clear()


class QuarantineWriter:
    """Writes the topic; `writer` raises where that fails."""

    def __init__(self, settings: FlowSettings, writer: Writer) -> None:
        self._topic = settings.quarantine_topic
        self._writer = writer

    def put(self, entries: Sequence[tuple[QuarantinedRecord, bytes]]) -> None:
        """Park records with their contents; returns when they are there for good."""
        self._writer.write(
            ControlRecord(self._topic, part_key(entry.place, number), part, partition=PARTS)
            for entry, content in entries
            for number, part in enumerate(split_content(content))
        )
        self._writer.write(
            ControlRecord(self._topic, entry_key(entry.place), encode_entry(entry), partition=ENTRIES)
            for entry, _ in entries
        )

    def drop(self, entries: Sequence[QuarantinedRecord]) -> None:
        """Take out of quarantine what was copied after all."""
        for records in (entry_tombstones(self._topic, entries), part_tombstones(self._topic, entries)):
            self._writer.write(records)

    def forget(self, entries: Sequence[QuarantinedRecord]) -> None:
        """Give records up: nobody copies them any more."""
        self._writer.write(end_of(self._topic, Ended(entry.place, None)) for entry in entries)
        self.drop(entries)


def end_of(topic: str, ended: Ended) -> ControlRecord:
    """What says what became of a record."""
    return ControlRecord(topic, end_key(ended.place), encode_end(ended), partition=ENTRIES)


def entry_tombstones(topic: str, entries: Iterable[QuarantinedRecord]) -> list[ControlRecord]:
    """What deletes entries."""
    return [ControlRecord(topic, entry_key(entry.place), None, partition=ENTRIES) for entry in entries]


def part_tombstones(topic: str, entries: Iterable[QuarantinedRecord]) -> list[ControlRecord]:
    """What deletes the content of entries that are gone."""
    return [
        ControlRecord(topic, part_key(entry.place, number), None, partition=PARTS)
        for entry in entries
        for number in range(entry.parts)
    ]


def summary(reasons: Sequence[Failure]) -> str:
    """How many there are of each kind; the first of them is shown."""
    kinds: dict[FailureKind, list[Failure]] = {}
    for reason in reasons:
        kinds.setdefault(reason.kind, []).append(reason)
    return "; ".join(f"{len(why)} in quarantine: {why[0]}" for why in kinds.values())
