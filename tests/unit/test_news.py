"""Once per change, and every so often."""

from __future__ import annotations

import pytest

from srm_spark.core.news import Every, News
from srm_spark.errors import FlowError


def test_only_what_has_changed_is_new() -> None:
    news = News()
    told = [news.is_new("a", what) for what in ("x", "x", "y", None, None, "y")]
    assert told == [True, False, True, False, False, True]
    assert news.is_new("b", "y"), "another subject"


def test_a_failure_is_told_once_per_change_and_again_behind_a_success() -> None:
    news, told = News(), list[str]()
    for why in ("x", "x", "y", None, "y"):
        with news.failing(lambda error: told.append(str(error))):
            if why is not None:
                raise FlowError(why)
    assert told == ["x", "y", "y"]
    with pytest.raises(ValueError, match="a bug"), news.failing(lambda error: told.append(str(error))):
        raise ValueError("a bug")


def test_it_is_due_at_once_and_then_after_its_seconds() -> None:
    every = Every(10)
    assert every.is_due(3)
    every.done(3)
    assert [every.is_due(now) for now in (3, 12.9, 13)] == [False, False, True]
    every.done(13)
    every.soon()
    assert every.is_due(14)


def test_what_is_done_once_only_never_comes_again() -> None:
    once = Every(float("inf"))
    once.done(5)
    assert not once.is_due(1e12)


def test_of_a_whole_only_what_is_new_or_other_is_said() -> None:
    news = News()
    said = [news.changes(now) for now in ({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"b": 2}, {"a": 1, "b": 2}, {})]
    assert said == [{"a": 1, "b": 1}, {"b": 2}, {}, {"a": 1}, {}]
