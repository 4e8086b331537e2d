"""Plans and statements as plain values for JSON: offsets are those of the next record, times UTC, unknown is null."""

from __future__ import annotations

from srm_spark.plan.snapshot import ClusterSnapshot, GroupMove, Plan, Range, SitePlan, SiteStatement, Statement
from srm_spark.plan.undo import Undo

Document = dict[str, object]


def plan_document(plan: Plan) -> Document:
    """What a move will do."""
    return {
        "move": plan.kind.value,
        "flow": str(plan.flow),
        "stages": [{"stage": stage.name.lower(), "does": stage.value} for stage in plan.stages],
        "done": [stage.name.lower() for stage in plan.done],
        "unsafe": list(plan.unsafe),
        **_snapshot(plan.snapshot),
    }


def statement_document(statement: Statement) -> Document:
    """What a move did."""
    return {
        "move": statement.kind.value,
        "flow": str(statement.flow),
        "began": statement.began,
        "ended": statement.ended,
        "rto_goal_seconds": statement.rto_goal,
        "unsafe": list(statement.unsafe),
        "next_steps": list(statement.next_steps),
        "phases": [
            {"stage": one.stage.name.lower(), "began": one.began, "ended": one.ended} for one in statement.phases
        ],
        **_snapshot(statement.snapshot),
    }


def site_plan_document(plan: SitePlan) -> Document:
    """What a switchover will do."""
    return {
        "site": plan.site,
        "stages": [{"stage": stage.name.lower(), "does": stage.value} for stage in plan.stages],
        "refusals": list(plan.refusals),
        "unsafe": list(plan.unsafe),
        "ended": list(map(str, plan.ended)),
        "flows": [plan_document(one) for one in plan.plans],
    }


def site_statement_document(statement: SiteStatement) -> Document:
    """What a switchover did."""
    flows = [statement_document(one) for one in statement.statements]
    return {"site": statement.site, "unsafe": list(statement.unsafe), "flows": flows}


def undo_document(undo: Undo) -> Document:
    """What became of a move that was given up."""
    return {
        "move": undo.kind.value,
        "flow": str(undo.flow),
        "groups": [
            {
                "group": one.group,
                "topic": one.remote.topic,
                "partition": one.remote.partition,
                "moved_to": one.moved,
                "before": one.before,
                "left": one.left or None,
            }
            for one in undo.groups
        ],
        "withdrawn_acls": [acl._asdict() for acl in undo.withdrawn],
        "left": list(undo.left),
        "notes": list(undo.notes),
    }


def _snapshot(snapshot: ClusterSnapshot) -> Document:
    return {
        "source_down": snapshot.source_down,
        "owner": snapshot.owner,
        "loss": vars(snapshot.loss),
        "groups": [_group(move) for move in snapshot.moves],
        "ranges": [_range(one) for one in snapshot.ranges],
        "write_acls": [
            {"acl": right.acl._asdict(), "in_force": right.is_in_force, "refused": right.refused or None}
            for right in snapshot.rights
        ],
    }


def _group(move: GroupMove) -> Document:
    return {
        "group": move.group,
        "topic": move.remote.topic,
        "partition": move.remote.partition,
        "on_source": move.upstream,
        "before": move.before,
        "after": move.after,
        "outcome": move.outcome.value,
        "standing": move.translation,
        "reason": move.reason,
    }


def _range(one: Range) -> Document:
    missing = one.missing
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "remote_topic": one.remote.topic,
        "replicated_to": one.replicated_to,
        "source_end": one.source_end,
        "target_end": one.target_end,
        "missing": None if missing is None else missing.end - missing.start,
        "held": one.hold,
        "parked": one.quarantined,
        "lost": [list(lost) for lost in one.lost],
    }
