"""Plans and statements as plain values for JSON: offsets are those of the next record, times UTC, unknown is null."""

from __future__ import annotations

from srm_spark.plan.snapshot import ClusterSnapshot, GroupMove, Plan, Range, Statement

Document = dict[str, object]


def plan_document(plan: Plan) -> Document:
    """What a move will do."""
    return {
        "move": plan.kind.value,
        "flow": str(plan.flow),
        "stages": [{"stage": stage.name.lower(), "does": stage.value} for stage in plan.stages],
        "done": [stage.name.lower() for stage in plan.done],
        "unsafe": list(plan.unsafe),
        **_world(plan.world),
    }


def statement_document(statement: Statement) -> Document:
    """What a move did."""
    return {
        "move": statement.kind.value,
        "flow": str(statement.flow),
        "began": statement.began,
        "ended": statement.ended,
        "unsafe": list(statement.unsafe),
        "next_steps": list(statement.next_steps),
        **_world(statement.world),
    }


def _world(world: ClusterSnapshot) -> Document:
    return {
        "source_down": world.source_down,
        "owner": world.owner,
        "loss": vars(world.loss),
        "groups": [_group(move) for move in world.moves],
        "ranges": [_range(found) for found in world.ranges],
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
        "standing": move.standing,
        "reason": move.reason,
    }


def _range(found: Range) -> Document:
    missing = found.missing
    return {
        "topic": found.partition.topic,
        "partition": found.partition.partition,
        "remote_topic": found.remote.topic,
        "replicated_to": found.replicated_to,
        "source_end": found.source_end,
        "target_end": found.target_end,
        "missing": None if missing is None else missing.end - missing.start,
        "held": found.hold,
        "parked": found.parked,
        "lost": [list(lost) for lost in found.lost],
    }
