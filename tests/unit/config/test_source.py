"""Files become entries with their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.config.source import Entry, Sources, read_sources


def _read(tmp_path: Path, text: str, name: str = "a.properties") -> Sources:
    (tmp_path / name).write_bytes(text.encode("utf-8"))
    return read_sources([tmp_path / name], {})


def _found(sources: Sources) -> dict[str, tuple[str, int]]:
    return {key: (entry.value, int(entry.place.rpartition(":")[2])) for key, entry in sources.entries.items()}


def test_properties_follow_javas_rules_and_keep_their_lines(tmp_path: Path) -> None:
    text = (
        "# comment\n\nclusters = A, B\nA->B.enabled : true\n"
        "long = a, \\\n   b\n! other\nu = \\u00e4\\\\.x\nlast value\n"
    )
    assert _found(_read(tmp_path, text)) == {
        "clusters": ("A, B", 3),
        "A->B.enabled": ("true", 4),
        "long": ("a, b", 5),
        "u": ("ä\\.x", 8),
        "last": ("value", 9),
    }


def test_lines_that_mean_something_else_than_they_look_like_are_warnings(tmp_path: Path) -> None:
    sources = _read(
        tmp_path, "topics = a\\.b, c\\\\.d, \\\n  e\nA -> B.enabled = true\nA-> B.x = 1\nu = \\u0041\\ \\=\n"
    )
    assert sources.entries["topics"].value == "a.b, c\\.d, e"
    dropped, key, value = sources.warnings
    assert ":1: topics: the backslash of \\. is dropped" in dropped
    assert dropped.endswith("write \\\\. to keep it")
    assert ":3: A: a blank ends the key" in key
    assert ":4: A->: a blank ends the key" in value


def test_line_numbers_hold_with_carriage_returns(tmp_path: Path) -> None:
    assert _found(_read(tmp_path, "a=1\r\nb=2\r\n\r\nc=3")) == {"a": ("1", 1), "b": ("2", 2), "c": ("3", 4)}


def test_yaml_may_be_nested_or_flat(tmp_path: Path) -> None:
    text = (
        'clusters: [A, B]\nA->B:\n  enabled: true\n  topics.exclude: "x\\\\.y"\n'
        "A->B.topics:\n  - a\n  - b\nnothing:\nn: 010\n"
    )
    assert _found(_read(tmp_path, text, "a.yaml")) == {
        "clusters": ("A,B", 1),
        "A->B.enabled": ("true", 3),
        "A->B.topics.exclude": ("x\\.y", 4),
        "A->B.topics": ("a,b", 5),
        "nothing": ("", 8),
        "n": ("010", 9),
    }


def test_yaml_merge_keys_lose_against_the_mapping_itself(tmp_path: Path) -> None:
    text = "base: &b {x: 1, y: 1}\nA:\n  y: 2\n  <<: *b\n"
    sources = _read(tmp_path, text, "a.yml")
    assert {key: entry.value for key, entry in sources.entries.items() if key.startswith("A")} == {
        "A.x": "1",
        "A.y": "2",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1, [2]]\n", "a list within a list"),
        ("a: ['x,y']\n", "an item with a comma"),
        ("- a\n", "allowed `key: value`"),
        ("a: {b: &x {c: *x}}\n", "contains itself"),
        ("a: b: c\n", "mapping values are not allowed"),
        ("? [a]\n: b\n", "a key that is no text"),
        ("\tx: 1", "cannot start any token"),
    ],
)
def test_what_yaml_cannot_mean_is_a_problem_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    (problem, *_) = _read(tmp_path, text, "a.yaml").problems
    assert words in problem.message
    assert problem.location.endswith(":1")


def test_yaml_that_explodes_is_stopped(tmp_path: Path) -> None:
    lines = ["a0: &a0 {k1: v, k2: v, k3: v, k4: v, k5: v, k6: v, k7: v, k8: v, k9: v}"]
    for level in range(1, 9):
        inner = ", ".join(f"k{number}: *a{level - 1}" for number in range(9))
        lines.append(f"a{level}: &a{level} {{{inner}}}")
    assert len(_read(tmp_path, "\n".join(lines), "a.yaml").entries) < 200_000


def test_unreadable_files_are_problems(tmp_path: Path) -> None:
    (tmp_path / "latin.properties").write_bytes(b"a=\xe4")
    (tmp_path / "bad.properties").write_text("x=1\na=\\u12\n")
    paths = [tmp_path / name for name in ("missing", "latin.properties", "bad.properties")]
    messages = [str(problem) for problem in read_sources([*paths, tmp_path], {}).problems]
    assert len(messages) == 4
    assert "there is no such file" in messages[0]
    assert "UTF-8" in messages[1]
    assert "bad.properties:2: (escape)" in messages[2]


def test_later_files_and_overrides_win_and_losers_are_kept(tmp_path: Path) -> None:
    for name in ("1", "2"):
        (tmp_path / f"{name}.properties").write_text(f"a = {name}\nonly{name} = x\n")
    sources = read_sources([tmp_path / "1.properties", tmp_path / "2.properties"], {"a": "3"})
    assert sources.entries["a"] == Entry("a", "3", "-D")
    assert [entry.value for entry in sources.lost] == ["1", "2"]
    assert {"only1", "only2"} <= set(sources.entries)


def test_a_key_written_twice_in_one_file_is_a_warning(tmp_path: Path) -> None:
    sources = _read(tmp_path, "a=1\nb=1\na=2\nb=1\n")
    assert len(sources.warnings) == 1
    assert "a.properties:3: a: written before at" in sources.warnings[0]
