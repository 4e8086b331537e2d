"""Verifications as plain values for JSON, and as signed statements: times are UTC, unknown is null."""

from __future__ import annotations

from pathlib import Path

from srm_spark.config.settings import FlowSettings
from srm_spark.core.envelope import Predicate, Subject
from srm_spark.core.model import OffsetRange
from srm_spark.core.moments import time_of
from srm_spark.look.verify import Verification, Verified
from srm_spark.statements import Seal

Document = dict[str, object]
_HOW = (
    "Both sides were read, and each record was compared with its copy along the exact offset map: key, value, headers, "
    "timestamp, and where it lies"
)


def sign_verification(seal: Seal, path: Path, settings: FlowSettings, found: Verification, asked: Document) -> None:
    """A statement of one flow, with the roots of what was read. Raises SigningFailed."""
    flow = settings.flow
    subjects = [
        Subject(f"{alias} {log} {offsets.start} to {offsets.end}", root.sha256)
        for one in found.partitions
        if one.roots is not None and one.target is not None
        for alias, log, offsets, root in (
            (flow.source, one.partition, one.source, one.roots.source),
            (flow.target, one.remote, one.target, one.roots.target),
        )
    ]
    clusters = {
        flow.source: settings.source.bootstrap_servers,
        flow.target: settings.target.bootstrap_servers,
    }
    said = {"how": _HOW, "asked": asked, "clusters": clusters, **verification_document(found)}
    seal.write(path, Predicate.VERIFICATION, subjects, said)


def verification_document(found: Verification) -> Document:
    """Of one flow."""
    return {
        "flow": str(found.flow),
        "verdict": found.verdict.value,
        "sample": found.said_of_all,
        "began": time_of(found.began),
        "ended": time_of(found.ended),
        "partitions": [_partition(one) for one in found.partitions],
    }


def _partition(one: Verified) -> Document:
    checked = one.checked
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "remote_topic": one.remote.topic,
        "verdict": one.verdict.value,
        "unchecked": one.unchecked,
        "source": _range(one.source),
        "target": None if one.target is None else _range(one.target),
        "equal": checked.equal,
        "explained": {reason.name.lower(): number for reason, number in checked.explained.items()},
        "differences": {kind.value: number for kind, number in checked.differences.items()},
        "findings": [
            {"kind": kind.value, "source": source, "target": target, "what": what}
            for kind, source, target, what in checked.findings
        ],
        "uncovered": [_range(hole) for hole in one.uncovered],
        "uncovered_records": checked.unknown,
        "not_yet_copied": one.not_yet,
        "roots": None if one.roots is None else {"source": vars(one.roots.source), "target": vars(one.roots.target)},
    }


def _range(offsets: OffsetRange) -> dict[str, int]:
    """`start` (included) to `end` (excluded)."""
    return {"start": offsets.start, "end": offsets.end}
