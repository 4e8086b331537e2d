"""A statement as a page that can be printed. It is drawn from the envelope, and says how that one is checked.

The page itself is not signed, so it says nothing that the envelope does not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from srm_spark.core.asked import part_of
from srm_spark.core.envelope import Envelope, Predicate, read_statement
from srm_spark.core.html import table

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }
h1 { font-size: 1.6rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100%; font-size: .85rem }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #d0d0d0; overflow-wrap: anywhere }
code { font-size: .85em; overflow-wrap: anywhere }
.verdict { font-size: 1.25rem; padding: .6rem 1rem; border: 2px solid #1a1a1a }
@media print { body { margin: 0 } h2 { break-after: avoid } tr { break-inside: avoid } }
"""
_Rows = Iterable[Sequence[object]]


def page_of(envelope: Envelope, name: str) -> str:
    """HTML of the envelope that lies in the file `name`; needs nothing from elsewhere."""
    statement = read_statement(envelope.payload)
    said: dict[str, Any] = statement["predicate"]
    about = Predicate(statement["predicateType"])
    title, verdict, parts = (_verification if about is Predicate.VERIFICATION else _move)(said)
    configuration = _section("Configuration, without secrets", ("key", "value"), said["configuration"].items())
    versions = _section("Versions", ("", "version"), [("", said["product"]), *said["versions"].items()])
    body = "\n".join(
        (
            f"<h1>{escape(title)}</h1>",
            f'<p class="verdict">{escape(verdict)}</p>',
            *parts,
            versions,
            configuration,
            "<h2>How to check it</h2>",
            f"<p>This page is drawn from <code>{escape(name)}</code>, which is signed by the Ed25519 key "
            f"<code>{escape(envelope.key_id)}</code>; the SHA-256 of what it says is "
            f"<code>{envelope.sha256}</code>. The page itself is not signed. Whoever has that file and the public key "
            "checks it, and draws this page anew:</p>",
            f"<pre>srm-control verify-statement {escape(name)} --public-key statement.pub --page statement.html</pre>",
        )
    )
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _verification(said: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    partitions: list[dict[str, Any]] = said["partitions"]
    equal = sum(one["equal"] for one in partitions)
    verdict = f"{said['verdict']}: {equal:,} records of {len(partitions):,} partitions are equal to their copies"
    rows = [
        (
            one["topic"],
            one["partition"],
            one["source"]["start"],
            one["source"]["end"],
            one["equal"],
            sum(one["explained"].values()),
            sum(one["differences"].values()),
            one["not_yet_copied"],
            one["unchecked"] or one["verdict"],
        )
        for one in partitions
    ]
    titles = ("topic", "partition", "from", "to", "equal", "explained", "different", "not yet copied", "")
    findings = [
        (one["topic"], one["partition"], found["kind"], found["source"], found["target"], found["what"])
        for one in partitions
        for found in one["findings"]
    ]
    explained = [
        (one["topic"], one["partition"], reason.replace("_", " "), number)
        for one in partitions
        for reason, number in one["explained"].items()
    ]
    roots = [
        (one["remote_topic"] if side == "target" else one["topic"], one["partition"], root["records"], root["sha256"])
        for one in partitions
        for side, root in (one.get("roots") or {}).items()
    ]
    return (
        f"Verification of {said['flow']}",
        verdict,
        [
            _paragraph(f"{said['how']}; began {said['began']}, ended {said['ended']}."),
            _paragraph(f"Looked at: {part_of(said['asked']) or 'everything that was copied'}."),
            _section("Clusters", ("alias", "bootstrap servers"), list(said["clusters"].items())),
            *([_paragraph(f"A sample: {said['sample']}.")] if said["sample"] else ()),
            _section("What was compared", titles, rows),
            _section("Differences", ("topic", "partition", "kind", "source offset", "target offset", "what"), findings),
            _section("What is explained", ("topic", "partition", "why", "records"), explained),
            _section("Roots of what was read", ("topic", "partition", "records", "SHA-256"), roots),
        ],
    )


def _only(part: str | None) -> str:
    return "" if part is None else f", of {part} only"


def _move(said: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    groups = [
        (
            one["group"],
            one["topic"],
            one["partition"],
            one["on_source"],
            one["before"],
            one["after"],
            one["outcome"],
            one["reason"] or one["standing"],
        )
        for one in said["groups"]
    ]
    ranges = [
        (one["topic"], one["partition"], one["remote_topic"], one["replicated_to"], one["source_end"], one["missing"])
        for one in said["ranges"]
    ]
    lost = [(one["topic"], one["partition"], start, end - 1) for one in said["ranges"] for start, end in one["lost"]]
    phases = [(one["stage"], one["began"], one["ended"] or "did not end") for one in said["phases"]]
    verdict = "Everything moved." if not said["unsafe"] else "Not everything moved."
    verified = said["verified"]
    by_content = (
        "Copies were not compared with their records by content for this statement."
        if verified is None
        else f"By content: {verified['verdict']}{_only(verified.get('part'))}, as of {verified['ended']}; "
        f"its statement has the SHA-256 {verified['sha256']}."
    )
    return (
        f"{said['move'].capitalize()} of {said['flow']}",
        verdict,
        [
            _paragraph(f"Began {said['began']}, ended {said['ended']}. {by_content}"),
            _list("Not safe", said["unsafe"]),
            _section(
                "Groups",
                ("group", "topic", "partition", "on the source", "was at", "goes on at", "outcome", "why"),
                groups,
            ),
            _section(
                "How far each partition was copied",
                ("topic", "partition", "remote topic", "copied to", "source ends at", "not copied"),
                ranges,
            ),
            _section("Lost before", ("topic", "partition", "first offset", "last offset"), lost),
            _section("Stages", ("stage", "began", "ended"), phases),
            _list("Next", said["next_steps"]),
        ],
    )


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _section(title: str, titles: Sequence[str], rows: _Rows) -> str:
    found = list(rows)
    return f"<h2>{escape(title)}</h2>\n{table(titles, found) if found else '<p>None.</p>'}"


def _list(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return f"<h2>{escape(title)}</h2>\n<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
