"""Which values are secret, and how they are shown. Everything that prints a value of a configuration asks here."""

from __future__ import annotations

import difflib
import re

MASK = "********"

_SECRET_KEY = re.compile(
    r"password|passwd|passphrase|secret|credential(?!s\.client\.id$)|jaas\.config|keystore\.key$|certificate\.chain$"
    r"|private[._-]?key(?!\.file$)|access[._-]?key|api[._-]?key|(?<!endpoint\.)token(?!\.endpoint|\.retriever|\.validator)"
    r"|(^|\.)auth\.user\.?info|basic\.auth|ssl\.key\.pem|webhook$",
    re.IGNORECASE,
)
_SECRET_IN_VALUE = re.compile(r"(?i)((?:password|secret|clientSecret)\s*=\s*)(\"[^\"]*\"|'[^']*'|[^\s;,]+)")
_WORDS = ("password", "passphrase", "secret")
_REFERENCE = re.compile(r"^\$\{[^}:]+:[^}]*\}$")

SPARK_REDACTION_REGEX = (
    "(?i)secret|password|passphrase|token|access[.]?key|jaas|credential|keystore|truststore|certificate"
)
"""For `spark.redaction.regex`: Spark's own default does not cover `sasl.jaas.config` and PEM keys."""
SPARK_SETTINGS = {
    "spark.redaction.regex": SPARK_REDACTION_REGEX,
    # A write task knows the producer's password. With thousands of topics it is larger than 1 MB, and then Spark hands
    # it out by a file in its local directory, one per batch.
    "spark.io.encryption.enabled": "true",
}
"""What every Spark session that srm-spark starts needs, so that it shows no secret."""
SQL_SETTINGS = {"spark.sql.redaction.options.regex": f"{SPARK_REDACTION_REGEX}|url"}
"""Plans name the options of a source; in a session of somebody else's only this one hides them."""


def is_secret(key: str) -> bool:
    """Whether the value of `key` must never be shown; also where the key is misspelled."""
    if _SECRET_KEY.search(key):
        return True
    return any(difflib.get_close_matches(part, _WORDS, n=1, cutoff=0.8) for part in re.split(r"[._-]", key.lower()))


def mask(key: str, value: str) -> str:
    """`value` as it may be shown: secrets as stars, references such as `${env:X}` as they are."""
    if is_secret(key):
        return value if _REFERENCE.match(value) or not value else MASK
    return _SECRET_IN_VALUE.sub(rf"\g<1>{MASK}", value)
