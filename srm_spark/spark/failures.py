"""What the failure of a query or a job means.

Ours come through Spark as data (`failure.crossed`). Of what Java's clients throw in Spark's source only the name of the
class counts; their words, somewhere in the middle of a long text, are handed on to people.
"""

from __future__ import annotations

import re

from srm_spark.failure import Failure, FailureKind, crossed

_JAVA = {
    "org.apache.kafka.common.errors.TopicAuthorizationException": FailureKind.SOURCE_DENIED,
    "org.apache.kafka.common.errors.GroupAuthorizationException": FailureKind.SOURCE_DENIED,
    "java.lang.ArithmeticException": FailureKind.TIMESTAMP_OVERFLOW,
}
_DENIED = re.compile(r"Not authorized to access (topics?|group): \[?([^\]\n]+)\]?")


def failure_in(text: str, source: str) -> Failure:
    """The failure that Spark tells with `text`; `source` is the cluster that the query reads."""
    ours = crossed(text)
    if ours is not None:
        return ours
    kind = next((kind for name, kind in _JAVA.items() if name in text), FailureKind.OTHER)
    return Failure(kind, _sentence(text, source))


def _sentence(text: str, source: str) -> str:
    """The line that says most, for people."""
    denied = _DENIED.search(text)
    if denied is not None:
        what = f"READ on {denied[1].rstrip('s')} {denied[2]}"
        return f"Spark cannot read from {source}: {denied[0]}; allow {what} to the principal of these credentials"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    inner = [line.partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    first = lines[0] if lines else "the query ended without a reason"
    return f"{first} ({inner[-1]})" if inner and inner[-1] not in first else first
