"""What is generated from the key table: the reference page, a template file, and a JSON schema for YAML editors.

`python -m srm_spark.config.document docs/configuration.md` brings the page up to date; a test says when it is not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from srm_spark.config import keys_client, keys_connector, keys_oidc, keys_process, keys_sites, keys_statement
from srm_spark.config.keys import TABLE
from srm_spark.config.overruled import in_batches, told
from srm_spark.config.schema import Key, KeyEffect, Scope, ValueKind

BEGIN = "<!-- generated from the key table: python -m srm_spark.config.document docs/configuration.md -->"
END = "<!-- end of the generated part -->"

_NONE = "-"
_IN_BATCHES = (
    "Most records travel in batches over connections of our own, and librdkafka moves none of them "
    "([performance.md](performance.md)). There the properties of the two clients of a flow's records do this:"
)
_GROUPS: tuple[tuple[str, tuple[Key, ...]], ...] = (
    ("The file", keys_process.TOP),
    ("Topics and records", keys_connector.SOURCE),
    ("srm-spark's own", keys_connector.OWN),
    ("Heartbeats", keys_connector.HEARTBEAT),
    ("Progress", keys_process.PROGRESS),
    ("Consumer groups", keys_connector.CHECKPOINT),
    ("All connectors", keys_connector.COMMON),
    ("Only for a flow", keys_connector.FLOW_ONLY),
    ("SRM's connectors", keys_connector.SRM_CONNECTOR),
    ("Connect workers and REST", keys_process.WORKER),
    ("Statements", keys_statement.STATEMENT),
    ("srm-service", (*keys_process.OWN_SERVICE, *keys_oidc.OIDC)),
    ("srm-service and those of other sites", keys_sites.SITES),
    ("SRM Service and Client", keys_process.SERVICE),
)


def page() -> str:
    """The generated part of the reference page."""
    parts = [BEGIN, ""]
    for title, rows in _GROUPS:
        parts += [f"### {title}", "", "| key | where | default | here |", "|---|---|---|---|"]
        parts += [_row(row) for row in rows]
        parts.append("")
    parts += ["### Java client properties", "", "| property | clients | librdkafka | note |", "|---|---|---|---|"]
    for client in keys_client.CLIENT_KEYS.values():
        name = f"`{client.librdkafka}`" if client.librdkafka else _NONE
        note = _cell(client.note or told(client.name))
        parts.append(f"| `{client.name}` | {client.clients} | {name} | {note} |")
    parts += ["", "### In batches", "", _IN_BATCHES, ""]
    for kind in ("consumer", "producer"):
        parts += [f"| property of a {kind} | in batches |", "|---|---|"]
        parts += [f"| `{name}` | {_cell(in_batches(kind, name))} |" for name in client_names(kind)]
        parts.append("")
    return "\n".join([*parts, END])


def client_names(kind: str) -> list[str]:
    """The properties of a client that have a counterpart in librdkafka, but for those of its login."""
    rows = keys_client.CLIENT_KEYS.values()
    kinds = (kind, keys_client.ALL)
    return [
        row.name
        for row in rows
        if row.librdkafka and row.clients in kinds and row.name not in keys_client.SECURITY_KEYS
    ]


def _row(row: Key) -> str:
    default = _NONE if row.default is None else f"`{_wrapped(row.default)}`"
    if row.srm_default is not None and row.srm_default != row.default:
        default += f" (SRM: `{row.srm_default}`)" if row.srm_default else " (SRM: empty)"
    limits = f" Allowed: {row.allows}." if row.allowed or row.low is not None else ""
    effect = "" if row.effect is KeyEffect.HONOURED else f"**{row.effect.value}:** "
    return f"| `{row.name}` | {row.scope.value} | {default} | {_cell(effect + row.does + limits)} |"


def _wrapped(default: str) -> str:
    return _cell(default.replace(",", ", ") if len(default) > 40 else default)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def with_generated_part(text: str) -> str:
    """`text` with everything between the marks made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{page()}{after}"


def template() -> str:
    """A commented `.properties` file with everything that can be set; it loads as it is."""
    lines = [
        "# Two clusters and one flow. Remove the # of a line to change its default.",
        "clusters = A, B",
        "A.bootstrap.servers = a.example:9092",
        "B.bootstrap.servers = b.example:9092",
        "A->B.enabled = true",
        "A->B.topics = .*",
        "",
        "# Security of a cluster; never write a password here, name where it is.",
        "# A.security.protocol = SASL_SSL",
        "# A.sasl.mechanism = SCRAM-SHA-512",
        "# A.sasl.jaas.config = ${env:A_JAAS}",
        "# A.ssl.truststore.location = /path/to/truststore.p12",
        "# A.ssl.truststore.password = ${file:/path/to/secrets.properties:truststore}",
        "",
        "# Settings of everything that reads from A, and of everything that writes records to B.",
        "# A.consumer.isolation.level = read_committed",
        "# B.producer.compression.type = zstd",
    ]
    for title, rows in _GROUPS:
        useful = [row for row in rows if row.effect is KeyEffect.HONOURED and row.default is not None]
        if useful:
            lines += ["", f"# --- {title}"]
        for row in useful:
            if row.name == "topics":
                continue  # set above
            of_flow = row.scope is Scope.FLOW or row.name in ("enabled", "topics")
            prefix = "A->B." if of_flow else "B." if row.scope is Scope.WORKER else ""
            lines += [f"# {row.does}", f"# {prefix}{row.name} = {_escaped(row.default or '')}"]
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")


_OF_CLUSTER = (Scope.SECURITY, Scope.WORKER_PREFIX, Scope.WORKER, Scope.FLOW_AND_TARGET)


def json_schema() -> dict[str, Any]:
    """A JSON schema for YAML files, for editors; flat and nested spelling both pass."""
    flow = _properties(row for row in TABLE if row.scope in (Scope.CONNECTOR, Scope.FLOW, Scope.FLOW_AND_TARGET))
    cluster = {
        **_properties(row for row in TABLE if row.scope in _OF_CLUSTER),
        **{name: {"type": "object"} for name in ("consumer", "producer", "admin")},
    }
    top = _properties(row for row in TABLE if row.scope is not Scope.SERVICE)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "srm-spark configuration",
        "type": "object",
        "required": ["clusters"],
        "properties": top,
        "patternProperties": {
            "^[^.]+->[^.]+$": {"type": "object", "properties": flow},
            "^[^.>]+$": {"anyOf": [{"type": "object", "properties": cluster}, {"type": _SCALARS}]},
        },
    }


_SCALARS = ["string", "number", "boolean", "array", "null"]


def _properties(rows: Iterable[Key]) -> Mapping[str, Any]:
    return {row.name: _schema(row) for row in rows}


def _schema(row: Key) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": row.does}
    if row.kind is ValueKind.BOOL:
        schema["enum"] = [True, False, "true", "false"]
    elif row.allowed:
        schema["enum"] = list(row.allowed)
    elif row.kind is ValueKind.INT:
        schema["type"] = ["integer", "string"]
        if row.low is not None and not row.off:
            schema["minimum"] = row.low
    elif row.kind in (ValueKind.LIST, ValueKind.REGEXES):
        schema["type"] = ["string", "array"]
    if row.default is not None:
        schema["default"] = row.default
    return schema


def main() -> None:
    """Rewrites the generated part of the page named on the command line."""
    path = Path(sys.argv[1])
    path.write_text(with_generated_part(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
