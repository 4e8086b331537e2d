"""Which ACLs of a source topic its remote topic gets, and why others not: one answer per entry."""

from __future__ import annotations

from collections.abc import Set

from srm_spark.config.settings import FlowSettings
from srm_spark.core.acls import TOPIC, Acl, NotCopied
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
from srm_spark.flow.topics.remote_acls import AclComparison, no_authorizer, read_acls
from srm_spark.look.answer import Answer, Because, Rule, Verdict
from srm_spark.look.flows import flows, hurried
from srm_spark.look.rules import Rules, rules_of

_SWITCH = "sync.topic.acls.enabled"


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
    judged = AclComparison(clusters, remotes).compare(set(about), there, set()).judged
    return tuple(_one(clusters, acl, judged[acl], there) for acl in about)


def _one(clusters: Clusters, acl: Acl, copy: Acl | NotCopied, there: Set[Acl]) -> Answer:
    flow, seconds = clusters.settings.flow, clusters.settings.acls.seconds or 0.0
    subject = f"ACL {acl}"
    if isinstance(copy, NotCopied):
        because = Because.WRITE if copy is NotCopied.WRITE else Because.PATTERN
        remedy = f"allow it on {flow.target} by hand"
        if copy is NotCopied.WRITE:
            remedy = f"{remedy}; the flow stops where it finds records of others"
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
