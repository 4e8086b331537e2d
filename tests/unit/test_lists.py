"""Acts on lists: their bytes, what they add up to, and what nobody may guess."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.lists import (
    NO_LISTS,
    Act,
    Change,
    ListKind,
    Lists,
    ListState,
    act_key,
    change_between,
    decode_act,
    encode_act,
    in_parts,
)
from srm_spark.errors import ActNotUnderstood, CodecError

KEY = act_key("6f0c")
NAMES = st.lists(st.sampled_from(["a", "b", "c.*", "d-1", "t-ü"]), unique=True, max_size=4).map(tuple)
CHANGES = st.builds(Change, NAMES, NAMES, NAMES, NAMES)
LISTS = st.builds(Lists, NAMES, NAMES)
ACTS = st.builds(Act, st.sampled_from(ListKind), CHANGES, st.integers(0, 2**42), st.text(), st.text())


def test_an_act_has_these_bytes() -> None:
    act = Act(ListKind.TOPICS, Change(("t-ü",), ("u",), ("v.*",), ("w",)), 1700, "ann@host", "the shop moves")
    assert KEY == b'["act","6f0c"]'
    assert encode_act(act).decode() == (
        '{"v":1,"kind":"topics","add":["t-ü"],"remove":["u"],"add_deny":["v.*"],"remove_deny":["w"],"at":1700,'
        '"who":"ann@host","why":"the shop moves"}'
    )
    short = Act(ListKind.REVERSE, Change(("t",)), 1, "ann@host")
    assert encode_act(short) == b'{"v":1,"kind":"reverse-checkpointed-topics","add":["t"],"at":1,"who":"ann@host"}'


@given(ACTS)
def test_an_act_is_read_back(act: Act) -> None:
    assert decode_act(KEY, encode_act(act)) == act


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (KEY, None),
        (KEY, b"x"),
        (KEY, b"[]"),
        (KEY, b"[" * 100_000),
        (b"[]", b"{}"),
        (b'["loss","x"]', b'{"v":1,"kind":"topics","at":1,"who":"a"}'),
        (KEY, b'{"v":1,"kind":"topics","at":1}'),
        (KEY, b'{"v":1,"kind":"brokers","at":1,"who":"a"}'),
        (KEY, b'{"v":1,"kind":"topics","at":true,"who":"a"}'),
        (KEY, b'{"v":1,"kind":"topics","at":1,"who":7}'),
        (KEY, b'{"v":1,"kind":"topics","add":"t","at":1,"who":"a"}'),
        (KEY, b'{"v":1,"kind":"topics","add":[""],"at":1,"who":"a"}'),
        (KEY, b'{"v":0,"kind":"topics","at":1,"who":"a"}'),
        (KEY, b'{"v":1,"kind":"topics","at":100000000000000000000,"who":"a"}'),
        (KEY, b'{"v":1,"kind":"topics","at":-1,"who":"a"}'),
    ],
)
def test_garbage_is_no_act(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CodecError) as caught:
        decode_act(key, value)
    assert type(caught.value) is CodecError


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b'{"v":2,"kind":7}', "written by a newer srm-spark (version 2 of its form): upgrade this one"),
        (
            b'{"v":1,"kind":"topics","add":["("],"at":1,"who":"a"}',
            "adds an entry that cannot be used here: pattern '('",
        ),
    ],
)
def test_what_only_another_version_can_read_is_not_passed_over(value: bytes, said: str) -> None:
    with pytest.raises(ActNotUnderstood) as caught:
        decode_act(KEY, value)
    assert said in str(caught.value)


@given(st.lists(ACTS, max_size=8))
def test_the_lists_are_what_the_last_act_on_each_entry_says(acts: list[Act]) -> None:
    state = ListState()
    for act in acts:
        state.take(act)
    for kind in ListKind:
        told: dict[tuple[str, bool], bool] = {}
        for act in (one for one in acts if one.kind is kind):
            change = act.change
            told |= {(entry, False): False for entry in change.remove} | {(entry, False): True for entry in change.add}
            told |= {(entry, True): False for entry in change.remove_deny}
            told |= {(entry, True): True for entry in change.add_deny}
        lists = state.of(kind)
        assert set(lists.allow) == {entry for (entry, is_deny), is_on in told.items() if is_on and not is_deny}
        assert set(lists.deny) == {entry for (entry, is_deny), is_on in told.items() if is_on and is_deny}
        assert len(set(lists.allow)) == len(lists.allow)
        for entry in lists.allow:
            origin = state.origin(kind, entry, is_deny=False)
            assert origin is not None
            assert entry in origin.change.add
    assert state.acts == acts


@given(st.lists(ACTS, max_size=8))
def test_a_log_that_is_read_twice_says_the_same(acts: list[Act]) -> None:
    once, twice = ListState(), ListState()
    for act in acts:
        once.take(act)
    for act in [*acts, *acts]:
        twice.take(act)
    for kind in ListKind:
        for name in ("allow", "deny"):
            assert set(getattr(once.of(kind), name)) == set(getattr(twice.of(kind), name))


@given(LISTS, LISTS)
def test_what_lies_between_two_lists_makes_one_of_the_other(before: Lists, after: Lists) -> None:
    found = change_between(before, after).on(before)
    assert (set(found.allow), set(found.deny)) == (set(after.allow), set(after.deny))
    assert not change_between(after, after)


def test_a_new_entry_goes_behind_the_others() -> None:
    lists = Change(("b", "a")).on(Lists(("c", "b"), ("x",)))
    assert lists == Lists(("c", "b", "a"), ("x",))
    assert Change(remove=("b",), remove_deny=("x",)).on(lists) == Lists(("c", "a"))


@given(ACTS, st.integers(120, 400))
def test_an_act_that_is_too_large_comes_in_parts_that_add_up_to_it(act: Act, limit: int) -> None:
    both = set(act.change.add_deny) & set(act.change.remove_deny)
    act = replace(act, change=replace(act.change, remove_deny=tuple(set(act.change.remove_deny) - both)))
    parts = list(in_parts(act, limit))
    order = ("remove", "add_deny", "add", "remove_deny")
    places = [order.index(name) for part in parts for name in order if getattr(part.change, name)]
    assert places == sorted(places), "what narrows comes first"
    by_parts = Lists(("a", "x"), ("b", "y"))
    for part in parts:
        by_parts = part.change.on(by_parts)
        single = sum(map(len, vars(part.change).values())) <= 1
        assert len(encode_act(part)) <= limit or single
    expected = act.change.on(Lists(("a", "x"), ("b", "y")))
    assert (set(by_parts.allow), set(by_parts.deny)) == (set(expected.allow), set(expected.deny))


def test_an_act_is_told_in_a_line() -> None:
    change = Change(tuple(f"t{number:02}" for number in range(12)), remove=("u",), add_deny=("v",), remove_deny=("w",))
    assert str(Act(ListKind.TOPICS, change, 1, "ann@host", "why not")) == (
        "topics +t00,t01,t02,t03,t04,t05,t06,t07,t08,t09 and 2 more -u deny +v deny -w by ann@host (why not)"
    )
    assert str(Act(ListKind.GROUPS, Change(("g",)), 1, "ann@host")) == "groups +g by ann@host"
    odd = Act(ListKind.GROUPS, Change(("g\n",)), 1, "ann\x1b[31m", "a\nb\ud800")
    assert str(odd) == r"groups +g\n by ann\x1b[31m (a\nb\ud800)"
    assert NO_LISTS.is_empty
    assert str(Change(("a", "b"), ("c",))) == "+a,b -c"
