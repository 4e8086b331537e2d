"""Which ACLs of a source topic its remote topic gets, and why others not: one answer per entry."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from srm_spark.config.keys_connector import ACL_WRITE_KEY
from srm_spark.config.settings import FlowSettings
from srm_spark.core.acls import TOPIC, Acl, NotCopied
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.topics.remote_acls import AclComparison, no_authorizer, read_acls
from srm_spark.look.answer import Answer, Because, Rule, Verdict
from srm_spark.look.flows import flows, hurried
from srm_spark.look.rules import Rules, rules_of

_SWITCH = "sync.topic.acls.enabled"
_BECAUSE = {NotCopied.WRITE: Because.WRITE, NotCopied.PRINCIPAL: Because.PRINCIPAL, NotCopied.DENIED: Because.PRINCIPAL}
_OTHERS = "the flow stops where it finds records of others"
_FAILBACK = "srm-control failback takes it back"


def explain_acls(settings: FlowSettings, topic: str, reach: Connect = connect) -> tuple[Answer, ...]:
    """What becomes of each entry that is about a topic of the source."""
    clusters = reach(hurried(settings))
    flow, subject = clusters.settings.flow, f"ACLs of topic {topic}"
    try:
        return _answers(clusters, rules_of(clusters), topic, subject)
    except SourceUnavailable as error:
        why, because = f"{flow.source} does not tell its ACLs: {error}", Because.SOURCE_DOWN
    except TargetUnavailable as error:
        why, because = f"{flow.target} does not tell its ACLs: {error}", Because.TARGET_DOWN
    remedy = "allow DESCRIBE on the cluster, and on the target ALTER"
    return (Answer(flow, subject, Verdict.UNKNOWN, because, why, remedy=remedy),)


def _answers(clusters: Clusters, rules: Rules, topic: str, subject: str) -> tuple[Answer, ...]:
    settings, flow = clusters.settings, clusters.settings.flow
    if settings.acls.seconds is None:
        why, rule = "ACLs of topics are not copied", rules.switch(_SWITCH, "false")
        return (Answer(flow, subject, Verdict.LEFT_OUT, Because.SWITCHED_OFF, why, rule, remedy=f"{_SWITCH} = true"),)
    if not flows(clusters, topic):
        why, remedy = "the topic does not flow, so there is no remote topic", f"srm-control explain topic {topic}"
        return (Answer(flow, subject, Verdict.LEFT_OUT, Because.NO_TOPIC_FLOWS, why, remedy=remedy),)
    here, there = read_acls(clusters)
    if here is None or there is None:
        why = f"{no_authorizer(clusters, here)}, so there are no ACLs"
        return (Answer(flow, subject, Verdict.LEFT_OUT, Because.NO_AUTHORIZER, why, remedy="nothing"),)
    about = sorted(acl for acl in here if acl.kind == TOPIC and _is_about(acl, topic))
    if not about:
        why = f"{flow.source} has none that is about it"
        return (Answer(flow, subject, Verdict.LEFT_OUT, Because.NOT_SHOWN, why, remedy="nothing"),)
    remotes = {topic: clusters.policy.format_remote_topic(flow.source, topic)}
    compared = AclComparison(clusters, remotes).compare(set(about), there, set())
    answers = {acl: _one(clusters, acl, compared.judged[acl], there) for acl in about}
    for acl, staged in compared.staged.items():
        answers[acl] = _staged(answers[acl], staged, rules, is_in_force=staged in there)
    return tuple(answers[acl] for acl in about)


def _staged(answer: Answer, staged: Acl, rules: Rules, *, is_in_force: bool) -> Answer:
    """Of an entry that allows to write; one that allows everything has a copy for readers besides."""
    if answer.because is not Because.WRITE:
        fact = "in force since a failover" if is_in_force else "staged for failover"
        return replace(answer, facts={**answer.facts, fact: str(staged)})
    answer = replace(answer, because=Because.STAGED, rule=rules.switch(ACL_WRITE_KEY, "failover"))
    if is_in_force:
        return replace(answer, verdict=Verdict.FLOWS, why=f"in force since a failover: {staged}", remedy=_FAILBACK)
    return replace(
        answer,
        verdict=Verdict.WAITS,
        why=f"staged for failover: {staged}",
        waits_for="srm-control failover",
        remedy="srm-control failover puts it in force; until then only the flow writes copies",
    )


def _one(clusters: Clusters, acl: Acl, copy: Acl | NotCopied, there: Set[Acl]) -> Answer:
    flow, seconds = clusters.settings.flow, clusters.settings.acls.seconds or 0.0
    subject = f"ACL {acl}"
    if isinstance(copy, NotCopied):
        because = _BECAUSE.get(copy, Because.PATTERN)
        remedy = f"{'deny' if acl.permission == 'DENY' else 'allow'} it on {flow.target} by hand"
        if copy is NotCopied.WRITE:
            remedy = f"{ACL_WRITE_KEY} = failover stages it for srm-control failover, or {remedy}; {_OTHERS}"
        return Answer(flow, subject, Verdict.LEFT_OUT, because, copy.value, remedy=remedy)
    rule = Rule("as MirrorMaker 2", "docs/topics.md")
    if copy in there:
        return Answer(flow, subject, Verdict.FLOWS, Because.INCLUDED, f"{flow.target} has: {copy}", rule)
    why = f"{flow.target} is to get: {copy}"
    remedy = f"a driver that runs adds it within {seconds:g} s; what is refused is in its log"
    return Answer(
        flow, subject, Verdict.WAITS, Because.DIFFERENT, why, rule, waits_for="the next look at the ACLs", remedy=remedy
    )


def _is_about(acl: Acl, topic: str) -> bool:
    return acl.name == "*" or (topic.startswith(acl.name) if acl.pattern == "PREFIXED" else acl.name == topic)
