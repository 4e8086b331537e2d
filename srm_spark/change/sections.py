"""What a plan says to people, in sections: what is done in which stage, what is not done and why, what is lost.

Commands and pages show the same ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from srm_spark.change.planning import ChangePlan, Kept
from srm_spark.change.report import FlowReport
from srm_spark.change.steps import Stage, of_stage
from srm_spark.core.wording import count, some
from srm_spark.doctor.report import Health
from srm_spark.plan.renames import Rename

_NAMES = 5


class Section(NamedTuple):
    """A title and what belongs to it; some titles say everything, and have no lines."""

    title: str
    lines: tuple[str, ...] = ()


def change_sections(plan: ChangePlan) -> Iterator[Section]:
    """What would be done: by stage and cluster, in the order in which it is."""
    for stage in Stage:
        steps = of_stage(plan.steps, stage)
        for alias in dict.fromkeys(step.on for step in steps):
            lines = [f"{step.mark} {step}  ({step.reason})" for step in steps if step.on == alias]
            yield Section(f"{stage.value} on {alias}", tuple(lines))


def other_sections(plan: ChangePlan) -> Iterator[Section]:
    """What would not be done and why, what is lost, and what else is to be known."""
    yield from section("is kept as it is", kept_lines(plan.kept))
    yield from section("is staged for failover", _staged(plan))
    yield Section(_groups(plan))
    yield from section("is left out", _skipped(plan))
    yield from section("is or would be lost", [*_losses(plan), *losing_lines(plan)])
    yield from section("is not allowed, or not known", [*_rights(plan), *plan.unknown])
    yield from section("needs a look", [*_faults(plan), *plan.world.warnings])
    if not plan.world.renames:
        yield Section("no remote topic has another name than before")
    for one in plan.world.renames:
        yield _rename(one)


def done_sections(report: FlowReport) -> Iterator[Section]:
    """What was done, by stage and cluster, and what a cluster has refused."""
    for stage in Stage:
        steps = of_stage(report.done, stage)
        for alias in dict.fromkeys(step.on for step in steps):
            yield Section(f"{stage.value} on {alias}", tuple(f"{one.mark} {one}" for one in steps if one.on == alias))
    yield from refused_section(report)


def refused_section(report: FlowReport) -> Iterator[Section]:
    """What a cluster has refused, if anything."""
    yield from section("was refused", [f"{step}: {why}" for step, why in report.refused.items()])


def section(title: str, lines: Iterable[str]) -> Iterator[Section]:
    """One, or none where it has no lines."""
    if found := tuple(lines):
        yield Section(title, found)


def owner_line(plan: ChangePlan) -> str | None:
    """That a driver does all of it by itself, where one runs the flow."""
    owner = plan.world.owner
    if owner is None:
        return None
    return f"{owner} runs the flow and does all of this by itself, but for what only --prune removes"


def kept_lines(kept: Iterable[Kept]) -> list[str]:
    """What is left as it is."""
    return [f"{one.name}: {one.text}" for one in kept]


def losing_lines(plan: ChangePlan) -> Iterator[str]:
    """Configs by which remote topics are worse off."""
    alike = defaultdict[str, list[str]](list)
    for remote, found in plan.losing.items():
        alike["; ".join(map(str, found))].append(remote)
    for what, remotes in alike.items():
        yield f"{what} ({some(remotes, _NAMES)})"


def _staged(plan: ChangePlan) -> Iterator[str]:
    for acl, in_force in plan.staged:
        yield f"{acl}" + (": in force; srm-control failback takes it back" if in_force else "")


def _groups(plan: ChangePlan) -> str:
    groups = plan.world.groups
    if groups.unknown is not None:
        return f"groups: {groups.unknown}"
    return f"{count(len(groups.taken), 'group')} taken" + (f": {some(groups.taken)}" if groups.taken else "")


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


def _rename(one: Rename) -> Section:
    there = "is not there yet" if one.there is None else f"is there, with {one.there:,} offsets"
    stays = f"the {one.kept:,} in {one.before} stay there"
    ways = {
        "stop": "the topic waits, and nothing is written",
        "resume": f"{one.to_come:,} source offsets go to {one.now}; {stays}, and their readers have to end there first",
        "recopy": f"{one.all_there:,} source offsets, all there are, go to {one.now}; {stays}",
    }
    lines = [f"{'*' if way == one.way else ' '} target.renamed.policy = {way}: {what}" for way, what in ways.items()]
    return Section(f"{one.topic}: {one.before} -> {one.now}, which {there}", tuple(lines))
