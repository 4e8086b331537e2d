"""All rows of the key table, and questions about them."""

from __future__ import annotations

from functools import cache

from srm_spark.config import keys_client, keys_connector, keys_oidc, keys_process, keys_sites, keys_statement
from srm_spark.config.schema import Dialect, Key, KeyEffect, Scope, ValueKind

_CONNECTOR_ROWS = (
    *keys_connector.SOURCE,
    *keys_connector.CHECKPOINT,
    *keys_connector.HEARTBEAT,
    *keys_connector.COMMON,
    *keys_connector.FLOW_ONLY,
    *keys_connector.SRM_CONNECTOR,
    *keys_connector.OWN,
)
_SECURITY_ROWS = tuple(
    Key(
        row.name,
        ValueKind.TEXT,
        None,
        Scope.SECURITY,
        KeyEffect.TRANSLATED if row.librdkafka else KeyEffect.IGNORED,
        row.note or f"Passed to all clients of the cluster as `{row.librdkafka}`.",
    )
    for row in keys_client.CLIENT_KEYS.values()
    if row.name in keys_client.SECURITY_KEYS
)

TABLE: tuple[Key, ...] = (
    *keys_process.TOP,
    *_CONNECTOR_ROWS,
    *keys_process.PROGRESS,
    *keys_process.WORKER,
    *_SECURITY_ROWS,
    *keys_statement.STATEMENT,
    *keys_process.OWN_SERVICE,
    *keys_sites.SITES,
    *keys_oidc.OIDC,
    *keys_process.SERVICE,
)
"""Every key but the Java client properties behind a prefix, which `keys_client.CLIENT_KEYS` holds."""

BY_NAME = {row.name: row for row in TABLE}


def find(name: str) -> Key:
    """The row of a key that must exist."""
    return BY_NAME[name]


@cache
def connector_names(dialect: Dialect) -> frozenset[str]:
    """Keys that the top level hands down to every flow."""
    names = {row.name for row in _CONNECTOR_ROWS if row.scope is Scope.CONNECTOR} | keys_client.SECURITY_KEYS
    names -= {"bootstrap.servers"}
    if dialect is Dialect.MM2:
        names -= {row.name for row in keys_connector.SRM_CONNECTOR}
    return frozenset(names)
