"""Whether topics are still the ones that are read: another one of the same name has other records at their offsets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from srm_spark.errors import SourceChanged, SourceUnavailable
from srm_spark.kafka.clients import QUIET, ClientOptions, LastError
from srm_spark.kafka.failures import is_passing, named
from srm_spark.kafka.tokens import with_tokens

_TRY_SECONDS = 5.0
_RETRY_SECONDS = 0.2


class TopicIds:
    """Asks for them, beside a consumer of the same options."""

    def __init__(self, options: ClientOptions, on_error: LastError) -> None:
        self._fixed: dict[str, Any] = {**options, "error_cb": on_error}
        self._admin: AdminClient | None = None

    def check(self, expected: Mapping[str, str], cluster: str, seconds: float) -> None:
        """Raises SourceChanged where a topic has another id than expected, or none.

        Raises SourceUnavailable where the cluster refuses, or does not answer in so many seconds.
        """
        deadline = time.monotonic() + seconds
        while True:
            failed = self._compare(expected, cluster)
            if failed is None:
                return
            topic, error = failed
            may_pass = is_passing(error) or error.code() == KafkaError._TIMED_OUT
            if not may_pass or time.monotonic() > deadline:
                what = f"cannot describe topic {topic}: {named(error)}"
                raise SourceUnavailable(f"cluster {cluster}: {what}; the next start tries again")
            time.sleep(_RETRY_SECONDS)

    def _compare(self, expected: Mapping[str, str], cluster: str) -> tuple[str, KafkaError] | None:
        """A topic for which there was no answer, and why."""
        if self._admin is None:  # `or` would make one each time: the length of an admin client is 0
            self._admin = AdminClient(with_tokens(self._fixed), logger=QUIET)
        asked = TopicCollection(sorted(expected))
        for topic, future in self._admin.describe_topics(asked, request_timeout=_TRY_SECONDS).items():
            difference = None
            try:
                difference = str(future.result().topic_id)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    return topic, error.args[0]
            if difference != expected[topic]:
                what = "is gone" if difference is None else "was created anew"
                raise SourceChanged(f"cluster {cluster}: topic {topic} {what} while it was read")
        return None
