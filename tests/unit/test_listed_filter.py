"""The rule that combines a file and its lists."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.filters import NameFilter, SelectionReason, select
from srm_spark.core.list_changes import problems_of
from srm_spark.core.listed_filter import RULES, Entries, Filters, ListedFilter
from srm_spark.core.lists import NO_LISTS, Act, Change, ListKind, Lists, act_key, decode_act, encode_act
from srm_spark.core.patterns import compile_java
from srm_spark.core.policy import DefaultReplicationPolicy
from srm_spark.errors import PatternError

PATTERNS = st.lists(
    st.sampled_from(["a", "b", "ab", "a.*", "[ab]", ".*b", "a-1", "(?i)A", r"(a)\1"]), unique=True, max_size=4
).map(tuple)
NAMES = st.sampled_from(["a", "b", "ab", "aa", "a-1", "A", "c"])
PYTHON = {"(?i)A": "[aA]"}


def hits(patterns: tuple[str, ...], name: str) -> bool:
    return any(re.fullmatch(PYTHON.get(pattern, pattern), name) for pattern in patterns)


class Paying(NameFilter):
    """A filter of the user's own."""

    def matches(self, name: str) -> bool:
        return name.startswith("paying-")


@given(
    st.lists(st.sampled_from(["a", "b.*", "[ab]"]), unique=True).map(tuple),
    st.lists(st.sampled_from(["a", "ab"]), unique=True).map(tuple),
    PATTERNS,
    PATTERNS,
    NAMES,
)
def test_the_rule(
    include: tuple[str, ...], exclude: tuple[str, ...], allow: tuple[str, ...], deny: tuple[str, ...], name: str
) -> None:
    found = ListedFilter(NameFilter(include, exclude), Lists(allow, deny))
    is_taken = (hits(include, name) or hits(allow, name)) and not (hits(exclude, name) or hits(deny, name))
    assert found.matches(name) is is_taken
    if is_taken:
        assert found.included_by(name) is not None
        assert found.excluded_by(name) is None
    elif hits(exclude, name) or hits(deny, name):
        assert found.excluded_by(name) is not None
    assert (found.denied_by(name) is not None) is hits(deny, name)


@given(PATTERNS, PATTERNS, NAMES)
def test_where_the_file_steps_back_it_counts_only_without_entries(
    allow: tuple[str, ...], deny: tuple[str, ...], name: str
) -> None:
    found = ListedFilter(NameFilter((".*",)), Lists(allow, deny), steps_back=True)
    assert found.matches(name) is ((not allow or hits(allow, name)) and not hits(deny, name))


def test_a_filter_of_the_user_s_own_is_added_to_by_the_same_rule() -> None:
    own = Paying((".*",), ("noise.*",))
    found = ListedFilter(own, Lists(("orders", "noise-1"), ("paying-2",)))
    assert [found.matches(name) for name in ("paying-1", "paying-2", "orders", "noise-1", "other")] == [
        True,
        False,
        True,
        False,
        False,
    ]
    assert found.idle(["orders"]) == ("noise-1",)


def test_lists_are_others_from_one_moment_on() -> None:
    found = ListedFilter(NameFilter(("t",)))
    before = found.lists
    assert (before, found.matches("u"), found.wanted) == (NO_LISTS, False, ("t",))
    found.take(Lists(("u", "v.*"), ("t",)))
    assert found.lists is not before
    assert (found.matches("u"), found.matches("t"), found.wanted) == (True, False, ("t", "u", "v.*"))
    assert found.idle(["u"]) == ("t", "v.*")
    filters = Filters(found, ListedFilter(NameFilter(())), ListedFilter(NameFilter((".*",)), steps_back=True))
    assert filters.take({ListKind.TOPICS: Lists(("u", "v.*"), ("t",))}) == set()
    assert filters.take({ListKind.GROUPS: Lists(("g",))}) == {ListKind.TOPICS, ListKind.GROUPS}
    assert (filters.topics.matches("t"), filters.groups.matches("g")) == (True, True)
    assert filters.reverse is filters.of(ListKind.REVERSE)


def test_entries_do_not_reach_each_other() -> None:
    entries = Entries(["(?i)a", "b", "(x)", r"(y)\1"])
    assert [entries.first(name) for name in ("A", "B", "yy", "x", "yx")] == ["(?i)a", None, r"(y)\1", "(x)", None]
    with pytest.raises(PatternError, match="never closed"):
        Entries(["("])


@given(st.lists(st.text("ab.-", min_size=1, max_size=4), max_size=6), st.text("ab.-\n", max_size=4))
def test_a_name_with_dots_matches_as_the_pattern_that_it_is(entries: list[str], name: str) -> None:
    found = Entries(entries).first(name)
    matching = [entry for entry in entries if compile_java([entry]).matches(name)]
    assert found in matching if matching else found is None
    assert name not in matching or found == name


def test_long_lists_are_taken_at_once() -> None:
    names = tuple(f"shop.team{number % 97}.orders-{number}" for number in range(10_000))
    change = Change(names)
    began = time.monotonic()
    act = decode_act(act_key("1"), encode_act(Act(ListKind.TOPICS, change, 1, "ann@host")))
    found = ListedFilter(NameFilter(()), act.change.on(NO_LISTS))
    assert problems_of(change) == ()
    assert not any(found.matches(f"shop.other-{number}") for number in range(100))
    assert time.monotonic() - began < 2.0, "0.1 s on a machine that does nothing else, compiled it was 10 s"


def test_a_topic_that_the_list_takes_is_explained_by_its_entry() -> None:
    found = ListedFilter(NameFilter(()), Lists(("t.*",), ("t2",)))
    policy = DefaultReplicationPolicy(".", ".")
    taken, left = (select(name, found, policy, "B", heartbeats_replicated=False) for name in ("t1", "t2"))
    assert (taken.reason, taken.pattern) == (SelectionReason.INCLUDED, "t.*")
    assert (left.reason, left.pattern) == (SelectionReason.EXCLUDED, "t2")
    assert all("allow list" in RULES[kind] for kind in ListKind)
