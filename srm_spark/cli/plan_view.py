"""Plans, drift and reports as text for people. Long lists are cut; JSON has all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from srm_spark.change.planning import ChangePlan
from srm_spark.change.report import RunReport
from srm_spark.change.sections import (
    Section,
    change_sections,
    kept_lines,
    losing_lines,
    other_sections,
    owner_line,
    refused_section,
    section,
)
from srm_spark.change.steps import Stage, of_stage
from srm_spark.core.wording import count

_SHOWN = 20
"""Lines of one section."""


def plan_lines(plan: ChangePlan) -> Iterator[str]:
    """What would be done for one flow and why, what would not, and what is lost."""
    yield from steps_lines(plan)
    yield from _indented(other_sections(plan))


def steps_lines(plan: ChangePlan) -> Iterator[str]:
    """What would be done for one flow."""
    yield f"{plan.world.flow}: {count(len(plan.steps), 'change') if plan.steps else 'nothing to change'}"
    if (owner := owner_line(plan)) is not None:
        yield f"  {owner}"
    yield from _indented(change_sections(plan))


def drift_lines(plan: ChangePlan) -> Iterator[str]:
    """What differs now for one flow."""
    yield f"{plan.world.flow}: {'nothing differs' if plan.is_alike else _differences(plan)}"
    for stage in Stage:
        lines = [f"{step.mark} {step}  ({step.reason})" for step in of_stage(plan.steps, stage)]
        yield from _indented(section(f"{stage.value} that apply would change", lines))
    yield from _indented(section("is kept as it is", kept_lines(plan.drift)))
    yield from _indented(section("is or would be lost", losing_lines(plan)))
    yield from _indented(section("is left of topics that are gone", kept_lines(plan.orphans)))
    yield from _indented(section("is not known", filter(None, [plan.world.unrecorded])))


def report_lines(report: RunReport) -> Iterator[str]:
    """What became of a plan."""
    for flow, one in report.flows.items():
        yield f"{flow}: {count(len(one.done), 'change')} done, {len(one.refused)} refused"
        yield from _indented(refused_section(one))


def _differences(plan: ChangePlan) -> str:
    counts = [
        (len(plan.steps), f"{count(len(plan.steps), 'change')} to apply"),
        (len(plan.drift), f"{count(len(plan.drift), 'difference')} kept"),
        (len(plan.losing), f"{count(len(plan.losing), 'topic')} worse off"),
    ]
    return ", ".join(text for number, text in counts if number)


def _indented(sections: Iterable[Section]) -> Iterator[str]:
    for title, lines in sections:
        yield f"  {title}"
        yield from (f"    {line}" for line in lines[:_SHOWN])
        if len(lines) > _SHOWN:
            yield f"    and {len(lines) - _SHOWN} more: -o json has all of them"
