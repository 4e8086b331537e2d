"""The report of a run of `apply`: on disk before and after each stage, so that the next run finishes what one left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from srm_spark.change.steps import Document, Stage, Step, of_stage, step_document, step_of
from srm_spark.errors import PlanError
from srm_spark.files import write_whole

_FORMAT = 1


@dataclass(frozen=True)
class FlowReport:
    """How far one flow has come."""

    stage: Stage | None = None
    """In progress: what of it is done is not known."""
    done: tuple[Step, ...] = ()
    refused: Mapping[Step, str] = field(default_factory=dict)
    """Step → why; a later run tries it again."""
    is_ended: bool = False
    """Every stage was walked through."""

    def entered(self, stage: Stage) -> FlowReport:
        """On the way into a stage."""
        return replace(self, stage=stage, is_ended=False)

    def left(self, steps: Iterable[Step], refused: Mapping[Step, str]) -> FlowReport:
        """Behind a stage of these steps."""
        done = tuple(step for step in steps if step not in refused)
        others = {step: why for step, why in self.refused.items() if step not in done}
        return replace(self, stage=None, done=(*self.done, *done), refused={**others, **refused})

    def assuming(self, steps: Iterable[Step]) -> FlowReport:
        """With steps that turned out to be done: their answer did not arrive, or was not written down any more."""
        return self.left(steps, {})

    def ended(self) -> FlowReport:
        """Behind the last stage."""
        return replace(self, is_ended=True)

    def may_be_done(self, planned: Iterable[Step]) -> frozenset[Step]:
        """Planned steps of which it is not known whether they are done."""
        under_way = () if self.stage is None else of_stage(planned, self.stage)
        return frozenset((*under_way, *self.refused))


@dataclass(frozen=True)
class RunReport:
    """How far all flows of a plan have come."""

    plan: str
    """Which plan it is of."""
    began: str
    """UTC, ISO 8601; the first run's where it took several."""
    ended: str | None = None
    flows: Mapping[str, FlowReport] = field(default_factory=dict)

    def of(self, flow: str) -> FlowReport:
        """One flow's."""
        return self.flows.get(flow, FlowReport())

    def having(self, flow: str, report: FlowReport) -> RunReport:
        """With another state of one flow."""
        return replace(self, flows={**self.flows, flow: report})

    @property
    def refused(self) -> int:
        """Steps that were refused."""
        return sum(len(one.refused) for one in self.flows.values())


def report_path(plan: Path) -> Path:
    """Beside the plan."""
    return plan.with_name(f"{plan.stem}.report.json")


def load_report(path: Path, plan: str) -> RunReport | None:
    """What an earlier run of this plan has left; None where there is no file, or it is of another plan.

    Raises PlanError where the file is no report.
    """
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text())
        if document["format"] != _FORMAT:
            raise PlanError(f"{path}: format {document['format']}, expected {_FORMAT}; move it away")
        if document["plan"] != plan:
            return None
        flows = {flow: _flow(one) for flow, one in document["flows"].items()}
        return RunReport(plan, str(document["began"]), document["ended"], flows)
    except OSError as error:
        raise PlanError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        text = f"{path}: this is no report of a plan ({type(error).__name__}: {error}); move it away"
        raise PlanError(text) from None


def save_report(path: Path, report: RunReport) -> None:
    """Write it in one step: a reader sees the old file or the new one. Raises PlanError."""
    text = json.dumps(report_document(report), indent=2) + "\n"
    write_whole(path, text, PlanError, "another place of the plan")


def report_document(report: RunReport) -> Document:
    """A report for JSON."""
    flows = {
        flow: {
            "stage": None if one.stage is None else one.stage.name.lower(),
            "ended": one.is_ended,
            "done": [step_document(step) for step in one.done],
            "refused": [{"step": step_document(step), "why": why} for step, why in one.refused.items()],
        }
        for flow, one in report.flows.items()
    }
    return {
        "format": _FORMAT,
        "plan": report.plan,
        "began": report.began,
        "ended": report.ended,
        "flows": flows,
    }


def _flow(document: Mapping[str, Any]) -> FlowReport:
    stage = None if document["stage"] is None else Stage[str(document["stage"]).upper()]
    refused = {step_of(one["step"]): str(one["why"]) for one in document["refused"]}
    return FlowReport(stage, tuple(map(step_of, document["done"])), refused, document["ended"] is True)
