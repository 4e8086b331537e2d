"""Rows for the key that signs statements."""

from __future__ import annotations

from srm_spark.config.schema import Key, KeyEffect, Scope, ValueKind

STATEMENT_KEY = "statement.key"
STATEMENT_PASSWORD_KEY = "statement.key.password"  # noqa: S105 - the name of a key

STATEMENT = (
    Key(
        STATEMENT_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        KeyEffect.HONOURED,
        "PEM file of the Ed25519 key, or `pkcs11:` URI of the one in a hardware module, that signs statements of moves "
        "and verifications; unset: they are not signed (docs/statements.md).",
    ),
    Key(
        STATEMENT_PASSWORD_KEY,
        ValueKind.TEXT,
        None,
        Scope.TOP,
        KeyEffect.HONOURED,
        "The password of that file, or the PIN of the module's token.",
    ),
)
