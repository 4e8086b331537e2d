"""Why a topic flows, or does not: asked of both clusters, and of whoever runs the flow."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import replace
from typing import Any

from srm_spark.config.settings import FlowSettings
from srm_spark.core.acts import Scope
from srm_spark.core.driver_status import FlowState
from srm_spark.core.filters import SelectionReason, select
from srm_spark.core.lists import ListKind
from srm_spark.core.wording import count
from srm_spark.errors import SourceUnavailable
from srm_spark.failure import FailureKind
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.topics.rights import not_readable
from srm_spark.look.answer import Answer, Because, Rule, Verdict
from srm_spark.look.flows import FlowLook, FlowReport, PartitionLag
from srm_spark.look.rules import Rules, rules_of

Forbidden = Callable[[Clusters, Collection[str]], set[str]]
"""Which topics of the source its consumers are not allowed to READ."""


def explain_topic(
    settings: FlowSettings, topic: str, reach: Connect = connect, forbidden: Forbidden = not_readable
) -> Answer:
    """What becomes of a topic of the source; the name of a remote topic is taken for that of its source topic."""
    with closing(FlowLook(settings, reach)) as look:
        report = look.look()
        if report.target_down is not None:
            return target_down(report, f"topic {topic}")
        rules = rules_of(look.clusters)
        return _Explained(look.clusters, rules, report, forbidden).answer(topic)


def target_down(report: FlowReport, subject: str) -> Answer:
    """Nothing can be said."""
    why = f"{report.flow.target} does not answer, where the lists are and what drivers say: {report.target_down}"
    remedy = "srm-driver doctor says what is wrong with the connection"
    return Answer(report.flow, subject, Verdict.UNKNOWN, Because.TARGET_DOWN, why, remedy=remedy)


class _Explained:
    def __init__(self, clusters: Clusters, rules: Rules, report: FlowReport, forbidden: Forbidden) -> None:
        self._clusters, self._rules, self._report, self._forbidden = clusters, rules, report, forbidden
        self._flow = clusters.settings.flow

    def answer(self, topic: str) -> Answer:
        """First what rules say, for they hold whatever there is; then what there is; then what is in the way."""
        there: set[str] | None = None
        if self._report.source_down is None:
            try:
                there = set(self._clusters.source.topics())
            except SourceUnavailable as error:
                self._report = replace(self._report, source_down=str(error))
        upstream = self._upstream(topic)
        if upstream is not None and there is not None and topic not in there:
            found = self.answer(upstream)
            return replace(found, facts={"asked for": f"{topic}, which would be the remote topic", **found.facts})
        ruled = self._ruled(topic)
        if ruled.verdict is not Verdict.FLOWS:
            is_missing = there is not None and topic not in there
            fact = {f"on {self._flow.source}": "there is no such topic that we may see"} if is_missing else {}
            return replace(ruled, facts={**ruled.facts, **fact})
        return self._found(topic, ruled, there)

    def _upstream(self, topic: str) -> str | None:
        policy = self._clusters.policy
        upstream = policy.upstream_topic(topic) if policy.topic_source(topic) == self._flow.source else None
        return None if upstream == topic else upstream

    def _ruled(self, topic: str) -> Answer:
        """By its name alone."""
        settings, policy = self._clusters.settings, self._clusters.policy
        replicated = settings.topics.heartbeats_replicated
        selection = select(topic, self._clusters.topics, policy, self._flow.target, replicated)
        if selection.reason is SelectionReason.INTERNAL:
            if policy.is_mm2_internal_topic(topic):
                why, remedy = "it holds state of replication itself", "nothing: each cluster has its own"
            else:
                why = "its name begins with __ or . and so it is internal"
                remedy = "srm.internal.topic.exclude.enable = false lets such topics flow, but not those of brokers"
            return self._left_out(topic, Because.INTERNAL, f"{why}; internal topics never flow", None, remedy)
        if selection.reason is SelectionReason.CYCLE:
            origin = policy.topic_source(topic)
            why = f"it came from {origin} and has been on {self._flow.target}: copying it would go round in circles"
            remedy = f"read {policy.upstream_topic(topic)} on {self._flow.target} instead"
            return self._left_out(topic, Because.CYCLE, why, None, remedy)
        key = "heartbeats.replication.enabled"
        if selection.reason is SelectionReason.HEARTBEATS:
            why = "heartbeats topics flow without being listed"
            return self._answer(topic, Verdict.FLOWS, Because.HEARTBEATS, why, self._rules.switch(key, "true"))
        decision = self._rules.decide(ListKind.TOPICS, topic)
        if decision.is_taken:
            found = self._answer(topic, Verdict.FLOWS, decision.because, decision.why, decision.rule)
            return replace(found, since=None if decision.rule is None else decision.rule.at)
        remedy = decision.remedy or ""
        if policy.is_heartbeats_topic(topic):
            remedy = f"{key} = true; or {remedy}"
        return self._left_out(topic, decision.because, decision.why, decision.rule, remedy)

    def _found(self, topic: str, ruled: Answer, there: set[str] | None) -> Answer:
        """A topic that the rules take."""
        source, settings = self._flow.source, self._clusters.settings
        if there is None:
            why = f"{ruled.why}, but {source} does not answer: {self._report.source_down}"
            return replace(
                ruled,
                verdict=Verdict.UNKNOWN,
                because=Because.SOURCE_DOWN,
                why=why,
                since=self._report.lag.unknown_since,
                remedy=f"it goes on by itself when {source} is back",
            )
        if topic not in there:
            why = f"{ruled.why}, but {source} does not show it: there is none, or READ on it is not allowed"
            waits_for = f"the topic on {source}; looked for every {settings.topics.refresh_seconds:g} s"
            remedy = f"create it, or allow READ on topic {topic} to the principal of the flow's credentials"
            return self._waits(ruled, Because.NOT_SHOWN, why, waits_for, remedy)
        try:
            is_forbidden = topic in self._forbidden(self._clusters, [topic])
        except SourceUnavailable:
            is_forbidden = False
        if is_forbidden:
            why = f"{ruled.why}, but the flow's consumers may not READ it on {source}"
            remedy = f"allow READ on topic {topic} to the principal of the flow's credentials"
            return self._waits(ruled, Because.READ_DENIED, why, "that right", remedy)
        return self._copied(topic, ruled)

    def _copied(self, topic: str, ruled: Answer) -> Answer:
        """A topic that is there and may be read."""
        remote = self._clusters.policy.format_remote_topic(self._flow.source, topic)
        rows = [row for row in self._report.partitions if row.partition.topic == topic]
        ruled = replace(ruled, facts={"remote topic": remote, **self._lag(rows)})
        drivers, standing = self._report.drivers, self._report.standing
        told = "" if drivers.owner is not None else " (as recorded, no driver runs)"
        for scope, what in ((Scope(topic), "it"), (Scope(), "the whole flow")):
            if scope in standing:
                return self._held(ruled, f"{what} is held{told}: {standing[scope].why}", standing[scope].kind)
        if (waiting := self._waiting_flow(ruled)) is not None:
            return waiting
        partitions = self._clusters.target.topics().get(remote)
        if partitions is None:
            why = f"{remote} is not on {self._flow.target} yet"
            seconds = self._clusters.settings.topics.refresh_seconds
            remedy = f"it is made at the next look, within {seconds:g} s; srm-control status shows where that fails"
            return self._waits(ruled, Because.NO_REMOTE_TOPIC, why, "its remote topic", remedy)
        if partitions < len(rows):
            has, needs = count(partitions, "partition"), len(rows)
            why = f"{remote} on {self._flow.target} has {has}, and {needs} are needed"
            remedy = f"allow ALTER on topic {remote}, or kafka-topics.sh --alter --topic {remote} --partitions {needs}"
            return self._waits(ruled, Because.TOO_FEW_PARTITIONS, why, "more partitions", remedy)
        return self._by_partitions(ruled, rows, told)

    def _by_partitions(self, ruled: Answer, rows: list[PartitionLag], told: str) -> Answer:
        """A topic of which nothing is known but what is said of its partitions."""
        drivers = self._report.drivers
        stuck = [row for row in rows if row.held is not None]
        if stuck:
            return self._stuck(ruled, stuck, len(rows), told)
        if drivers.owner is not None and drivers.owner.held_more:
            why = f"{drivers.owner.held_more} more stand still than the driver names: this may be one of them"
            remedy = "its log names all that stand still; docs/failures.md says what helps"
            return replace(ruled, verdict=Verdict.UNKNOWN, because=Because.HELD, why=why, remedy=remedy)
        return ruled

    def _held(self, ruled: Answer, why: str, kind: FailureKind | None) -> Answer:
        """Where a topic, or all of them, stands still."""
        if kind is FailureKind.PAUSED:
            return self._waits(ruled, Because.HELD, why, "its end", kind.remedy)
        return self._waits(ruled, Because.HELD, why, "what the sentence names; tried again every minute", None)

    def _stuck(self, ruled: Answer, stuck: list[PartitionLag], of: int, told: str) -> Answer:
        """Where some partitions of the topic stand still."""
        first = stuck[0]
        stand = "stands" if len(stuck) == 1 else "stand"
        why = f"{len(stuck)} of {count(of, 'partition')} {stand} still{told}: {first.partition} {first.held}"
        remedy = "docs/failures.md says what helps" if first.kind is None else first.kind.remedy
        found = self._waits(ruled, Because.PARTITIONS_HELD, why, "what the sentence names", remedy)
        others = {str(row.partition): row.held or "" for row in stuck[1:]}
        return replace(found, facts={**ruled.facts, **others})

    def _waiting_flow(self, ruled: Answer) -> Answer | None:
        """Where the whole flow does not run."""
        drivers, flow = self._report.drivers, self._flow
        start = f"srm-driver --config FILE --flow '{flow}'"
        spokesman = drivers.spokesman
        if drivers.owner is not None and drivers.owner.state is FlowState.RUNNING:
            return None
        if spokesman is None:
            since = self._report.unknown_since
            silent = f"; {drivers.silent[0].driver.place} is silent" if drivers.silent else ""
            why = f"{ruled.why}, but whether a driver runs {flow} is not known{silent}"
            waits = "a driver that runs the flow"
            found = self._waits(ruled, Because.NO_DRIVER, why, waits, f"start one: {start}")
            return replace(found, since=since)
        ended = spokesman.state in (FlowState.STOPPED, FlowState.FAILED)
        reason = "" if spokesman.reason is None else f": {spokesman.reason}"
        why = f"{ruled.why}, but the flow is {spokesman.state.value}{reason}"
        remedy = f"start a driver: {start}" if ended else "it goes on by itself; srm-control status shows how it is"
        because = Because.NO_DRIVER if ended else Because.FLOW_NOT_RUNNING
        return replace(self._waits(ruled, because, why, "the flow", remedy), since=spokesman.since)

    def _lag(self, rows: list[PartitionLag]) -> dict[str, str]:
        if not rows:
            return {}
        known = [row.records for row in rows if row.records is not None]
        lag = count(sum(known), "record") if len(known) == len(rows) else "unknown"
        return {"partitions": str(len(rows)), "not copied yet": lag}

    def _answer(self, topic: str, verdict: Verdict, because: Because, why: str, rule: Rule | None) -> Answer:
        return Answer(self._flow, f"topic {topic}", verdict, because, why, rule)

    def _left_out(self, topic: str, because: Because, why: str, rule: Rule | None, remedy: str) -> Answer:
        found = self._answer(topic, Verdict.LEFT_OUT, because, why, rule)
        return replace(found, remedy=remedy, since=None if rule is None else rule.at)

    def _waits(self, ruled: Answer, because: Because, why: str, waits_for: str, remedy: str | None) -> Answer:
        changes: dict[str, Any] = {"waits_for": waits_for, "remedy": remedy, "since": None}
        return replace(ruled, verdict=Verdict.WAITS, because=because, why=why, **changes)
