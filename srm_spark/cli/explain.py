"""`srm-control explain`: why something flows or does not, by which rule, since when, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from srm_spark.cli.manual import manual, overview
from srm_spark.cli.options import CONFIG, DEFINES, DIFFERENT, ERROR, FLOW, OUTPUT, flows_of, print_json, several, told
from srm_spark.core.moments import stamp_of
from srm_spark.look.acls import explain_acls
from srm_spark.look.answer import Answer, Rule, Verdict
from srm_spark.look.groups import explain_group
from srm_spark.look.properties import explain_property
from srm_spark.look.topics import explain_topic

_COMMON = several(CONFIG, DEFINES, FLOW, OUTPUT)
_UNKNOWN = "an answer is unknown: who knows it does not answer"


@overview("srm-control explain topic --config srm.properties orders")
@click.group()
def explain() -> None:
    """Says why a topic, a group, a property or an ACL flows or does not, and what to do about it.

    Properties of the configuration are explained by config show --explain.
    """


@manual(
    "srm-control explain topic --config srm.properties --flow 'A->B' orders",
    reads="the lists and the progress of the flow, what drivers say, and topics and ACLs of both clusters.",
    different=_UNKNOWN,
)
@explain.command("topic")
@click.argument("topic")
@_COMMON
def of_topic(*, topic: str, files: Sequence[Path], defines: Sequence[str], name: str | None, output: str) -> None:
    """Says which rule of which file or list decides about a topic of the source, and what it waits for."""
    with told():
        answers = [explain_topic(flow, topic) for flow in flows_of(files, defines, name, exit_code=ERROR)]
    _print(answers, output)


@manual(
    "srm-control explain group --config srm.properties billing",
    reads="the lists and the offset map of the flow, checkpoints, and the group on both clusters.",
    different=_UNKNOWN,
)
@explain.command("group")
@click.argument("group")
@_COMMON
def of_group(*, group: str, files: Sequence[Path], defines: Sequence[str], name: str | None, output: str) -> None:
    """Says whether a consumer group is in sync on the target, or why not."""
    with told():
        answers = [explain_group(flow, group) for flow in flows_of(files, defines, name, exit_code=ERROR)]
    _print(answers, output)


@manual(
    "srm-control explain property --config srm.properties retention.ms --topic orders",
    reads="the file; with --topic the configs of it and of its remote topic, too.",
    different=_UNKNOWN,
)
@explain.command("property")
@click.argument("key", metavar="PROPERTY")
@_COMMON
@click.option("--topic", metavar="TOPIC", help="Compare what this topic of the source and its remote topic have.")
def of_property(
    *, key: str, files: Sequence[Path], defines: Sequence[str], name: str | None, output: str, topic: str | None
) -> None:
    """Says whether remote topics get a property of topics (retention.ms, …) from their source topics, or why not."""
    with told():
        answers = [explain_property(flow, key, topic) for flow in flows_of(files, defines, name, exit_code=ERROR)]
    _print(answers, output)


@manual(
    "srm-control explain acl --config srm.properties orders",
    reads="ACLs of both clusters.",
    different=_UNKNOWN,
)
@explain.command("acl")
@click.argument("topic")
@_COMMON
def of_acls(*, topic: str, files: Sequence[Path], defines: Sequence[str], name: str | None, output: str) -> None:
    """Says which ACLs of a topic of the source its remote topic gets, and why it does not get the others."""
    with told():
        flows = flows_of(files, defines, name, exit_code=ERROR)
        answers = [answer for flow in flows for answer in explain_acls(flow, topic)]
    _print(answers, output)


def _print(answers: Sequence[Answer], output: str) -> None:
    if output == "json":
        print_json([document(answer) for answer in answers])
    else:
        for answer in answers:
            click.echo("\n".join(lines(answer)))
    if any(answer.verdict is Verdict.UNKNOWN for answer in answers):
        raise SystemExit(DIFFERENT)


def lines(answer: Answer) -> Iterator[str]:
    """For people."""
    yield f"{answer.flow} {answer.subject}: {answer.verdict.value}"
    rows = [("why", answer.why)]
    if answer.rule is not None:
        rows.append(("rule", _rule(answer.rule)))
    if answer.since is not None:
        rows.append(("since", stamp_of(answer.since)))
    rows += [
        (name, text) for name, text in (("waits for", answer.waits_for), ("to do", answer.remedy)) if text is not None
    ]
    rows += answer.facts.items()
    width = max(len(name) for name, _ in rows)
    yield from (f"  {name:<{width}}  {text}" for name, text in rows)


def _rule(rule: Rule) -> str:
    added = "" if rule.who is None else f", added by {rule.who}"
    when = "" if rule.at is None else f" at {stamp_of(rule.at)}"
    return f"{rule.text} [{rule.place}{added}{when}{'' if rule.why is None else f': {rule.why}'}]"


def document(answer: Answer) -> dict[str, Any]:
    """For programs; times are ISO 8601."""
    whole = asdict(answer)
    whole |= {"flow": str(answer.flow), "verdict": answer.verdict.value, "because": answer.because.value}
    whole["since"] = None if answer.since is None else stamp_of(answer.since)
    if answer.rule is not None:
        whole["rule"]["at"] = None if answer.rule.at is None else stamp_of(answer.rule.at)
    return whole
