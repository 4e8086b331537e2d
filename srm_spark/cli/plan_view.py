"""Plans, drift and reports as text for people. Long lists are cut; JSON has all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from srm_spark.change.planning import ChangePlan, Kept
from srm_spark.change.report import RunReport
from srm_spark.change.steps import Stage, of_stage
from srm_spark.core.wording import count, some
from srm_spark.doctor.report import Health
from srm_spark.plan.renames import Rename

_SHOWN = 20
"""Lines of one section."""
_NAMES = 5


def plan_lines(plan: ChangePlan) -> Iterator[str]:
    """What would be done for one flow and why, what would not, and what is lost."""
    yield from steps_lines(plan)
    yield from _section("is kept as it is", _kept(plan.kept))
    yield from _section("is staged for failover", _staged(plan))
    yield _groups(plan)
    yield from _section("is left out", _skipped(plan))
    yield from _section("is or would be lost", [*_losses(plan), *_losing(plan)])
    yield from _section("is not allowed, or not known", [*_rights(plan), *plan.unknown])
    yield from _section("needs a look", [*_faults(plan), *plan.world.warnings])
    if not plan.world.renames:
        yield "  no remote topic has another name than before"
    for one in plan.world.renames:
        yield from _rename(one)


def steps_lines(plan: ChangePlan) -> Iterator[str]:
    """What would be done for one flow."""
    flow, owner = plan.world.flow, plan.world.owner
    yield f"{flow}: {count(len(plan.steps), 'change') if plan.steps else 'nothing to change'}"
    if owner is not None:
        yield f"  {owner} runs the flow and does all of this by itself, but for what only --prune removes"
    for stage in Stage:
        steps = of_stage(plan.steps, stage)
        for alias in dict.fromkeys(step.on for step in steps):
            lines = [f"{step.mark} {step}  ({step.reason})" for step in steps if step.on == alias]
            yield from _section(f"{stage.value} on {alias}", lines)


def drift_lines(plan: ChangePlan) -> Iterator[str]:
    """What differs now for one flow."""
    yield f"{plan.world.flow}: {'nothing differs' if plan.is_alike else _differences(plan)}"
    for stage in Stage:
        lines = [f"{step.mark} {step}  ({step.reason})" for step in of_stage(plan.steps, stage)]
        yield from _section(f"{stage.value} that apply would change", lines)
    yield from _section("is kept as it is", _kept(plan.drift))
    yield from _section("is or would be lost", _losing(plan))
    yield from _section("is left of topics that are gone", _kept(plan.orphans))
    yield from _section("is not known", filter(None, [plan.world.unrecorded]))


def report_lines(report: RunReport) -> Iterator[str]:
    """What became of a plan."""
    for flow, one in report.flows.items():
        yield f"{flow}: {count(len(one.done), 'change')} done, {len(one.refused)} refused"
        yield from _section("was refused", [f"{step}: {why}" for step, why in one.refused.items()])


def _differences(plan: ChangePlan) -> str:
    counts = [
        (len(plan.steps), f"{count(len(plan.steps), 'change')} to apply"),
        (len(plan.drift), f"{count(len(plan.drift), 'difference')} kept"),
        (len(plan.losing), f"{count(len(plan.losing), 'topic')} worse off"),
    ]
    return ", ".join(text for number, text in counts if number)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    all_lines = list(lines)
    if not all_lines:
        return
    yield f"  {title}"
    yield from (f"    {line}" for line in all_lines[:_SHOWN])
    if len(all_lines) > _SHOWN:
        yield f"    and {len(all_lines) - _SHOWN} more: -o json has all of them"


def _kept(kept: Iterable[Kept]) -> list[str]:
    return [f"{one.name}: {one.text}" for one in kept]


def _staged(plan: ChangePlan) -> Iterator[str]:
    for acl, in_force in plan.staged:
        yield f"{acl}" + (": in force; srm-control failback takes it back" if in_force else "")


def _groups(plan: ChangePlan) -> str:
    groups = plan.world.groups
    if groups.unknown is not None:
        return f"  groups: {groups.unknown}"
    taken = f"{count(len(groups.taken), 'group')} taken" + (f": {some(groups.taken)}" if groups.taken else "")
    return f"  {taken}"


def _skipped(plan: ChangePlan) -> Iterator[str]:
    world = plan.world
    for why, topics in _by_reason(world.skipped):
        yield f"{count(len(topics), 'topic')} ({some(topics, _NAMES)}): {why}"
    for (key, why), topics in plan.skipped_configs.items():
        yield f"config {key} of {count(len(topics), 'topic')} ({some(topics, _NAMES)}): {why}"
    if isinstance(world.acls, str):
        yield f"all ACLs: {world.acls}"
    for why, acls in _by_reason({str(acl): why for acl, why in plan.skipped_acls.items()}):
        yield f"{count(len(acls), 'ACL')} ({some(acls, 1)}): {why}"
    for why, groups in _by_reason(world.groups.left_out):
        yield f"{count(len(groups), 'group')} ({some(groups, _NAMES)}): {why}"


def _by_reason(reasons: Mapping[str, str]) -> Iterator[tuple[str, Sequence[str]]]:
    found = defaultdict[str, list[str]](list)
    for name, why in reasons.items():
        found[why].append(name)
    yield from sorted(found.items())


def _losses(plan: ChangePlan) -> Iterator[str]:
    for one in plan.world.losses:
        start, end = one.offsets
        gone = f"offsets {start} to {end - 1} are deleted on {plan.world.flow.source} and were never copied"
        yield f"{one.partition}: {gone}"


def _losing(plan: ChangePlan) -> Iterator[str]:
    alike = defaultdict[str, list[str]](list)
    for remote, found in plan.losing.items():
        alike["; ".join(map(str, found))].append(remote)
    for what, remotes in alike.items():
        yield f"{what} ({some(remotes, _NAMES)})"


def _rights(plan: ChangePlan) -> Iterator[str]:
    findings = plan.world.rights
    for finding in findings:
        if finding.health is not Health.UNKNOWN:
            yield f"{finding.check}: {finding.found}" + (f"; {finding.remedy}" if finding.remedy else "")
    if unknown := sum(finding.health is Health.UNKNOWN for finding in findings):
        yield f"{count(unknown, 'right')} cannot be told from here; srm-driver doctor has details"


def _faults(plan: ChangePlan) -> Iterator[str]:
    for one in plan.world.internal:
        if one.fault is not None:
            yield f"{one.topic.spec.name} on {one.on} {one.fault.text}; {one.fault.remedy}"


def _rename(one: Rename) -> Iterator[str]:
    there = "is not there yet" if one.there is None else f"is there, with {one.there:,} offsets"
    stays = f"the {one.kept:,} in {one.before} stay there"
    ways = {
        "stop": "the topic waits, and nothing is written",
        "resume": f"{one.to_come:,} source offsets go to {one.now}; {stays}, and their readers have to end there first",
        "recopy": f"{one.all_there:,} source offsets, all there are, go to {one.now}; {stays}",
    }
    yield f"  {one.topic}: {one.before} -> {one.now}, which {there}"
    for way, what in ways.items():
        yield f"    {'*' if way == one.way else ' '} target.renamed.policy = {way}: {what}"
