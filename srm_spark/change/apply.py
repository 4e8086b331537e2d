"""Applies a plan that is still true: stage by stage, and what is refused does not stop the others."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from srm_spark.change.document import PlanFile
from srm_spark.change.facts import differences
from srm_spark.change.planning import ChangePlan
from srm_spark.change.report import RunReport, save_report
from srm_spark.change.steps import (
    AddAcl,
    AddPartitions,
    ChangeConfigs,
    ChangeQuota,
    CreateTopic,
    RemoveAcl,
    Stage,
    Step,
    of_stage,
)
from srm_spark.change.world import QuotasFound
from srm_spark.core.acls import Acl
from srm_spark.core.cluster import Cluster
from srm_spark.core.moments import now
from srm_spark.core.wording import count
from srm_spark.errors import PlanError
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.remote_acls import record_acls, record_staged, refused_acls
from srm_spark.flow.topics.remote_quotas import change_quotas
from srm_spark.flow.topics.remote_topics import record_made
from srm_spark.flow.topics.topic_configs import record_configs

_SHOWN_SECONDS = 30.0
"""A topic that was created shows on every broker much sooner than that."""
_LOOK_SECONDS = 0.1
_PING_SECONDS = 10.0
_WHERE = ("flow", "source", "target", "prune")
"""Facts that no run of a plan changes."""
_DIFFERENCES = 20
"""Told in one sentence; the others are counted."""


@dataclass(frozen=True)
class Ready:
    """One flow whose plan is still true."""

    clusters: Clusters
    fresh: ChangePlan
    """What is left to do."""


def check(plan: PlanFile, report: RunReport | None, fresh: Mapping[str, ChangePlan]) -> RunReport:
    """Whether a plan is still true; the report with which it goes on. Raises PlanError with every difference."""
    begun = report or RunReport(plan.id, now())
    done = {step for one in begun.flows.values() for step in one.done}
    may_be_done = {step for one in plan.flows for step in begun.of(one.flow).may_be_done(one.steps)}
    found: list[str] = []
    for planned in plan.flows:
        state, this = begun.of(planned.flow), fresh[planned.flow]
        # Behind a first stage it is another world by our own doing: then the steps that are left say the same.
        facts = (planned.made_from, this.made_from)
        moved = differences(*facts if report is None else map(_where, facts))
        steps = _moved_steps(planned.steps, this.steps, done, may_be_done)
        found += [f"{planned.flow}: {one}" for one in (*moved, *steps)]
        late = (done | may_be_done) - set(state.done) - set(this.steps)
        if found_done := [step for step in planned.steps if step in late]:
            begun = begun.having(planned.flow, state.assuming(found_done))
    if found:
        shown = "; ".join(found[:_DIFFERENCES])
        more = f"; and {count(len(found) - _DIFFERENCES, 'more difference')}" if len(found) > _DIFFERENCES else ""
        raise PlanError(
            f"the world is not the one that the plan was made from, and nothing was changed: {shown}{more}. "
            "Make a new plan with srm-control plan --out FILE"
        )
    return begun


def is_all_done(ready: Sequence[Ready], report: RunReport | None) -> bool:
    """Whether nothing is left to do, and no earlier run stopped amid a flow: it may have to record yet what it did."""
    flows = {} if report is None else report.flows
    names = [str(one.fresh.world.flow) for one in ready]
    return not any(one.fresh.steps for one in ready) and all(flows[name].is_ended for name in names if name in flows)


def _where(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: facts.get(name) for name in _WHERE}


def _moved_steps(
    planned: Sequence[Step], fresh: Sequence[Step], done: Set[Step], may_be_done: Set[Step]
) -> Iterator[str]:
    """What is to do now, and was not planned or is done already; what was planned, and is not to do any more.

    `done`, and what may be, are those of all flows: two of them may need the same on one target.
    """
    left = set(planned) - done
    gone = left - set(fresh) - may_be_done
    for step in planned:
        if step in gone:
            yield f"no longer to do: {_said(step)}"
    for step in fresh:
        if step not in left:
            yield f"{'done before, and to do again' if step in done else 'not in the plan'}: {_said(step)}"


def _said(step: Step) -> str:
    return f"{step.does} on {step.on}: {step}"


def apply_plan(ready: Sequence[Ready], report: RunReport, path: Path, tell: Callable[[str], None]) -> RunReport:
    """Do what is left. The report is on disk before and after each stage, and when this returns.

    Raises SourceUnavailable and TargetUnavailable where a cluster goes away, ProgressFailed where ownership cannot be
    recorded, and PlanError; the next run goes on where this one stopped.
    """
    report = replace(report, ended=None)
    for one in ready:
        flow = str(one.fresh.world.flow)
        for stage in Stage:
            steps = of_stage(one.fresh.steps, stage)
            report = report.having(flow, report.of(flow).entered(stage))
            save_report(path, report)
            if steps:
                tell(f"{flow}: {stage.value}: {count(len(steps), 'step')}")
            refused = _DO[stage](one, steps)
            if refused:
                _require_alive(one.clusters, refused)
            for step, why in refused.items():
                tell(f"{flow}: refused: {step}: {why}")
            report = report.having(flow, report.of(flow).left(steps, refused))
            if stage is Stage.TOPICS:
                _record_topics(one, report.of(flow).done, {*steps} - refused.keys())
            save_report(path, report)
        report = report.having(flow, report.of(flow).ended())
    report = replace(report, ended=now())
    save_report(path, report)
    return report


def _require_alive(clusters: Clusters, refused: Iterable[Step]) -> None:
    """Whether it is the cluster that refuses. Raises where it does not answer: then nothing is known of these steps."""
    for alias in {step.on for step in refused}:
        _cluster(clusters, alias).beside(f"{clusters.settings.flow}|apply", _PING_SECONDS).ping()


def _cluster(clusters: Clusters, alias: str) -> Cluster:
    return clusters.source if alias == clusters.source.alias else clusters.target


def _create(one: Ready, steps: Sequence[Step]) -> dict[Step, str]:
    refused: dict[Step, str] = {}
    by_cluster = defaultdict[str, list[CreateTopic]](list)
    for step in steps:
        assert isinstance(step, CreateTopic)
        by_cluster[step.on].append(step)
    for alias, created in by_cluster.items():
        cluster = _cluster(one.clusters, alias)
        answers = cluster.create(step.spec for step in created)
        refused |= {step: why for step in created if (why := answers[step.topic]) is not None}
        hidden = _hidden(cluster, {step.topic: step.partitions for step in created if step not in refused})
        refused |= {step: hidden[step.topic] for step in created if step.topic in hidden}
    return refused


def _record_topics(one: Ready, done: Iterable[Step], now: Set[Step]) -> None:
    """Record which remote topics were made here, by a run that was interrupted, too; `now`: what this one made.

    What is recorded of such a name by then is of a topic that was deleted.
    """
    known = one.fresh.world.made_topics
    steps = {step for step in done if step.stage is Stage.TOPICS and isinstance(step, CreateTopic)}
    made = {step.topic for step in steps if step in now or step.topic not in known}
    sources = {pair.remote: pair.topic for pair in one.fresh.world.topics}
    if made and _no_record(one.clusters, one.clusters.target.topics()) is None:
        record_made(one.clusters, {remote: sources[remote] for remote in sorted(made & sources.keys())})


def _grow(one: Ready, steps: Sequence[Step]) -> dict[Step, str]:
    growing = [step for step in steps if isinstance(step, AddPartitions)]
    answers = one.clusters.target.grow({step.topic: step.after for step in growing}) if growing else {}
    refused: dict[Step, str] = {step: why for step in growing if (why := answers[step.topic]) is not None}
    hidden = _hidden(one.clusters.target, {step.topic: step.after for step in growing if step not in refused})
    return {**refused, **{step: hidden[step.topic] for step in growing if step.topic in hidden}}


def _hidden(cluster: Cluster, partitions: Mapping[str, int]) -> dict[str, str]:
    """Topics that were made and do not show: what they are → why nothing more is done with them."""
    # An answer comes when the controller knows; the broker that is asked next may learn it later.
    deadline = time.monotonic() + _SHOWN_SECONDS
    while True:
        present = cluster.topics() if partitions else {}
        missing = [name for name, wanted in partitions.items() if present.get(name, 0) < wanted]
        if not missing or time.monotonic() > deadline:
            why = f"it was made, and does not show {_SHOWN_SECONDS:g} s later; allow DESCRIBE on topic"
            return {name: f"{why} {name}, or check the controller" for name in missing}
        time.sleep(_LOOK_SECONDS)


def _configure(one: Ready, steps: Sequence[Step]) -> dict[Step, str]:
    """Change configs, and record what remote topics have from their sources, as a flow does at its first look."""
    changing = [step for step in steps if isinstance(step, ChangeConfigs)]
    present = one.clusters.target.topics()
    if (obstacle := _no_record(one.clusters, present)) is not None:
        return dict.fromkeys(changing, obstacle)
    answers = one.clusters.target.alter({step.topic: step.asked for step in changing}) if changing else {}
    refused: dict[Step, str] = {step: why for step in changing if (why := answers[step.topic]) is not None}
    failed = {step.topic for step in changing if step in refused}
    ours = {remote: values for remote, values in one.fresh.ours.items() if remote in present and remote not in failed}
    record_configs(one.clusters, one.fresh.world.ours, ours)
    return refused


def _entitle(one: Ready, steps: Sequence[Step]) -> dict[Step, str]:
    """Add and remove ACLs; what is made is recorded in front of the change, and what waits for a failover, too."""
    if one.fresh.acls is None or isinstance(one.fresh.world.acls, str):
        return {}
    if (obstacle := _no_record(one.clusters, one.clusters.target.topics())) is not None:
        return dict.fromkeys(steps, obstacle)
    record_staged(one.clusters, one.fresh.world.acls.staged, set(one.fresh.acls.staged.values()))
    if not steps:
        return {}
    target, made = one.clusters.target, one.fresh.acls.made
    removed = {step.acl: step for step in steps if isinstance(step, RemoveAcl)}
    added = {step.acl: step for step in steps if isinstance(step, AddAcl)}
    record_acls(one.clusters, one.fresh.world.acls.made, made)
    answers: dict[Acl, str | None] = target.add_acls(list(added)) if added else {}
    taken = target.remove_acls(list(removed)) if removed else {}
    gone = taken.keys() - refused_acls(taken)
    record_acls(one.clusters, made, made - gone - refused_acls(answers))
    asked, said = {**added, **removed}, {**answers, **taken}
    return {step: why for acl, step in asked.items() if (why := said[acl]) is not None}


def _limit(one: Ready, steps: Sequence[Step]) -> dict[Step, str]:
    """Change quotas, and record what is ours, as a flow does at its first look."""
    if one.fresh.quotas is None or not isinstance(one.fresh.world.quotas, QuotasFound):
        return {}
    if (obstacle := _no_record(one.clusters, one.clusters.target.topics())) is not None:
        return dict.fromkeys(steps, obstacle)
    refused = change_quotas(one.clusters, one.fresh.world.quotas.made, one.fresh.quotas)
    return {step: refused[step.quota] for step in steps if isinstance(step, ChangeQuota) and step.quota in refused}


def _no_record(clusters: Clusters, present: Mapping[str, int]) -> str | None:
    """Why it cannot be recorded what is made here: without a record nobody would take it back."""
    topic = clusters.settings.map_topic
    return None if topic in present else f"topic {topic}, where it would be recorded, is not there"


_DO: Mapping[Stage, Callable[[Ready, Sequence[Step]], dict[Step, str]]] = {
    Stage.INTERNAL: _create,
    Stage.TOPICS: _create,
    Stage.PARTITIONS: _grow,
    Stage.CONFIGS: _configure,
    Stage.ACLS: _entitle,
    Stage.QUOTAS: _limit,
}
