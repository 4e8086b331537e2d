"""Rows for the keys of services that find and ask each other."""

from __future__ import annotations

from srm_spark.config.schema import Key, KeyEffect, Scope, ValueKind
from srm_spark.core.advertised import PROTOCOLS

_H = KeyEffect.HONOURED
ADVERTISED_PROTOCOL_KEY = "service.advertised.protocol"
ADVERTISED_HOST_KEY = "service.advertised.host"
ADVERTISED_PORT_KEY = "service.advertised.port"
ADVERTISED_PATH_KEY = "service.advertised.root.path"
ADVERTISED_FACTOR_KEY = "streams.replication.manager.service.remote.advertisement.topic.replication.factor"
REMOTE_TARGETS_KEY = "service.remote.targets"
REMOTE_USER_KEY = "service.remote.user"
REMOTE_PASSWORD_KEY = "service.remote.password"  # noqa: S105 - a name
REMOTE_TOKEN_KEY = "service.remote.token"  # noqa: S105 - a name
REMOTE_CA_KEY = "service.remote.ca.file"

SITES = (
    Key(
        ADVERTISED_PROTOCOL_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "How other services reach `srm-service`, where that is not as it listens: behind a proxy.",
        allowed=PROTOCOLS,
    ),
    Key(
        ADVERTISED_HOST_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "The host that `srm-service` says in `srm-service.internal`; by default that on which it listens, or its name. "
        "One that listens on its own machine alone says nothing without this.",
    ),
    Key(
        ADVERTISED_PORT_KEY,
        ValueKind.INT,
        None,
        Scope.TOP,
        _H,
        "The port that it says; by default its own.",
        low=1,
        high=65535,
    ),
    Key(
        ADVERTISED_PATH_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "What a proxy has in front of its paths, as `/srm`: other services ask below it, and links of its pages begin "
        "with it.",
    ),
    Key(
        ADVERTISED_FACTOR_KEY,
        ValueKind.INT,
        None,
        Scope.TOP,
        _H,
        "Replication factor of `srm-service.internal`; by default that of the topics of samples.",
        low=1,
        high=2**15 - 1,
    ),
    Key(
        REMOTE_TARGETS_KEY,
        ValueKind.LIST,
        None,
        Scope.TOP,
        _H,
        "Clusters whose services `srm-service` asks for the flows into them, to show these beside its own "
        "(docs/service.md).",
    ),
    Key(REMOTE_USER_KEY, ValueKind.TEXT, None, Scope.TOP, _H, "As whom it logs in there by HTTP Basic."),
    Key(REMOTE_PASSWORD_KEY, ValueKind.TEXT, None, Scope.TOP, _H, "With which password; kept secret."),
    Key(REMOTE_TOKEN_KEY, ValueKind.TEXT, None, Scope.TOP, _H, "Or by this bearer token; kept secret."),
    Key(
        REMOTE_CA_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        _H,
        "Authorities that sign the certificates of those services, in PEM; by default those of the system.",
    ),
)
"""Keys of services that find and ask each other; all but the replication factor are our own."""
