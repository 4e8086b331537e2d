"""What a file says of the key of statements. Reports, never raises; whether the key is there, who signs finds out."""

from __future__ import annotations

from srm_spark.config.keys_statement import STATEMENT_KEY, STATEMENT_PASSWORD_KEY
from srm_spark.config.settings import SigningSettings
from srm_spark.config.values import Values


def signing_settings(values: Values) -> SigningSettings | None:
    """The key; None where statements are not signed."""
    key = values.text(STATEMENT_KEY)
    password = values.text(STATEMENT_PASSWORD_KEY) if values.is_set(STATEMENT_PASSWORD_KEY) else None
    if key:
        return SigningSettings(key, password)
    if values.is_set(STATEMENT_KEY):
        hint = "give a value or remove the line"
        values.refuse(STATEMENT_KEY, "got ''; allowed the path of a PEM file, or a pkcs11: URI", hint)
    elif password is not None:
        values.refuse(STATEMENT_PASSWORD_KEY, f"has no effect without {STATEMENT_KEY}", "write both or none")
    return None
