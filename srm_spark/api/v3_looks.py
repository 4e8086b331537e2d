"""/v3, what is asked of the clusters at the moment: groups with reasons, losses, quarantine, explanations, acts."""

from __future__ import annotations

import base64
from dataclasses import replace
from enum import Enum
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from srm_spark.api.asked import iso_if_known
from srm_spark.api.control import Desk, TheDesk
from srm_spark.api.problems import CONTROL_RESPONSES, RequestProblem
from srm_spark.api.roles import Role
from srm_spark.api.v3 import Limit, Offset, Search
from srm_spark.core.acts import AnyAct
from srm_spark.core.filters import NameFilter
from srm_spark.core.lists import Act
from srm_spark.core.model import KeptLoss, TopicPartition
from srm_spark.core.moments import time_of
from srm_spark.core.quarantine import QuarantinedRecord
from srm_spark.core.tail import TailRecord
from srm_spark.flow.commanding import Acted, history
from srm_spark.flow.groups.report import GroupReport, GroupRow, report_groups
from srm_spark.flow.refused.replay import list_quarantine, records_in_quarantine
from srm_spark.flow.topics.losses import kept_losses
from srm_spark.look.acls import explain_acls
from srm_spark.look.answer import Answer
from srm_spark.look.groups import explain_group
from srm_spark.look.properties import explain_property
from srm_spark.look.topics import explain_topic

router = APIRouter(prefix="/v3/flows/{source}/{target}", tags=["srm-spark V3, asked of clusters"])
EVERY = NameFilter((".*",))
_PAGE = 100
_LONGEST = 10_000
_SHOWN_BYTES = 64 * 1024
"""Of a key, a value or a header."""
TopicName = Annotated[str, Query(min_length=1, max_length=249, description="A topic, by its name on the source.")]
Partition = Annotated[int, Query(ge=0, lt=2**31)]


class PositionDocument(BaseModel):
    """A group on a partition. Offsets are those of the next record; what is not known is null."""

    group: str
    remote_topic: str
    partition: int
    on_source: int
    source_lag: int | None
    goes_on_at: int | None
    translation: str
    on_target: int | None
    target_lag: int | None
    sync: str | None

    @classmethod
    def of(cls, row: GroupRow) -> PositionDocument:
        """That of a row."""
        return cls(
            group=row.group,
            remote_topic=row.remote.topic,
            partition=row.remote.partition,
            on_source=row.upstream,
            source_lag=row.source_lag,
            goes_on_at=row.downstream,
            translation=row.translation,
            on_target=row.target_offset,
            target_lag=row.target_lag,
            sync=row.sync,
        )


class NotTakenDocument(BaseModel):
    """A group that the flow does not take."""

    group: str
    why: str


class PositionsDocument(BaseModel):
    """A page of positions; `source_down` says why they are of checkpoints, `not_known` which groups are missing."""

    flow: str
    source_down: str | None
    not_known: list[str]
    not_taken: list[NotTakenDocument]
    total: int
    offset: int
    positions: list[PositionDocument]


class OffsetsDocument(BaseModel):
    """Offsets from `start` to in front of `end`."""

    start: int
    end: int


class LossDocument(BaseModel):
    """What was lost; `target` is null where nothing was copied."""

    source_topic: str
    partition: int
    topic_id: str | None
    cause: str
    source: OffsetsDocument
    target: OffsetsDocument | None
    found_at: str

    @classmethod
    def of(cls, kept: KeptLoss) -> LossDocument:
        """That of a loss."""
        source, target = kept.loss.offsets, kept.loss.target
        return cls(
            source_topic=kept.partition.topic,
            partition=kept.partition.partition,
            topic_id=kept.topic_id,
            cause=kept.loss.cause.value,
            source=OffsetsDocument(start=source.start, end=source.end),
            target=None if target is None else OffsetsDocument(start=target.start, end=target.end),
            found_at=time_of(kept.found_at),
        )


class LossesDocument(BaseModel):
    """A page of losses, the oldest first."""

    flow: str
    total: int
    offset: int
    losses: list[LossDocument]


class QuarantinedDocument(BaseModel):
    """A record in quarantine, without its content."""

    source_topic: str
    topic_id: str | None
    partition: int
    offset: int
    timestamp: str | None
    timestamp_type: str
    size: int
    quarantined_at: str
    kind: str
    reason: str

    @classmethod
    def of(cls, entry: QuarantinedRecord) -> QuarantinedDocument:
        """That of an entry."""
        return cls(
            source_topic=entry.place.partition.topic,
            topic_id=entry.place.topic_id,
            partition=entry.place.partition.partition,
            offset=entry.place.offset,
            timestamp=time_of(entry.timestamp) if entry.timestamp >= 0 else None,
            timestamp_type="LogAppendTime" if entry.is_append_time else "CreateTime",
            size=entry.size,
            quarantined_at=time_of(entry.quarantined_at),
            kind=entry.why.kind.value,
            reason=entry.why.sentence,
        )


class QuarantineDocument(BaseModel):
    """A page of what is in quarantine."""

    flow: str
    total: int
    offset: int
    records: list[QuarantinedDocument]


class BytesDocument(BaseModel):
    """A key, a value or the value of a header: the first 64 kB of it; `text` is null where they are no UTF-8."""

    size: int
    base64: str
    text: str | None

    @classmethod
    def of(cls, content: bytes | None) -> BytesDocument | None:
        """Those; None for none."""
        if content is None:
            return None
        shown = content[:_SHOWN_BYTES]
        try:
            text: str | None = shown.decode()
        except UnicodeDecodeError:
            text = None
        return cls(size=len(content), base64=base64.b64encode(shown).decode(), text=text)


class HeaderDocument(BaseModel):
    """A header of a record."""

    name: str
    value: BytesDocument | None


class ContentDocument(BaseModel):
    """A record in quarantine as it was on the source."""

    entry: QuarantinedDocument
    key: BytesDocument | None
    value: BytesDocument | None
    headers: list[HeaderDocument]

    @classmethod
    def of(cls, entry: QuarantinedRecord, record: TailRecord) -> ContentDocument:
        """That of a record."""
        return cls(
            entry=QuarantinedDocument.of(entry),
            key=BytesDocument.of(record.key),
            value=BytesDocument.of(record.value),
            headers=[HeaderDocument(name=_shown(name), value=BytesDocument.of(one)) for name, one in record.headers],
        )


class RuleDocument(BaseModel):
    """What decided."""

    text: str
    place: str
    who: str | None
    at: str | None
    why: str | None


class AnswerDocument(BaseModel):
    """Why something flows, or does not."""

    flow: str
    subject: str
    verdict: str
    because: str
    why: str
    rule: RuleDocument | None
    since: str | None
    waits_for: str | None
    remedy: str | None
    facts: dict[str, str]

    @classmethod
    def of(cls, answer: Answer) -> AnswerDocument:
        """That of an answer."""
        rule = answer.rule
        return cls(
            flow=str(answer.flow),
            subject=answer.subject,
            verdict=answer.verdict.value,
            because=answer.because.value,
            why=answer.why,
            rule=None
            if rule is None
            else RuleDocument(text=rule.text, place=rule.place, who=rule.who, at=iso_if_known(rule.at), why=rule.why),
            since=iso_if_known(answer.since),
            waits_for=answer.waits_for,
            remedy=answer.remedy,
            facts=dict(answer.facts),
        )


class EventDocument(BaseModel):
    """One act: of lists, on a part of the flow (`scope`), or on offsets (with what came of it)."""

    at: str
    who: str
    why: str
    kind: str
    said: str
    scope: str | None = None
    is_waiting: bool = False
    answered_by: str | None = None
    declined: str | None = None

    @classmethod
    def of(cls, one: Acted) -> EventDocument:
        """That of an act."""
        act, answer = one.act, one.answer
        return cls(
            at=time_of(act.at),
            who=act.who,
            why=act.why,
            kind=act.kind.value,
            said=said(act),
            scope=None if isinstance(act, Act) else str(act.scope),
            is_waiting=one.is_waiting,
            answered_by=None if answer is None else answer.driver,
            declined=None if answer is None else answer.declined,
        )


class EventsDocument(BaseModel):
    """A page of acts, the newest first."""

    flow: str
    total: int
    offset: int
    events: list[EventDocument]


class Subject(Enum):
    """What can be explained."""

    TOPIC = "topic"
    GROUP = "group"
    PROPERTY = "property"
    ACL = "acl"


@router.get("/group-positions", responses=CONTROL_RESPONSES)
def group_positions(
    *, desk: TheDesk, search: Search = "", offset: Offset = 0, limit: Limit = _PAGE
) -> PositionsDocument:
    """Where groups stand on both sides now, and why one is not synced or not taken."""
    report = groups_of(desk, search)
    return PositionsDocument(
        flow=str(desk.flow),
        source_down=report.source_down,
        not_known=list(report.refusals),
        not_taken=[NotTakenDocument(group=group, why=why) for group, why in sorted(report.left_out.items())],
        total=len(report.rows),
        offset=offset,
        positions=[PositionDocument.of(row) for row in report.rows[offset : offset + limit]],
    )


@router.get("/losses", responses=CONTROL_RESPONSES)
def losses(*, desk: TheDesk, offset: Offset = 0, limit: Limit = _PAGE) -> LossesDocument:
    """What the flow has found to be lost; its source may be down."""
    found = losses_of(desk)
    shown = [LossDocument.of(one) for one in found[offset : offset + limit]]
    return LossesDocument(flow=str(desk.flow), total=len(found), offset=offset, losses=shown)


@router.get("/quarantine", responses=CONTROL_RESPONSES)
def quarantine(*, desk: TheDesk, search: Search = "", offset: Offset = 0, limit: Limit = _PAGE) -> QuarantineDocument:
    """What is in quarantine, and why; no contents."""
    found = quarantine_of(desk, search)
    shown = [QuarantinedDocument.of(one) for one in found[offset : offset + limit]]
    return QuarantineDocument(flow=str(desk.flow), total=len(found), offset=offset, records=shown)


@router.get("/quarantine/record", responses=CONTROL_RESPONSES)
def quarantined_record(
    *,
    desk: TheDesk,
    topic: TopicName,
    partition: Partition,
    at: Annotated[int, Query(alias="offset", ge=0, lt=2**63)],
) -> list[ContentDocument]:
    """A record in quarantine with its content, for operators; several where topics of one name were made anew."""
    return contents_of(desk, TopicPartition(topic, partition), at)


@router.get("/explain/{subject}", responses=CONTROL_RESPONSES)
def explain(
    *,
    desk: TheDesk,
    subject: Subject,
    name: Annotated[str, Query(min_length=1, max_length=_LONGEST, description="Of the topic, group or property.")],
    topic: Annotated[str | None, Query(max_length=249, description="Of a property: compare it on this topic.")] = None,
) -> list[AnswerDocument]:
    """Why a topic, a group, a property of topics or an ACL flows, or does not."""
    return [AnswerDocument.of(one) for one in explained(desk, subject, name, topic)]


@router.get("/events", responses=CONTROL_RESPONSES)
def events(*, desk: TheDesk, offset: Offset = 0, limit: Limit = _PAGE) -> EventsDocument:
    """Everything that was done to the flow: lists, pauses, restarts, offsets."""
    found = events_of(desk)
    shown = [EventDocument.of(one) for one in found[offset : offset + limit]]
    return EventsDocument(flow=str(desk.flow), total=len(found), offset=offset, events=shown)


def groups_of(desk: Desk, search: str) -> GroupReport:
    """Groups whose names contain that. No pattern: one that takes for ever would stop the service."""
    with desk.asking("groups"):
        report = report_groups(desk.settings, EVERY, desk.control.means.reach)
    rows = tuple(row for row in report.rows if search in row.group)
    return replace(report, rows=rows, left_out={one: why for one, why in report.left_out.items() if search in one})


def losses_of(desk: Desk) -> tuple[KeptLoss, ...]:
    """All of them."""
    with desk.asking("losses"):
        return kept_losses(desk.settings, desk.control.means.reach)


def quarantine_of(desk: Desk, search: str) -> tuple[QuarantinedRecord, ...]:
    """Entries of source topics whose names contain that."""
    with desk.asking("quarantine"):
        found = list_quarantine(desk.settings, EVERY, desk.control.means.reach)
    return tuple(one for one in found if search in one.place.partition.topic)


def contents_of(desk: Desk, partition: TopicPartition, offset: int) -> list[ContentDocument]:
    """What is in quarantine of one place. Raises RequestProblem where there is nothing."""
    with desk.asking("look at a record in quarantine", Role.OPERATOR):
        found = records_in_quarantine(desk.settings, partition, offset, desk.control.means.reach)
    if not found:
        text = f"nothing of {partition} offset {offset} is in quarantine"
        raise RequestProblem(404, "not in quarantine", text, "not-in-quarantine")
    return [ContentDocument.of(entry, record) for entry, record in found]


def explained(desk: Desk, subject: Subject, name: str, topic: str | None = None) -> tuple[Answer, ...]:
    """What becomes of something."""
    means = desk.control.means
    with desk.asking("explain"):
        if subject is Subject.TOPIC:
            return (explain_topic(desk.settings, name, means.reach, means.forbidden),)
        if subject is Subject.GROUP:
            return (explain_group(desk.settings, name, means.reach),)
        if subject is Subject.PROPERTY:
            return (explain_property(desk.settings, name, topic or None, means.reach),)
        return explain_acls(desk.settings, name, means.reach)


def events_of(desk: Desk) -> list[Acted]:
    """All acts, the newest first."""
    with desk.asking("events"):
        return history(desk.settings, desk.control.means.reach)[::-1]


def said(act: AnyAct) -> str:
    """What was done, without who and why."""
    return f"{act.kind.value} {act.change}" if isinstance(act, Act) else act.said


def _shown(name: str) -> str:
    """The name of a header, which may hold bytes that are no UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
