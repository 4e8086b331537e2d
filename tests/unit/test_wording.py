"""Counts and lists of names, as people write them."""

from __future__ import annotations

import pytest

from srm_spark.core.wording import count, some


@pytest.mark.parametrize(("number", "text"), [(0, "0 topics"), (1, "1 topic"), (2, "2 topics")])
def test_only_one_is_singular(number: int, text: str) -> None:
    assert count(number, "topic") == text


def test_names_are_sorted_and_the_rest_is_counted() -> None:
    assert some({"b", "a"}, 2) == "a, b"
    assert some(["c", "b", "a"], 2) == "a, b and 1 more"
    assert some([]) == ""
