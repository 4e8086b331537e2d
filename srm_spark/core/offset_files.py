"""Offsets that are kept outside of Kafka: files of Spark, Flink and Kafka Connect, read and written back. No I/O.

A position here is a partition and the offset of the next record that will be read from it: Spark's offset files hold
ends that are not included (`KafkaSourceOffset`), Connect's `kafka_offset` is the offset of the sink's consumer group
(KIP-875), and Flink's are where a reader starts.

```
checkpoint   v1                                           offsets/<batch> of a Spark checkpoint: version, metadata, and
             {"batchWatermarkMs":0,…}                     a line per source. Version 2 has `<source id>:` before each
             {"orders":{"0":123,"1":7}}                   line; `-` is a source without an offset
mapping      {"orders":{"0":123,"1":-1}}                  JSON (`startingOffsets`) or YAML; -1 latest, -2 earliest
connect      {"offsets":[{"partition":{"kafka_topic":"orders","kafka_partition":0},"offset":{"kafka_offset":123}}]}
```
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import yaml

from srm_spark.core.model import TopicPartition
from srm_spark.core.wording import one_line
from srm_spark.errors import OffsetFileError

KeptPosition = tuple[TopicPartition, int]
"""A partition and the next offset to be read, or one of `SYMBOLS`."""

SYMBOLS = {-1: "latest", -2: "earliest"}
"""Offsets of a mapping that are no numbers, to Spark and Flink alike; they mean the same on every cluster."""

FORMATS = ("auto", "spark", "connect")

_VERSION = re.compile(r"v\d+")
_SOURCE_LINE = re.compile(r"([^{]*)(\{.*\})\s*")
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_PARTS = ("partition", "offset")
_MOST = 2**63 - 1
_MOST_PARTITIONS = 2**31 - 1
_EXPECTED = (
    'expected a file from offsets/ of a Spark checkpoint, {"topic":{"0":123}} as JSON or YAML, or '
    '{"offsets":[…]} as GET /connectors/<name>/offsets of Kafka Connect answers'
)


class Layout(Enum):
    """How the file is written."""

    CHECKPOINT = "offset file of a Spark checkpoint"
    JSON = "JSON"
    YAML = "YAML"
    CONNECT = "offsets of a Kafka Connect sink"


@dataclass(frozen=True)
class KeptOffsets:
    """Positions that stand together: one source of a query, or a whole file."""

    positions: tuple[KeptPosition, ...]
    prefix: str = ""
    """What stands before them in their line."""


@dataclass(frozen=True)
class OffsetFile:
    """A file that was understood, but for its `problems`."""

    layout: Layout
    parts: tuple[KeptOffsets | str, ...]
    """In order; text is kept as it is (lines of a checkpoint that are no offsets of Kafka)."""
    problems: tuple[str, ...] = ()
    """What is wrong with single entries; they are in no part."""

    @property
    def positions(self) -> tuple[KeptPosition, ...]:
        """All of them."""
        return tuple(p for part in self.parts if isinstance(part, KeptOffsets) for p in part.positions)

    def render(self, offsets: Mapping[KeptPosition, KeptPosition]) -> str:
        """The same file with other positions; those without a counterpart in `found` are left out."""
        if self.layout is not Layout.CHECKPOINT:
            return _document(self.layout, _of(self.parts[0], offsets))
        lines = [
            part if isinstance(part, str) else part.prefix + _json(_tree(_of(part, offsets))) for part in self.parts
        ]
        return "\n".join(lines)  # without a line break at the end, as Spark writes it


def parse_offsets(text: str, kind: str = "auto") -> OffsetFile:
    """Read a file; `kind` is one of `FORMATS` and narrows what is tried. Raises OffsetFileError if it is none of them.

    `spark` is a checkpoint file or a JSON mapping, `connect` a mapping or the answer of Connect.
    """
    if kind != "connect" and _VERSION.fullmatch(text.split("\n", 1)[0].strip()):
        return _checkpoint(text)
    layout, tree = _load(text)
    problems: list[str] = []
    if kind != "spark" and isinstance(tree, _Pairs) and isinstance(listed := dict(tree).get("offsets"), list):
        layout, positions = Layout.CONNECT, _connect(listed, problems)
    elif kind == "spark" and layout is Layout.YAML:
        raise OffsetFileError("this is no JSON; write --format connect for YAML")
    else:
        positions = _mapping(tree, problems, symbols=True)
    part = _once(positions, problems)
    return OffsetFile(layout, (part,), tuple(problems))


class _Pairs(tuple[tuple[Any, Any], ...]):
    """An object with its entries in order, repeated ones too."""


class _YamlLoader(yaml.BaseLoader):
    """Scalars stay text: no topic is called `True` because it was written `on`."""


def _pairs(loader: _YamlLoader, node: yaml.MappingNode) -> _Pairs:
    both = ((loader.construct_object(each, True) for each in entry) for entry in node.value)
    return _Pairs((key, value) for key, value in both)


_YamlLoader.add_constructor("tag:yaml.org,2002:map", _pairs)


def _load(text: str) -> tuple[Layout, Any]:
    try:
        return Layout.JSON, json.loads(text, object_pairs_hook=_Pairs)
    except json.JSONDecodeError:
        pass
    try:
        return Layout.YAML, yaml.load(text, _YamlLoader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise OffsetFileError(f"this is neither JSON nor YAML ({one_line(error)}); {_EXPECTED}") from error


def _checkpoint(text: str) -> OffsetFile:
    lines = text.split("\n")
    parts: list[KeptOffsets | str] = list(lines[:2])
    problems: list[str] = []
    for line in lines[2:]:
        match = _SOURCE_LINE.fullmatch(line)
        tree = _source(match[2]) if match else None
        if match is None or tree is None:
            parts.append(line)
            continue
        document = _once(_mapping(tree, problems, symbols=False), problems)
        parts.append(replace(document, prefix=match[1]))
    if not any(isinstance(part, KeptOffsets) for part in parts):
        raise OffsetFileError('no line of this Spark checkpoint holds offsets of Kafka, like {"topic":{"0":123}}')
    return OffsetFile(Layout.CHECKPOINT, tuple(parts), tuple(problems))


def _source(text: str) -> _Pairs | None:
    """Offsets of Kafka's source; None for a source of another kind (`{"logOffset":3}`)."""
    try:
        tree = json.loads(text, object_pairs_hook=_Pairs)
    except json.JSONDecodeError:
        return None
    return tree if isinstance(tree, _Pairs) and all(isinstance(below, _Pairs) for _, below in tree) else None


def _mapping(tree: Any, problems: list[str], *, symbols: bool) -> list[KeptPosition]:
    if not isinstance(tree, _Pairs) or not tree:
        raise OffsetFileError(_EXPECTED)
    entries = []
    for topic, below in tree:
        if not isinstance(below, _Pairs):
            problems.append(f"topic {topic}: got {_shown(below)}; allowed partitions with their offsets")
            continue
        for partition, offset in below:
            if (position := _position(topic, partition, offset, problems, symbols=symbols)) is not None:
                entries.append(position)
    return entries


def _connect(listed: list[Any], problems: list[str]) -> list[KeptPosition]:
    positions = []
    for number, entry in enumerate(listed):
        named = dict(entry) if isinstance(entry, _Pairs) else {}
        where, offset = (dict(part) if isinstance(part := named.get(key), _Pairs) else {} for key in _PARTS)
        missing = [key for key in ("kafka_topic", "kafka_partition") if key not in where]
        missing += [] if "kafka_offset" in offset else ["kafka_offset"]
        if missing:
            problems.append(f"entry {number}: no {', '.join(missing)}; only sinks have offsets of Kafka")
            continue
        topic, partition = where["kafka_topic"], where["kafka_partition"]
        position = _position(topic, partition, offset["kafka_offset"], problems, symbols=False)
        if position is not None:
            positions.append(position)
    return positions


def _position(topic: object, partition: Any, offset: Any, problems: list[str], *, symbols: bool) -> KeptPosition | None:
    where, number, at = f"{topic}-{partition}", _integer(partition), _integer(offset)
    if number is None or not 0 <= number <= _MOST_PARTITIONS:
        problems.append(f"{where}: {_shown(partition)} is no partition; allowed 0 and more")
        return None
    if at is not None and (0 <= at <= _MOST or (symbols and at in SYMBOLS)):
        return TopicPartition(str(topic), number), at
    also = ", -1 (latest) or -2 (earliest)" if symbols else ""
    problems.append(f"{where}: {_shown(offset)} is no offset; allowed 0 and more{also}")
    return None


def _integer(value: object) -> int | None:
    if isinstance(value, str):
        return int(value) if _NUMBER.fullmatch(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


def _once(positions: list[KeptPosition], problems: list[str]) -> KeptOffsets:
    """Those whose partition is there once; nobody knows which of several offsets counts."""
    counts = Counter(partition for partition, _ in positions)
    problems += [f"{partition}: is there {count} times" for partition, count in counts.items() if count > 1]
    return KeptOffsets(tuple(position for position in positions if counts[position[0]] == 1))


def _of(part: KeptOffsets | str, offsets: Mapping[KeptPosition, KeptPosition]) -> list[KeptPosition]:
    assert isinstance(part, KeptOffsets)
    return [offsets[position] for position in part.positions if position in offsets]


def _tree(positions: list[KeptPosition]) -> dict[str, dict[int, int]]:
    tree: dict[str, dict[int, int]] = {}
    for (topic, partition), offset in positions:
        tree.setdefault(topic, {})[partition] = offset
    return tree


def _document(layout: Layout, positions: list[KeptPosition]) -> str:
    if layout is Layout.YAML:
        return yaml.safe_dump(_tree(positions), sort_keys=False, allow_unicode=True)
    if layout is Layout.JSON:
        return _json(_tree(positions)) + "\n"
    entries = [
        {"partition": {"kafka_topic": p.topic, "kafka_partition": p.partition}, "offset": {"kafka_offset": offset}}
        for p, offset in positions
    ]
    return _json({"offsets": entries}) + "\n"


def _json(tree: object) -> str:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)
