"""Which transactional ids a new term fences, also behind starts that failed."""

from __future__ import annotations

import pytest

from srm_spark.flow.recovery.fencing import fence_older
from srm_spark.kafka.fencing import FencingToken, TokenMark


class Coordinator:
    """Remembers the newest mark, and which slots are fenced."""

    def __init__(self, mark: TokenMark | None = None) -> None:
        self.newest = mark
        self.fenced: set[int] = set()
        self.is_away = False

    def mark(self, metadata: str) -> None:
        self.newest = TokenMark.decode(metadata)

    def fence(self, _: FencingToken, slots: int) -> None:
        if self.is_away:
            raise ConnectionError
        self.fenced |= set(range(slots))

    def begin(self, token: str, slots: int) -> None:
        fencing = FencingToken("srm-A->B", "progress", TokenMark(token, slots), {}, 1.0)
        fence_older(fencing, self.newest, self.mark, self.fence)


def test_a_start_that_fails_does_not_narrow_what_the_next_one_fences() -> None:
    cluster = Coordinator(TokenMark("old", 17))
    cluster.is_away = True
    with pytest.raises(ConnectionError):
        cluster.begin("failed", 3)
    cluster.is_away = False
    cluster.begin("next", 3)
    assert cluster.fenced == set(range(17))


def test_behind_a_term_of_which_all_are_fenced_only_its_own_slots_are_left() -> None:
    cluster = Coordinator(TokenMark("old", 17))
    cluster.begin("first", 3)
    assert cluster.newest == TokenMark("first", 3)
    cluster.fenced.clear()
    cluster.begin("second", 2)
    assert cluster.fenced == set(range(3))


def test_the_token_is_there_before_anything_is_fenced() -> None:
    cluster = Coordinator()
    cluster.is_away = True
    with pytest.raises(ConnectionError):
        cluster.begin("first", 5)
    assert cluster.newest == TokenMark("first", 5)
