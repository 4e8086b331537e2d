"""Plans as plain values for JSON, and back: `apply` reads of a file what was planned, and from what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from srm_spark.change.facts import digest
from srm_spark.change.planning import ChangePlan
from srm_spark.change.steps import Document, Step, step_document, step_of
from srm_spark.errors import PlanError
from srm_spark.files import write_whole

FORMAT = 1


@dataclass(frozen=True)
class PlannedFlow:
    """What a file says of one flow."""

    flow: str
    hash: str
    made_from: Mapping[str, Any]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class PlanFile:
    """What `apply` knows of a plan."""

    prune: bool
    flows: tuple[PlannedFlow, ...]

    @property
    def id(self) -> str:
        """Which plan it is, for its report."""
        steps = [[one.flow, one.hash, [step_document(step) for step in one.steps]] for one in self.flows]
        return digest([self.prune, steps])


def plan_file(plans: Iterable[ChangePlan], *, prune: bool) -> PlanFile:
    """What `apply` would know of these plans, had they been written to a file."""
    flows = (PlannedFlow(str(one.world.flow), one.hash, one.made_from, one.steps) for one in plans)
    return PlanFile(prune, tuple(flows))


def plans_document(plans: Iterable[ChangePlan], *, prune: bool) -> Document:
    """All flows of a configuration."""
    return {"format": FORMAT, "prune": prune, "flows": [plan_document(plan) for plan in plans]}


def plan_document(plan: ChangePlan) -> Document:
    """One flow: what will be done and why, what is not done and why, what is lost, and what it was made from."""
    world = plan.world
    return {
        "flow": str(world.flow),
        "hash": plan.hash,
        "owner": world.owner,
        "steps": [step_document(step) for step in plan.steps],
        "kept": [{"kind": one.kind.value, "name": one.name, "text": one.text} for one in plan.kept],
        "losing_configs": {remote: [one._asdict() for one in found] for remote, found in plan.losing.items()},
        "losses": [
            {"topic": one.partition.topic, "partition": one.partition.partition, "offsets": list(one.offsets)}
            for one in world.losses
        ],
        "groups": {
            "taken": list(world.groups.taken),
            "left_out": dict(world.groups.left_out),
            "unknown": world.groups.unknown,
        },
        "skipped": {
            "topics": dict(world.skipped),
            "configs": [
                {"key": key, "reason": why, "topics": list(topics)}
                for (key, why), topics in plan.skipped_configs.items()
            ],
            "acls": [{"acl": acl._asdict(), "reason": why} for acl, why in plan.skipped_acls.items()],
            "all_acls": world.acls if isinstance(world.acls, str) else None,
        },
        "staged_acls": [{"acl": acl._asdict(), "in_force": in_force} for acl, in_force in plan.staged],
        "renames": [asdict(one) for one in world.renames],
        "rights": [{**asdict(finding), "health": finding.health.value} for finding in world.rights],
        "internal_topics": [
            {"topic": one.topic.spec.name, "on": one.on, "fault": one.fault.text, "remedy": one.fault.remedy}
            for one in world.internal
            if one.fault is not None
        ],
        "warnings": list(world.warnings),
        "unknown": list(plan.unknown),
        "made_from": dict(plan.made_from),
    }


def save_plan(path: Path, document: Document) -> None:
    """Write a plan in one step. Raises PlanError."""
    write_whole(path, json.dumps(document, indent=2) + "\n", PlanError, "--out")


def load_plan(path: Path) -> PlanFile:
    """Read a plan. Raises PlanError where the file is none, is of another format, or was changed by hand."""
    remedy = "make a plan with srm-control plan --out FILE"
    try:
        document = json.loads(path.read_text())
        if document["format"] != FORMAT:
            raise PlanError(f"{path}: format {document['format']}, expected {FORMAT}; {remedy}")
        flows = tuple(
            PlannedFlow(str(one["flow"]), str(one["hash"]), dict(one["made_from"]), tuple(map(step_of, one["steps"])))
            for one in document["flows"]
        )
        plan = PlanFile(document["prune"] is True, flows)
    except OSError as error:
        raise PlanError(f"{path}: cannot be read: {error.strerror}; {remedy}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PlanError(f"{path}: this is no plan ({type(error).__name__}: {error}); {remedy}") from None
    for one in plan.flows:
        if digest(one.made_from) != one.hash:
            raise PlanError(f"{path}: what the plan of {one.flow} was made from does not have its hash; {remedy}")
    return plan
