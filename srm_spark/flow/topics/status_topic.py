"""The status topic: what drivers say of a flow, read by whoever wants to know it, from any machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from srm_spark.config.settings import FlowSettings
from srm_spark.core.cluster import Cluster
from srm_spark.core.driver_status import Heard, decode_status
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.topics.followed import FollowedTopic


class StatusTopic:
    """Follows the topic of one flow."""

    def __init__(
        self, settings: FlowSettings, target: Cluster, role: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._target, self._name, self._clock = target, settings.status_topic, clock
        self._topic = FollowedTopic(
            target, self._name, f"{settings.flow}|{role}", TargetUnavailable, target.timeout, forget=self._forget
        )
        self._words: dict[bytes, tuple[Heard, float | None]] = {}
        """Key → the newest word, and the moment at which it was seen to come."""
        self._is_first = True
        self._first_look = clock()

    def refresh(self) -> None:
        """Take in what was said since the last call; where nobody ever said anything there is no topic.

        One that was deleted or made anew meanwhile is begun anew: nothing in it counts for long.
        """
        was_first = self._is_first
        try:
            self._take()
        except TargetUnavailable:
            if was_first or not self._is_first:
                raise
            self._take()

    def _take(self) -> None:
        if self._is_first and self._name not in self._target.topics():
            return
        for record in self._topic.new_records():
            key = record.key or b""
            self._words.pop(key, None)
            if (status := decode_status(record.key, record.value)) is not None:
                at = status.at if record.timestamp is None else record.timestamp
                # What was there before the first look may be of any age.
                self._words[key] = Heard(replace(status, at=at)), None if self._is_first else self._clock()
        if self._is_first:
            self._first_look = self._clock()
        self._is_first = False

    @property
    def words(self) -> dict[bytes, Heard]:
        """Key → what each driver said last."""
        now = self._clock()
        return {
            key: replace(heard, at_least=now - self._first_look)
            if came is None
            else replace(heard, seconds_ago=now - came)
            for key, (heard, came) in self._words.items()
        }

    def close(self) -> None:
        """Stop reading."""
        self._topic.close()
        self._forget()

    def _forget(self) -> None:
        self._words.clear()
        self._is_first = True
