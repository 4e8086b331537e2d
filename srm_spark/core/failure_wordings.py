"""Kinds of what was recorded before there were kinds: progress and quarantine keep sentences of years.

The only place where the program looks at the words of a failure. `tests/unit/test_failure_wordings.py` has one of each.
"""

from __future__ import annotations

import re

from srm_spark.failure import Failure, FailureKind

_WORDINGS: tuple[tuple[re.Pattern[str], FailureKind], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"foreign writer: ", FailureKind.FOREIGN_WRITER),
        (r"the record has no key and the target topic is compacted", FailureKind.NO_KEY),
        (r"the timestamp -?\d+ (is too old|lies in the future): ", FailureKind.TIMESTAMP_OUT_OF_RANGE),
        (r"the record takes \d+ bytes and the target topic's max\.message\.bytes is ", FailureKind.TOO_LARGE),
        (r"the name of its header ", FailureKind.HEADER_NAME),
        (r"librdkafka cannot read its headers: ", FailureKind.BROKEN_HEADERS),
        (r"the timestamp -?\d+ is beyond what Spark's Kafka source reads ", FailureKind.TIMESTAMP_OVERFLOW),
        (r"its timestamp is \d+ ms or later ", FailureKind.TIMESTAMP_OVERFLOW),
        (r"TOPIC_AUTHORIZATION_FAILED: ", FailureKind.TARGET_DENIED),
        (r".* has a transaction open since offset \d+: ", FailureKind.OPEN_TRANSACTION),
        (r"the source deleted offsets \d+ to \d+ before they were replicated; ", FailureKind.SOURCE_TRUNCATED),
        (r"the source topic was created anew; ", FailureKind.SOURCE_RECREATED),
        (r"offsets \d+ to \d+ were replicated, and the source has none ", FailureKind.SOURCE_DIVERGED),
        (r".* was truncated or created anew: the copies of offsets ", FailureKind.COPIES_GONE),
        (r"(Spark cannot read from |cluster .*: Not authorized to access topics)", FailureKind.SOURCE_DENIED),
    )
)


def recorded(sentence: str, code: str | None) -> Failure:
    """A failure as it was recorded; without a code it was so before there were kinds."""
    return Failure(_kind_of(sentence) if code is None else FailureKind.of(code), sentence)


def _kind_of(sentence: str) -> FailureKind:
    return next((kind for pattern, kind in _WORDINGS if pattern.match(sentence)), FailureKind.OTHER)
