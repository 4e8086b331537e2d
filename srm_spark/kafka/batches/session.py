"""What one broker keeps in mind of who fetches from it (KIP-227): it is told what has changed, and tells no more.

It may forget at any time, to have room for others, and says so; then everything is told once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from srm_spark.kafka.batches.wire import SessionNote, TopicKey, Wanted

ENDED = frozenset({70, 71, 106})
"""Errors of a broker that has forgotten the session, or has another idea of it."""
_LAST_EPOCH = 2**31 - 1
Asked = tuple[TopicKey, int]


class Session:
    """A session at one broker, which begins with the next request where there is none."""

    def __init__(self) -> None:
        self._number = self._epoch = 0
        self._known: dict[Asked, Wanted] = {}

    def next(self, wanted: Mapping[Asked, Wanted]) -> tuple[SessionNote, dict[Asked, Wanted]]:
        """How the next request belongs to it, and which partitions are to be named in it."""
        known = self._known if self._epoch else {}
        gone = defaultdict[TopicKey, list[int]](list)
        for topic, number in known.keys() - wanted.keys():
            gone[topic].append(number)
        changed = {asked: one for asked, one in wanted.items() if known.get(asked) != one}
        self._known = dict(wanted)
        return SessionNote(self._number, self._epoch, gone), changed

    def answered(self, number: int) -> None:
        """The broker has taken the request in, and says which session it belongs to: 0 where there is none."""
        self._number = number
        self._epoch = self._epoch % _LAST_EPOCH + 1 if number else 0

    def restart(self) -> None:
        """Whether the broker knows what was asked last is not known: say everything anew, in place of this session."""
        self._epoch = 0
