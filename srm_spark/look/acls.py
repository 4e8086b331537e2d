"""Which ACLs of a source topic its remote topic gets, and why others not: one answer per entry."""

from __future__ import annotations

from srm_spark.config.settings import FlowSettings
from srm_spark.core.acls import Acl, remote_acls
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters, Connect, connect
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
    if settings.topics.acls_seconds is None:
        why, rule = "ACLs of topics are not copied", rules.switch(_SWITCH, "false")
        return (Answer(flow, subject, Verdict.LEFT_OUT, Because.SWITCHED_OFF, why, rule, remedy=f"{_SWITCH} = true"),)
    if not flows(clusters, topic):
        why, remedy = "the topic does not flow, so there is no remote topic", f"srm-control explain topic {topic}"
        return (Answer(flow, subject, Verdict.LEFT_OUT, Because.NO_TOPIC_FLOWS, why, remedy=remedy),)
    here, there = clusters.source.topic_acls(), clusters.target.topic_acls()
    for alias, acls in ((flow.source, here), (flow.target, there)):
        if acls is None:
            why = f"{alias} has no authorizer, so there are no ACLs"
            return (Answer(flow, subject, Verdict.LEFT_OUT, Because.NO_AUTHORIZER, why, remedy="nothing"),)
    about = sorted(acl for acl in here or () if _is_about(acl, topic))
    if not about:
        why = f"{flow.source} has none that is about it"
        return (Answer(flow, subject, Verdict.LEFT_OUT, Because.NOT_SHOWN, why, remedy="nothing"),)
    return tuple(_one(clusters, acl, there or set()) for acl in about)


def _one(clusters: Clusters, acl: Acl, there: set[Acl]) -> Answer:
    flow, seconds = clusters.settings.flow, clusters.settings.topics.acls_seconds or 0.0
    subject = f"ACL {acl}"

    def remote(topic: str) -> str:
        return clusters.policy.format_remote_topic(flow.source, topic)

    copies = remote_acls([acl], lambda _: True, remote)
    if not copies and (acl.pattern != "LITERAL" or acl.topic == "*"):
        why = "it is about other topics, too, which may not flow"
        remedy = f"make one for the single topic, or for {remote('')}* on {flow.target} by hand"
        return Answer(flow, subject, Verdict.LEFT_OUT, Because.PATTERN, why, remedy=remedy)
    if not copies:
        why = "only the flow writes copies"
        remedy = f"allow it on {flow.target} by hand; the flow stops where it finds records of others"
        return Answer(flow, subject, Verdict.LEFT_OUT, Because.WRITE, why, remedy=remedy)
    (copy,) = copies
    rule = Rule("as MirrorMaker 2", "docs/topics.md")
    if copy in there:
        return Answer(flow, subject, Verdict.FLOWS, Because.INCLUDED, f"{flow.target} has: {copy}", rule)
    why = f"{flow.target} is to get: {copy}"
    remedy = f"a driver that runs adds it within {seconds:g} s; what is refused is in its log"
    return Answer(
        flow, subject, Verdict.WAITS, Because.DIFFERENT, why, rule, waits_for="the next look at the ACLs", remedy=remedy
    )


def _is_about(acl: Acl, topic: str) -> bool:
    return acl.topic == "*" or (topic.startswith(acl.topic) if acl.pattern == "PREFIXED" else acl.topic == topic)
