"""The pages of docs/procedures can be run as they are; tests/broker/test_procedures.py runs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.procedures import INDEX, Command, Fault, PageFile, is_as_shown, pages, read_page, words_of
from tests.unit.parsing import PROGRAMS, parsed

SECTIONS = ("When", "Files", "Steps", "How to check", "What can go wrong", "How to go back")
"""Of every page, in this order; others may come between and after."""
PAGE = """# A title

```properties srm.properties
clusters = a, b
```

```console
$ srm-control status \\
    --config srm.properties | sort > out.txt 2>&1 &
a  b
$ true
```

<!-- broker-a: kill -->

```console until exit=3
$ srm-control losses --config f
```

```text
a → b
```
"""


def test_a_page_is_its_files_commands_and_faults(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    assert read_page(path).steps == (
        PageFile("srm.properties", "clusters = a, b\n"),
        Command(8, "srm-control status \\\n    --config srm.properties | sort > out.txt 2>&1 &", ("a  b",)),
        Command(11, "true", ()),
        Fault("broker-a", "kill"),
        Command(17, "srm-control losses --config f", (), 3, True),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```\n$ true\n```\n", "x.md:1: text, properties NAME or console, not nothing"),
        ("```properties\na = 1\n```\n", "x.md:1: text, properties NAME or console, not properties"),
        ("```console often\n$ true\n```\n", "x.md:1: only until and exit=N"),
        ("\n```console\nprinted\n```\n", "x.md:2: the block begins with no command"),
        ("```console\n$ true\n", "x.md:1: the block is not closed"),
        ("<!-- broker-a: pause -->\n", "x.md:1: not a broker and kill or start"),
    ],
)
def test_what_is_not_of_the_form_is_told_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "x.md"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(complaint)):
        read_page(path)


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("a  b", "a b", True),
        ("a b", "a c", False),
        ("", "a", False),
        ("a", "", False),
        ("at 2026-01-02T03:04:05Z pid 7", "at 2026-11-25T14:48:28+00:00 pid 12345", True),
        ("3 records in 4.1 s", "3 records in 0.5 s", True),
        ("3 records in 4.1 s", "4 records in 4.1 s", False),
        ("a (host:1) x", "a … x", True),
        ("a", "a …", False),
        ("a (b", "a.(b", False),
        ("a\nb\nc", "a\n...\nc", True),
        ("a\nc", "a\n...\nc", True),
        ("a\nb", "a\n...\nc", False),
    ],
)
def test_only_what_differs_from_run_to_run_may_differ(printed: str, shown: str, same: bool) -> None:
    assert is_as_shown(printed.splitlines(), shown.splitlines()) is same


def test_a_line_of_the_shell_is_split_into_programs() -> None:
    line = "printf 'a\\nb' | srm-control x --flow 'a->b' > out 2>&1 && srm-driver < in 2> log &"
    assert list(words_of(line)) == [["printf", "a\\nb"], ["srm-control", "x", "--flow", "a->b"], ["srm-driver"]]


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_a_page_answers_the_usual_questions(path: Path) -> None:
    titles = re.findall(r"^## (.*)$", path.read_text(), re.MULTILINE)
    assert [title for title in titles if title in SECTIONS] == list(SECTIONS)


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_a_page_is_in_the_index_and_its_commands_are_ours(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"]({path.name})" in INDEX.read_text()
    page = read_page(path)
    can_fail = [any(line.strip(" …") not in ("", "...") for line in each.printed) for each in page.commands]
    assert [each.line for each, can in zip(page.commands, can_fail, strict=True) if each.printed and not can] == []
    monkeypatch.chdir(tmp_path)
    for step in page.steps:
        if isinstance(step, PageFile):
            Path(step.name).write_text(step.text)
    lines = [words for command in page.commands for words in words_of(command.text)]
    ours = [words for words in lines if words[0] in PROGRAMS]
    assert ours
    for words in ours:
        for word in words:
            if re.fullmatch(r"[\w.-]+\.(json|csv)", word):  # made by a command before
                Path(word).touch()
        parsed(words)
