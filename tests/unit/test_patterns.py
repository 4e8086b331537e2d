"""Java patterns in Python: every verdict here was compared with java.util.regex."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core import patterns
from srm_spark.core.patterns import compile_java
from srm_spark.errors import PatternError


def matching(pattern: str, *names: str) -> list[str]:
    compiled = compile_java([pattern])
    return [name for name in names if compiled.matches(name)]


@pytest.mark.parametrize(
    ("pattern", "takes", "leaves"),
    [
        ("orders", ["orders"], ["orders1", "my-orders", "Orders", "orders\n"]),
        ("a|bc", ["a", "bc"], ["ac", "abc"]),
        ("^orders.*$", ["orders", "orders-1"], ["my-orders"]),
        ("a.c", ["abc", "a.c", "aéc"], ["ac", "a\nc", "a\u2028c", "a\x85c"]),
        ("(?s)a.c", ["abc", "a\nc"], ["ac"]),
        ("(?s:a.)c.", ["a\ncx"], ["a\nc\n"]),
        (r"\d\w\s", ["1a ", "1_\t"], ["٣a ", "1é ", "1a\xa0"]),
        (r"\Qa.b*\E+", ["a.b*", "a.b**"], ["axb*", "a.b"]),
        (r"[\Q^]\E]+", ["^]", "]"], ["a"]),
        (r"\p{Alpha}\p{Digit}\p{Punct}", ["a1-", "Z9_"], ["é1-", "a1a"]),
        (r"\P{Lower}\p{Upper}", ["AB", "1B"], ["aB"]),
        (r"[\p{Alnum}_-]+", ["a-1_B"], ["a.b", "é"]),
        (r"\p{L}+\p{Nd}", ["aé1", "ß٣"], ["1", "a-1", "a²"]),
        (r"\pL\p{IsLu}", ["éÉ"], ["ée"]),
        (r"a\hb", ["a b", "a\tb", "a\xa0b"], ["a\nb", "ab"]),
        (r"a\Hb", ["a\nb", "axb"], ["a b"]),
        (r"a\vb", ["a\nb", "a\x0bb"], ["a b"]),
        (r"a\Rb", ["a\r\nb", "a\nb"], ["a\n\rb"]),
        (r"a\z", ["a"], ["a\n"]),
        (r"(?=.*\Z)a\n?", ["a", "a\n"], []),
        (r"\Aa\b-\Bx?", ["a-"], ["a-x"]),
        (r"\Aa\b-\b1", ["a-1"], []),
        ("(?i)Orders", ["orders", "ORDERS"], ["order"]),
        ("a(?i)b|c", ["ab", "aB", "c", "C"], ["Ab", "AB"]),
        ("(a(?i)b|c)d", ["aBd", "Cd"], ["aBD", "Abd"]),
        ("(?i:a)b", ["ab", "Ab"], ["aB"]),
        ("(?i)a(?-i)b(?i)c", ["AbC"], ["ABC"]),
        ("(?i)a(?-i:b|c)d", ["AbD", "acd"], ["ABD"]),
        ("(?i)é", ["é"], ["É"]),
        ("(?<year>[0-9]+)-\\k<year>", ["12-12"], ["12-13"]),
        (r"(a|b)\1", ["aa", "bb"], ["ab"]),
        (r"(a)\11", ["aa1"], ["aa"]),
        ("a{2}|b{1,}|c{0,2}", ["aa", "b", "bbb", "", "cc"], ["a", "ccc"]),
        ("a+?b??", ["aab", "a"], ["b"]),
        ("(?!__).*", ["a", ""], ["__a"]),
        (".*(?<!-test)", ["orders"], ["orders-test"]),
        ("[]a]+", ["]a"], ["b"]),
        ("[^]a]", ["b"], ["]", "a"]),
        ("[a-]+", ["a-"], ["b"]),
        (r"[\w-.]+", ["a-b.c"], ["a+"]),
        (r"[a\-z]+", ["a-z"], ["b"]),
        (r"[+--]+", ["+,-"], ["."]),
        ("[a|~&]+", ["a|~&"], ["b"]),
        (r"\x41\u0042\x{43}\0104\t\e\cA", ["ABCD\t\x1b\x01"], []),
        (r"mm2.*\.internal", ["mm2-offset-syncs.A.internal"], ["mm2xinternal"]),
        (r".*[\-\.]internal", ["a-internal", "a.internal"], ["ainternal"]),
        (r"a\-b\_\#\ ", ["a-b_# "], []),
        ("}]", ["}]"], []),
        ("", [""], ["a"]),
    ],
)
def test_verdicts_are_javas(pattern: str, takes: list[str], leaves: list[str]) -> None:
    assert matching(pattern, *takes, *leaves) == takes


@pytest.mark.skipif(not patterns.HAS_ATOMIC, reason="needs Python 3.11")
def test_possessive_quantifiers_and_atomic_groups_do_not_give_back() -> None:
    assert matching("a*+b|(?>c|cd)e", "aab", "ce", "cde") == ["aab", "ce"]
    assert matching("a*+a", "aa") == []


def test_possessive_quantifiers_need_a_newer_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "HAS_ATOMIC", False)
    for pattern in ("a*+", "(?>a)"):
        with pytest.raises(PatternError, match=r"Python 3\.11"):
            compile_java([pattern])


@pytest.mark.parametrize(
    ("pattern", "construct", "rewrite"),
    [
        ("*", "nothing to repeat", "write .*"),
        ("*.internal", "nothing to repeat", "write .*"),
        ("a|+", "nothing to repeat", ""),
        ("a**", "nothing to repeat", ""),
        ("a{1", "starts no repetition", "split at commas"),
        ("a{,3}", "starts no repetition", ""),
        ("(a", "never closed", ""),
        ("a)", "no opening", ""),
        ("[a", "never closed", ""),
        ("[a-z&&[^b]]", "intersection", "look-ahead"),
        ("[a[b]]", "class within a class", "one class"),
        ("[z-a]", "bad character range", ""),
        (r"[a-\d]", "range ends in a class", ""),
        (r"[\P{Alpha}]", "within a class", "[^\\p"),
        (r"\p{IsGreek}", "not supported", "\\p{L}"),
        (r"\p{L", "not supported", ""),
        (r"(?i)\p{Lu}", "case is ignored", "\\p{L}"),
        (r"\y", "not supported", ""),
        (r"\Ga", "not supported", ""),
        (r"\b{g}", "no anchor", ""),
        ("\\", "ends in a backslash", ""),
        (r"\Qa", "never ended", "\\E"),
        (r"a\E", "not supported", ""),
        (r"\xZZ", "without a number", ""),
        (r"\x{110000}", "no character", ""),
        (r"\1", "not there", ""),
        (r"\k1", "without a name", ""),
        (r"\k<n>", "unknown group name", ""),
        ("(?x)a", "flag 'x'", "leave it out"),
        ("(?U:a)", "flag 'U'", ""),
        ("(?P<n>a)", "unknown group", "(?<name>"),
        ("(?<=a+)b", "look-behind", "simpler"),
    ],
)
def test_what_cannot_be_said_is_refused_with_a_rewrite(pattern: str, construct: str, rewrite: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_java(["fine", pattern])
    assert caught.value.pattern == pattern
    assert construct in caught.value.construct
    assert rewrite in caught.value.rewrite
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "character"),
    [("ab(c", 3), ("(a(b", 3), ("a)", 2), ("ab**", 4), ("a[bc", 2), (r"ab\y", 3), ("[z-a]", None)],
)
def test_what_is_refused_is_told_with_its_place(pattern: str, character: int | None) -> None:
    with pytest.raises(PatternError) as caught:
        compile_java(["fine", pattern])
    assert caught.value.character == character
    assert (f", at character {character} — " in str(caught.value)) == (character is not None)


def test_a_flag_holds_for_the_rest_of_the_list() -> None:
    compiled = compile_java(["a", "(?i)b", "c"])
    assert [name for name in "aAbBcC" if compiled.matches(name)] == ["a", "b", "B", "c", "C"]


def test_back_references_stay_at_the_front_of_a_list() -> None:
    assert compile_java([r"(a)\1", "(b)"]).matches("aa")
    with pytest.raises(PatternError, match="front of the list"):
        compile_java(["(b)", r"(a)\1"])


def test_one_group_name_twice_in_a_list_is_refused() -> None:
    with pytest.raises(PatternError, match="redefinition"):
        compile_java(["(?<n>a)", "(?<n>b)"])


def test_an_empty_list_matches_nothing() -> None:
    assert not compile_java([]).matches("")


@given(st.text(max_size=10), st.text(max_size=10))
def test_quoted_text_matches_itself_only(text: str, other: str) -> None:
    quoted = "\\Q" + text.replace("\\E", "") + "\\E"
    assert matching(quoted, text.replace("\\E", ""), other) in ([text.replace("\\E", "")], [other, other])


# What both languages spell alike.
alike = st.recursive(
    st.sampled_from(["a", "b", "ab", "[ab]", "[^a]", r"\.", "-"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from("*+?")).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=6,
)


@given(st.lists(alike, max_size=3), st.lists(st.text("ab.-", max_size=4), max_size=8))
def test_a_list_matches_where_any_of_its_patterns_does(entries: list[str], names: list[str]) -> None:
    compiled = compile_java(entries)
    for name in names:
        verdicts = [re.fullmatch(entry, name) is not None for entry in entries]
        assert compiled.matches(name) is any(verdicts)
        assert [part.fullmatch(name) is not None for part in compiled.parts] == verdicts
