"""Filters and the selection of topics."""

from __future__ import annotations

import pickle
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.filters import NameFilter, Selection, SelectionReason, is_replicated, select, split_list
from srm_spark.core.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from srm_spark.errors import PatternError

DEFAULT_EXCLUDE = (r"mm2.*\.internal", r".*\.replica", "__.*")
EVERYTHING = NameFilter((".*",), DEFAULT_EXCLUDE)
NOTHING = NameFilter(())
DOTS = DefaultReplicationPolicy()
OPEN = DefaultReplicationPolicy(internal_excluded=False)
IDENTITY = IdentityReplicationPolicy(source_alias="A")
Reason = SelectionReason


@pytest.mark.parametrize(
    ("include", "exclude", "takes", "leaves"),
    [
        ((), (), [], ["", "a"]),
        (("a",), (), ["a"], ["", "ab", "ba", "A"]),
        (("a", "b.*"), (), ["a", "b", "bc"], ["ab"]),
        ((".*",), ("a",), ["b", "aa"], ["a"]),
        (("a",), ("a",), [], ["a"]),
        ((".*",), DEFAULT_EXCLUDE, ["orders", "mm2-x"], ["mm2-x.internal", "a.replica", "__offsets"]),
    ],
)
def test_exclude_wins_and_an_empty_include_takes_nothing(
    include: tuple[str, ...], exclude: tuple[str, ...], takes: list[str], leaves: list[str]
) -> None:
    name_filter = NameFilter(include, exclude)
    assert [name for name in takes + leaves if name_filter.matches(name)] == takes


@given(
    st.lists(st.sampled_from(["a", "b.*", ".*c", "[ab]+", "(?:ab|c)*"]), max_size=3),
    st.lists(st.sampled_from(["a", "b.*", ".*c"]), max_size=2),
    st.text("abc", max_size=4),
)
def test_filters_agree_with_one_pattern_at_a_time(include: list[str], exclude: list[str], name: str) -> None:
    name_filter = NameFilter(tuple(include), tuple(exclude))
    included = [pattern for pattern in include if re.fullmatch(pattern, name)]
    excluded = [pattern for pattern in exclude if re.fullmatch(pattern, name)]
    assert name_filter.matches(name) is (bool(included) and not excluded)
    assert name_filter.included_by(name) == next(iter(included), None)
    assert name_filter.excluded_by(name) == next(iter(excluded), None)


def test_filters_with_the_same_patterns_are_equal_and_travel() -> None:
    copy = pickle.loads(pickle.dumps(EVERYTHING))
    assert copy == EVERYTHING == NameFilter((".*",), DEFAULT_EXCLUDE)
    assert copy.matches("orders")
    assert repr(NOTHING) == "NameFilter(include=(), exclude=())"


def test_a_bad_pattern_is_named_wherever_it_stands() -> None:
    with pytest.raises(PatternError, match=r"pattern '\*-x'"):
        NameFilter((".*",), ("a", "*-x"))


def test_ten_thousand_topics_are_filtered_at_once() -> None:
    name_filter = NameFilter(tuple(f"team{n}\\..*" for n in range(50)), DEFAULT_EXCLUDE)
    topics = [f"team{n % 100}.topic-{n}" for n in range(10_000)]
    start = time.perf_counter()
    taken = sum(map(name_filter.matches, topics))
    assert taken == 5_000
    assert time.perf_counter() - start < 2  # 0.1 s on a laptop; compiling per name takes minutes


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", ()),
        ("  ", ()),
        ("a", ("a",)),
        (" a , b.* ,c ", ("a", "b.*", "c")),
        ("a,b,a", ("a", "b")),
        ("a b", ("a b",)),
        ("x{1,3}", ("x{1", "3}")),
    ],
)
def test_lists_are_split_at_commas(text: str, entries: tuple[str, ...]) -> None:
    assert split_list(text) == entries


@pytest.mark.parametrize("text", ["a,,b", ",", "a,", ",a", "a, ,b"])
def test_empty_entries_are_refused(text: str) -> None:
    with pytest.raises(PatternError, match="extra comma"):
        split_list(text)


@pytest.mark.parametrize(
    ("topic", "topic_filter", "policy", "heartbeats", "expected"),
    [
        ("orders", EVERYTHING, DOTS, True, Selection("orders", Reason.INCLUDED, ".*")),
        ("orders", NOTHING, DOTS, True, Selection("orders", Reason.NOT_INCLUDED)),
        ("x.replica", EVERYTHING, DOTS, True, Selection("x.replica", Reason.EXCLUDED, r".*\.replica")),
        ("B.orders", EVERYTHING, DOTS, True, Selection("B.orders", Reason.CYCLE)),
        ("C.B.orders", EVERYTHING, DOTS, True, Selection("C.B.orders", Reason.CYCLE)),
        ("A.orders", EVERYTHING, DOTS, True, Selection("A.orders", Reason.INCLUDED, ".*")),
        ("C.orders", EVERYTHING, DOTS, True, Selection("C.orders", Reason.INCLUDED, ".*")),
        ("B.orders", EVERYTHING, IDENTITY, True, Selection("B.orders", Reason.INCLUDED, ".*")),
        ("__offsets", NameFilter(("__.*",)), DOTS, True, Selection("__offsets", Reason.INTERNAL)),
        (".hidden", NameFilter((".*",)), IDENTITY, True, Selection(".hidden", Reason.INTERNAL)),
        ("A.checkpoints.internal", EVERYTHING, DOTS, True, Selection("A.checkpoints.internal", Reason.INTERNAL)),
        ("mm2-x.internal", NameFilter(("mm2.*",)), DOTS, True, Selection("mm2-x.internal", Reason.INTERNAL)),
        ("__alerts", NameFilter(("__.*",)), OPEN, True, Selection("__alerts", Reason.INCLUDED, "__.*")),
        ("__alerts", NameFilter(("__.*",), ("__.*",)), OPEN, True, Selection("__alerts", Reason.EXCLUDED, "__.*")),
        (".hidden", NameFilter((".*",)), OPEN, True, Selection(".hidden", Reason.INCLUDED, ".*")),
        ("__consumer_offsets", NameFilter((".*",)), OPEN, True, Selection("__consumer_offsets", Reason.INTERNAL)),
        ("mm2-x.internal", NameFilter((".*",)), OPEN, True, Selection("mm2-x.internal", Reason.INTERNAL)),
        ("A.checkpoints.internal", EVERYTHING, OPEN, True, Selection("A.checkpoints.internal", Reason.INTERNAL)),
        ("heartbeats", NOTHING, DOTS, True, Selection("heartbeats", Reason.HEARTBEATS)),
        ("heartbeats", NameFilter((".*",), ("heart.*",)), DOTS, True, Selection("heartbeats", Reason.HEARTBEATS)),
        ("heartbeats", NOTHING, DOTS, False, Selection("heartbeats", Reason.NOT_INCLUDED)),
        ("heartbeats", EVERYTHING, DOTS, False, Selection("heartbeats", Reason.INCLUDED, ".*")),
        ("C.heartbeats", NOTHING, DOTS, True, Selection("C.heartbeats", Reason.HEARTBEATS)),
        ("B.heartbeats", NOTHING, DOTS, True, Selection("B.heartbeats", Reason.CYCLE)),
        ("B.heartbeats", NOTHING, IDENTITY, True, Selection("B.heartbeats", Reason.CYCLE)),
        (
            "us-west.heartbeats",
            NOTHING,
            DefaultReplicationPolicy("_"),
            True,
            Selection("us-west.heartbeats", Reason.NOT_INCLUDED),
        ),
    ],
)
def test_selection_says_why(
    *, topic: str, topic_filter: NameFilter, policy: ReplicationPolicy, heartbeats: bool, expected: Selection
) -> None:
    assert select(topic, topic_filter, policy, "B", heartbeats) == expected
    flows = expected.reason in (Reason.INCLUDED, Reason.HEARTBEATS)
    assert expected.is_replicated is flows
    assert is_replicated(topic, topic_filter, policy, "B", heartbeats) is flows


@given(
    st.lists(st.sampled_from(["A", "B", "C", "t", "heartbeats", "__x", "mm2", "checkpoints", "internal", ""])),
    st.sampled_from([EVERYTHING, NOTHING, NameFilter(("A.*",))]),
    st.sampled_from([DOTS, IDENTITY]),
    st.booleans(),
)
def test_reason_and_verdict_agree(
    pieces: list[str], topic_filter: NameFilter, policy: ReplicationPolicy, heartbeats: bool
) -> None:
    topic = ".".join(pieces)
    selection = select(topic, topic_filter, policy, "B", heartbeats)
    assert selection.is_replicated is is_replicated(topic, topic_filter, policy, "B", heartbeats)


def test_a_selection_reads_as_a_sentence() -> None:
    selection = select("x.replica", EVERYTHING, DOTS, "B", True)
    assert str(selection) == r"x.replica is excluded by the topic filter (.*\.replica)"
    assert str(select("B.t", EVERYTHING, DOTS, "B", True)) == "B.t has already been on the target"
