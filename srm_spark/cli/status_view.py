"""The status of flows as text for people, and as a document for programs. What is not known is never a number."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from rich.console import Console
from rich.table import Table

from srm_spark.core.audit import Audit
from srm_spark.core.driver_status import DriverStatus
from srm_spark.core.model import Flow
from srm_spark.core.moments import stamp_of
from srm_spark.core.standstills import by_name
from srm_spark.core.wording import count, escaped
from srm_spark.look.flows import FlowReport, Lag, PartitionLag

VERSION = 1
"""Of the document."""
_SHOWN = 10
"""Lines of one kind below the table; `-o wide` has all of them."""
_UNKNOWN = "unknown"
_WIDTH = 200
_NOT_SHOWN = ("driver", "every", "is_last", "standing")
"""Fields of a driver's word that the document has in another form, or not."""
_UNITS = ("B", "kB", "MB", "GB", "TB")


def text(reports: Sequence[FlowReport], *, is_wide: bool = False) -> str:
    """A line per flow, and below it what cannot be seen in a number; wide: each topic and partition, too."""
    table = _table("flow", "state", "driver")
    for title in ("lag", "about", "oldest", "records/s", "latency"):
        table.add_column(title, justify="right")
    for title in ("lane", "held", "groups in sync"):
        table.add_column(title)
    for report in reports:
        table.add_row(*map(escaped, _cells(report)))
    parts = [_drawn(table)]
    for report in reports:
        parts += [f"  {escaped(line)}" for line in _lines(report, None if is_wide else _SHOWN)]
        parts += [_partitions(report.partitions)] if is_wide and report.partitions else []
    return "\n".join(parts)


def documents(reports: Iterable[FlowReport]) -> dict[str, Any]:
    """The same for programs; times are ISO 8601, what is not known is null."""
    return {"version": VERSION, "flows": [_document(report) for report in reports]}


def _cells(report: FlowReport) -> tuple[str, ...]:
    lag, drivers = report.lag, report.drivers
    owner, since = drivers.owner, report.unknown_since
    unknown = _UNKNOWN if since is None else f"{_UNKNOWN} since {clock(since)}"
    lane, held, groups = unknown, unknown, unknown
    if owner is not None:
        lane = _lane(owner)
        held = str(len(report.held) + owner.held_more)
        groups = _groups(owner)
    elif report.target_down is None:
        held = f"{len(report.held)} recorded"
    return (
        str(report.flow),
        state_of(report),
        "nobody" if owner is None else owner.driver.place,
        _lag(lag),
        _UNKNOWN if lag.bytes is None else size(lag.bytes),
        _UNKNOWN if lag.seconds is None else age(lag.seconds),
        unknown if owner is None else _number(owner.records_per_second),
        unknown if owner is None else _UNKNOWN if owner.latency_ms is None else f"{owner.latency_ms} ms",
        lane,
        held,
        groups,
    )


def state_of(report: FlowReport) -> str:
    """Where a flow stands, in one word or with the moment since when that is not known."""
    if report.drivers.state is not None:
        return report.drivers.state.value
    if report.unknown_since is not None:
        return f"{_UNKNOWN} since {clock(report.unknown_since)}"
    return _UNKNOWN if report.target_down is not None else "no driver yet"


def _lag(lag: Lag) -> str:
    if lag.records is not None:
        return f"{lag.records:,}"
    return _UNKNOWN if lag.unknown_since is None else f"{_UNKNOWN} since {clock(lag.unknown_since)}"


def _lane(driver: DriverStatus) -> str:
    if driver.partitions is None:
        return _UNKNOWN
    batches = driver.partitions - driver.realtime
    lanes = {"real time": driver.realtime, "micro-batch": batches}
    used = [f"{name} {number}" for name, number in lanes.items() if number]
    return ", ".join(used) or "-"


def _groups(driver: DriverStatus) -> str:
    groups = driver.groups
    if groups is None:
        return _UNKNOWN
    return f"not synced, {groups.taken} taken" if groups.in_sync is None else f"{groups.in_sync} of {groups.taken}"


def _lines(report: FlowReport, shown: int | None) -> Iterator[str]:
    """What a table has no room for."""
    flow, drivers = report.flow, report.drivers
    if report.target_down is not None:
        yield f"{flow}: nothing is known: {report.target_down}"
        return
    spokesman = drivers.spokesman
    if spokesman is not None and spokesman.reason is not None:
        yield f"{flow}: {spokesman.state.value}{_since(spokesman.since)}: {spokesman.reason}"
    elif spokesman is None and not drivers.silent:
        yield f"{flow}: no driver has said anything here; srm-driver runs the flow"
    if report.source_down is not None:
        yield f"{flow}: the source cannot be asked from here: {report.source_down}"
    elif report.lag.reason is not None:
        yield f"{flow}: the lag is not known: {report.lag.reason}"
    if report.rpo_goal is not None and report.lag.seconds is not None and report.lag.seconds > report.rpo_goal:
        yield f"{flow}: a failover now would lose {age(report.lag.seconds)} of data; the goal is {age(report.rpo_goal)}"
    for one in drivers.trying:
        yield f"{flow}: {one.driver.place} is {one.state.value}{_since(one.since)}"
    for one in drivers.standby:
        yield f"{flow}: {one.driver.place} stands by{_since(one.since)}"
    for one in drivers.silent:
        what = f"{one.driver.place} is silent: unknown since {stamp_of(one.at)}"
        yield f"{flow}: {what}; it was {one.state.value} then, and was killed or does not reach {flow.target}"
    for one in drivers.ended[:shown]:
        yield f"{flow}: {one.driver.place} {one.state.value} at {stamp_of(one.at)}"
    owner = drivers.owner
    more = 0 if owner is None else owner.held_more
    yield from _some(report.held, shown, lambda name, why: f"{flow}: {name} stands still: {why}", more)
    gone = dict.fromkeys(report.not_shown, f"{flow.source} does not show it any more")
    yield from _some(gone, shown, lambda name, why: f"{flow}: {name} is no part of the lag: {why}")
    yield from _acl_lines(report)
    if owner is not None:
        yield from _owners_lines(report, owner, shown)


def _acl_lines(report: FlowReport) -> Iterator[str]:
    flow = report.flow
    if report.staged_acls:
        yield f"{flow}: {count(report.staged_acls, 'ACL')} staged for failover"
    if report.write_acls:
        what = f"{count(report.write_acls, 'ACL')} to write remote topics in force since a failover"
        yield f"{flow}: {what}: srm-control failback takes them back"
    if report.acls_unknown is not None:
        yield f"{flow}: which ACLs wait for a failover, or came by one, is not known: {report.acls_unknown}"


def _owners_lines(report: FlowReport, owner: DriverStatus, shown: int | None) -> Iterator[str]:
    flow, groups = report.flow, owner.groups
    if groups is not None:
        what = "has no translation" if groups.in_sync is None else "is not in sync"
        yield from _some(groups.left, shown, lambda name, why: f"{flow}: group {name} {what}: {why}", groups.more)
    if owner.limit is not None:
        yield f"{flow}: {owner.limit}"
    if owner.parked:
        yield f"{flow}: records of {count(owner.parked, 'topic')} in quarantine: srm-control quarantine list"
    if owner.lost_records:
        yield f"{flow}: {count(owner.lost_records, 'source offset')} found lost: srm-control losses"
    if owner.audit is not None:
        yield from (f"{flow}: {line}" for line in _audit_lines(owner.audit, owner.at))
    if owner.last_error is not None and owner.last_error_at is not None and owner.last_error != owner.reason:
        yield f"{flow}: last error at {stamp_of(owner.last_error_at)}: {owner.last_error}"


def _audit_lines(audit: Audit, at: int) -> Iterator[str]:
    if (late := audit.late(at)) is not None:
        yield late
    if audit.ended is None:
        yield "audit: none has ended yet"
        return
    what = f"{count(audit.records, 'record')} found right" if audit.first is None else "copies differ"
    yield f"audit of {stamp_of(audit.ended)}: {what}"
    if audit.first is not None:
        yield f"{count(audit.differences, 'difference')}, the first {audit.first}: srm-control verify"
    if audit.uncovered:
        yield f"{count(audit.uncovered, 'source offset')} copied by others, of which the map knows nothing"
    if audit.unchecked is not None:
        yield f"not looked at: {audit.unchecked}"


def _some(named: Mapping[str, str], shown: int | None, line: Any, more: int = 0) -> Iterator[str]:
    names = list(named.items())[:shown]
    yield from (line(name, why) for name, why in names)
    if left := len(named) - len(names) + more:
        yield f"… and {left} more"


def _partitions(rows: Sequence[PartitionLag]) -> str:
    table = _table("topic", "remote topic", "partition")
    for title in ("copied to", "source ends at", "lag"):
        table.add_column(title, justify="right")
    table.add_column("stands still")
    by_topic: dict[str, list[PartitionLag]] = {}
    for row in rows:
        by_topic.setdefault(row.partition.topic, []).append(row)
    for topic, mine in by_topic.items():
        numbers = [row.records for row in mine]
        known = [number for number in numbers if number is not None]
        whole = f"{sum(known):,}" if len(known) == len(numbers) else _UNKNOWN
        held = sum(row.held is not None for row in mine)
        table.add_row(topic, mine[0].remote.topic, f"all {len(mine)}", "", "", whole, str(held) if held else "")
        for row in mine:
            copied = "nothing yet" if row.next_offset is None else str(row.next_offset)
            end, lag = (_UNKNOWN if number is None else f"{number}" for number in (row.end, row.records))
            table.add_row("", "", str(row.partition.partition), copied, end, lag, escaped(row.held or ""))
    return _drawn(table)


def _table(*titles: str) -> Table:
    return Table(*titles, box=None, pad_edge=False)


def _drawn(table: Table) -> str:
    to = io.StringIO()
    Console(file=to, width=_WIDTH, highlight=False, markup=False).print(table)
    return "\n".join(line.rstrip() for line in to.getvalue().splitlines())


def _since(at: int | None) -> str:
    return "" if at is None else f" since {stamp_of(at)}"


def _number(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:,.0f}"


def size(number: int) -> str:
    """Bytes for people: `12.3 MB`."""
    value, unit = float(number), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{number} B" if not unit else f"{value:.1f} {_UNITS[unit]}"


def age(seconds: float) -> str:
    """A span of time for people: `0.3 s`, `12 min`, `3.5 h`."""
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def clock(milliseconds: int) -> str:
    """A moment of today, in UTC."""
    return f"{datetime.fromtimestamp(milliseconds / 1000, timezone.utc):%H:%M:%SZ}"


def _document(report: FlowReport) -> dict[str, Any]:
    drivers, lag, owner = report.drivers, report.lag, report.drivers.owner
    state, spokesman = drivers.state, drivers.spokesman
    return {
        "flow": str(report.flow),
        "at": stamp_of(report.at),
        "state": None if state is None else state.value,
        "unknown_since": _moment(report.unknown_since),
        "reason": None if spokesman is None else spokesman.reason,
        "source_down": report.source_down,
        "target_down": report.target_down,
        "lag": {**asdict(lag), "unknown_since": _moment(lag.unknown_since)},
        "rpo_goal_seconds": report.rpo_goal,
        "owner": None if owner is None else _driver(owner, report.flow),
        "trying": [_driver(one, report.flow) for one in drivers.trying],
        "standby": [_driver(one, report.flow) for one in drivers.standby],
        "silent": [_gone(one) for one in drivers.silent],
        "ended": [_gone(one) for one in drivers.ended],
        "held": report.held,
        "not_shown": list(report.not_shown),
        "staged_acls": report.staged_acls,
        "write_acls": report.write_acls,
        "acls_unknown": report.acls_unknown,
        "partitions": [_partition(row) for row in report.partitions],
    }


def _driver(driver: DriverStatus, flow: Flow) -> dict[str, Any]:
    times = ("at", "since", "unknown_since", "last_error_at")
    document = {name: value for name, value in vars(driver).items() if name not in _NOT_SHOWN}
    document |= {name: _moment(document[name]) for name in times}
    document |= {"state": driver.state.value, "groups": None if driver.groups is None else asdict(driver.groups)}
    document["held"] = by_name(driver.standing, flow)
    document["audit"] = None if driver.audit is None else _audit(driver.audit, driver.at)
    micro_batch = None if driver.partitions is None else driver.partitions - driver.realtime
    document["lanes"] = {"realtime": document.pop("realtime"), "micro_batch": micro_batch}
    return {
        "host": driver.driver.host,
        "pid": driver.driver.pid,
        "started": stamp_of(driver.driver.started),
        **document,
    }


def _audit(audit: Audit, at: int) -> dict[str, Any]:
    times = {"since": stamp_of(audit.since), "ended": _moment(audit.ended)}
    return {**asdict(audit), **times, "late": audit.late(at)}


def _gone(driver: DriverStatus) -> dict[str, Any]:
    """What its last word said of the moment is true no longer."""
    started = stamp_of(driver.driver.started)
    whole = {"host": driver.driver.host, "pid": driver.driver.pid, "started": started, "at": stamp_of(driver.at)}
    return {**whole, "last_state": driver.state.value, "reason": driver.reason}


def _partition(row: PartitionLag) -> dict[str, Any]:
    document = asdict(row)
    document["topic"], document["partition"] = row.partition
    document["remote"] = row.remote.topic
    document["kind"] = None if row.kind is None else row.kind.value
    return document


def _moment(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else stamp_of(milliseconds)
