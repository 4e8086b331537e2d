"""Why a consumer group is in sync on the target, or not: by the verdicts of group sync, and nothing is committed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import GroupOffsets
from srm_spark.core.filters import SelectionReason, select
from srm_spark.core.listed_filter import RULES
from srm_spark.core.lists import ListKind
from srm_spark.core.wording import count, some
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.groups.checkpoints import Checkpoints
from srm_spark.flow.groups.choice import NO_CONSUMER_GROUP
from srm_spark.flow.groups.positions import Positions, Translator
from srm_spark.flow.groups.sync import UNSETTLED, GroupSync, Synced, SyncState
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.look.answer import Answer, Because, Verdict
from srm_spark.look.flows import hurried
from srm_spark.look.rules import Rules, rules_of

_IN_SYNC = (SyncState.SYNCED, SyncState.DUE, SyncState.IN_STEP)
_WORST = (SyncState.REFUSED, SyncState.UNTRANSLATED, SyncState.ACTIVE, SyncState.AHEAD)
_BECAUSE = {
    SyncState.REFUSED: Because.REFUSED,
    SyncState.UNTRANSLATED: Because.UNTRANSLATED,
    SyncState.ACTIVE: Because.ACTIVE,
    SyncState.AHEAD: Because.AHEAD,
}
_REMEDIES = {
    SyncState.REFUSED: "do what the sentence names; it is tried again each time",
    SyncState.UNTRANSLATED: "wait until its partitions are copied; what was copied by somebody else is translated by "
    "offset syncs, and srm-control offsets rebuild makes the offset map anew",
    SyncState.ACTIVE: "stop its consumers on the target; the broker takes no offsets of a group with members",
    SyncState.AHEAD: "nothing, where it consumed on the target; else set it back with kafka-consumer-groups "
    "--reset-offsets, for nothing is ever moved backward",
}


def explain_group(settings: FlowSettings, group: str, reach: Connect = connect) -> Answer:
    """What becomes of a consumer group of the source."""
    clusters = reach(hurried(settings))
    explained = _Explained(clusters, group)
    try:
        return explained.answer(rules_of(clusters))
    except TargetUnavailable as error:
        why = f"{clusters.settings.flow.target} does not answer: {error}"
        remedy = "srm-driver doctor says what is wrong with the connection"
        return explained.found(Verdict.UNKNOWN, Because.TARGET_DOWN, why, remedy=remedy)
    except SourceUnavailable as error:
        flow = clusters.settings.flow
        why = f"{flow.source} does not answer, where the group is: {error}"
        remedy = f"srm-control offsets --source {flow.source} --target {flow.target} --group {group} --export works "
        return explained.found(Verdict.UNKNOWN, Because.SOURCE_DOWN, why, remedy=f"{remedy}from checkpoints")


class _Explained:
    def __init__(self, clusters: Clusters, group: str) -> None:
        self._clusters, self._group = clusters, group
        self._settings, self._flow = clusters.settings, clusters.settings.flow

    def found(self, verdict: Verdict, because: Because, why: str, *, remedy: str | None = None) -> Answer:
        """An answer about the group."""
        return Answer(self._flow, f"group {self._group}", verdict, because, why, remedy=remedy)

    def answer(self, rules: Rules) -> Answer:
        """First the rules, then what there is, then what group sync says."""
        decision = rules.decide(ListKind.GROUPS, self._group)
        ruled = replace(
            self.found(Verdict.FLOWS, decision.because, decision.why, remedy=decision.remedy),
            rule=decision.rule,
            since=None if decision.rule is None else decision.rule.at,
        )
        if not decision.is_taken:
            return replace(ruled, verdict=Verdict.LEFT_OUT)
        chosen = self._settings.checkpoints
        if not (chosen.emit_enabled or chosen.sync_enabled):
            why = f"{ruled.why}, but neither checkpoints nor offsets of groups are written"
            rule = rules.switch("emit.checkpoints.enabled", "false")
            remedy = "emit.checkpoints.enabled = true, or sync.group.offsets.enabled = true"
            return replace(
                ruled, verdict=Verdict.LEFT_OUT, because=Because.SWITCHED_OFF, why=why, rule=rule, remedy=remedy
            )
        with closing(self._clusters.source.groups("DESCRIBE")) as groups:
            if self._group in groups.others():
                remedy = "move its readers by hand; SRM and MirrorMaker 2 cannot either"
                why = f"it is a {NO_CONSUMER_GROUP}"
                return replace(
                    ruled, verdict=Verdict.LEFT_OUT, because=Because.NO_CONSUMER_GROUP, why=why, remedy=remedy
                )
            if self._group not in groups.names():
                source = self._flow.source
                why = f"{ruled.why}, but {source} does not show it: there is none, or DESCRIBE on it is not allowed"
                remedy = f"let it commit an offset, or allow DESCRIBE on group {self._group} to the flow's principal"
                return replace(ruled, verdict=Verdict.WAITS, because=Because.NOT_SHOWN, why=why, remedy=remedy)
            offsets = groups.offsets([self._group])[self._group]
        if (left := self._without_offsets(ruled, offsets)) is not None:
            return left
        return self._positioned(ruled, offsets, rules)

    def _without_offsets(self, ruled: Answer, offsets: GroupOffsets) -> Answer | None:
        refusal = UNSETTLED if offsets.unsettled and not offsets.committed else offsets.refusal
        if refusal is not None:
            why = f"{self._flow.source} does not tell where it stands: {refusal.sentence}"
            return replace(ruled, verdict=Verdict.WAITS, because=Because.REFUSED, why=why, remedy=refusal.kind.remedy)
        if not offsets.committed:
            why = "it has no committed offset, so there is no position to translate"
            remedy = "let it commit; a reader that keeps offsets elsewhere is for srm-control offsets translate"
            return replace(ruled, verdict=Verdict.WAITS, because=Because.NO_OFFSETS, why=why, remedy=remedy)
        return None

    def _positioned(self, ruled: Answer, offsets: GroupOffsets, rules: Rules) -> Answer:
        """A group that stands somewhere."""
        settings = self._settings
        if settings.map_topic not in self._clusters.target.topics():
            why = f"{ruled.why}, but the flow has never run: there is no offset map to translate by"
            remedy = f"srm-driver --config FILE --flow '{self._flow}'"
            return replace(ruled, verdict=Verdict.WAITS, because=Because.NO_DRIVER, why=why, remedy=remedy)
        maps = OffsetMaps(self._clusters.target, settings.map_topic, f"{self._flow}|explain-map", TargetUnavailable)
        with (
            closing(maps),
            closing(Translator(self._clusters, maps)) as translator,
            closing(Checkpoints(self._clusters)) as checkpoints,
            closing(GroupSync(self._clusters)) as sync,
        ):
            positions = checkpoints.looked_up(translator.positions([self._group]))
            sync.learn(checkpoints.last)
            verdicts = sync.sync(positions, commits=False)
        if not positions.known:
            topics = sorted({partition.topic for partition in offsets.committed})
            facts = {f"topic {topic}": self._topic(topic, rules) for topic in topics}
            why = f"it reads only topics that do not flow: {some(topics)}"
            remedy = "srm-control explain topic says for each of them why"
            return replace(
                ruled, verdict=Verdict.LEFT_OUT, because=Because.NO_TOPIC_FLOWS, why=why, remedy=remedy, facts=facts
            )
        return self._judged(ruled, positions, verdicts, rules)

    def _topic(self, topic: str, rules: Rules) -> str:
        flow, replicated = self._flow, self._settings.topics.heartbeats_replicated
        if self._clusters.policy.topic_source(topic) == flow.target and self._settings.checkpoints.reverse_enabled:
            return f"it came from {flow.target}; {RULES[ListKind.REVERSE]}"
        selection = select(topic, self._clusters.topics, self._clusters.policy, flow.target, replicated)
        by_name = (SelectionReason.INTERNAL, SelectionReason.CYCLE)
        return selection.reason.value if selection.reason in by_name else rules.decide(ListKind.TOPICS, topic).why

    def _judged(self, ruled: Answer, positions: Positions, verdicts: Sequence[Synced], rules: Rules) -> Answer:
        """As well off as its worst partition."""
        is_synced = self._settings.checkpoints.sync_enabled
        facts = {}
        for one in verdicts:
            translation = one.position.translation
            at = "nothing" if translation.downstream is None else str(translation.downstream)
            synced = f"; {one.state.value}" if is_synced else ""
            place = f"{one.position.partition} at {one.position.committed.offset}"
            facts[place] = f"on {self._flow.target} {one.position.remote} at {at}: {translation}{synced}"
        whole = {"no way back": positions.no_way_back, "no offset syncs": positions.no_syncs}
        ruled = replace(ruled, facts={**facts, **{name: why for name, why in whole.items() if why is not None}})
        states = (SyncState.UNTRANSLATED,) if not is_synced else _WORST
        for state in states:
            bad = [one for one in verdicts if one.state is state]
            if bad:
                first = bad[0]
                detail = f" ({first.detail})" if first.detail else ""
                where = f"{len(bad)} of {count(len(verdicts), 'partition')}"
                why = f"{where}: {first.position.partition} is {state.value}{detail}"
                return replace(ruled, verdict=Verdict.WAITS, because=_BECAUSE[state], why=why, remedy=_REMEDIES[state])
        if not is_synced:
            why = f"{ruled.why}; it is translated, and checkpoints say where it goes on; its offsets are not set"
            key = "sync.group.offsets.enabled"
            place = rules.place(key)
            return replace(ruled, why=why, remedy=f"{key} = true ({place}) sets them on {self._flow.target}")
        seconds = self._settings.checkpoints.sync_seconds
        due = f", or is set within {seconds:g} s" if any(one.state is SyncState.DUE for one in verdicts) else ""
        return replace(ruled, why=f"{ruled.why}; it stands on {self._flow.target} where it should{due}")
