"""Every command shows an example that its parser takes, what it reads and writes, and its exit codes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.cli.manual import manual
from srm_spark.cli.options import ERROR, USAGE
from tests.unit.parsing import PROGRAMS, parsed

FILES = ("srm.properties", "here.json")
"""Of those that examples read, the ones that have to be there."""


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    # With its own settings: a command keeps the names of its help option from the first context that asks for it.
    return click.Context(command, parent, name, max_content_width=200, **command.context_settings)


def _below(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name, command in context.command.commands.items():
            yield from _below(_context(command, name, context))


def _contexts() -> Iterator[click.Context]:
    for name, command in PROGRAMS.items():
        yield from _below(_context(command, name))


CONTEXTS = {context.command_path: context for context in _contexts()}


def examples_of(help_text: str) -> list[list[str]]:
    """The words of each example, without what the shell takes for itself."""
    lines = [line.strip() for line in help_text.splitlines()]
    return [shlex.split(line.removeprefix("$ ").split(" > ")[0]) for line in lines if line.startswith("$ ")]


EXAMPLES = [(path, words) for path, context in CONTEXTS.items() for words in examples_of(context.get_help())]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        Path(name).write_text("clusters = no cluster\n")


@pytest.mark.parametrize("path", CONTEXTS)
def test_the_help_of_a_command_ends_with_what_it_touches_and_how_it_ends(path: str) -> None:
    context = CONTEXTS[path]
    text = context.get_help()
    assert examples_of(text), "give it an example: srm_spark/cli/manual.py"
    is_only_a_name = isinstance(context.command, click.Group) and not context.command.invoke_without_command
    if not is_only_a_name:
        assert [word for word in ("\n  Reads: ", "\n  Writes: ", "\n  Exit codes:\n    0 ") if word not in text] == []
    assert "xit code 3" not in text, "what exit codes mean stands at one place"


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("path", "words"), EXAMPLES, ids=[shlex.join(words) for _, words in EXAMPLES])
def test_an_example_is_a_line_of_its_own_command(path: str, words: list[str]) -> None:
    assert CONTEXTS[path].command in parsed(words)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "words", [words for _, words in EXAMPLES if {"srm-control", "--config"} <= set(words)], ids=shlex.join
)
def test_an_example_makes_sense_as_a_whole(words: list[str]) -> None:
    """Options that go together are looked at before the file, which is unusable here: so nothing is done."""
    result = CliRunner().invoke(main, words[1:])
    assert result.exit_code == ERROR, result.output


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("srm-control losses --config f --flow 'A->B' --since 1", "No such option"),
        ("srm-control losses --config f", "Missing parameter: name"),
        ("srm-control status --config f A", "unexpected extra argument"),
        ("srm-control status --config f -o toml", "is not one of"),
        ("srm-control lossses --config f", "No such command"),
    ],
)
def test_an_example_that_is_outlived_is_told(line: str, complaint: str) -> None:
    with pytest.raises(click.UsageError, match=complaint) as error:
        parsed(shlex.split(line))
    assert error.value.exit_code == USAGE


def test_examples_are_not_wrapped() -> None:
    line = "srm-control " + " ".join(["--reason", "'a long reason'"] * 10)

    @manual(line, reads="nothing.")
    @click.command()
    def command() -> None: ...

    assert f"\n    $ {line}\n" in command.get_help(click.Context(command, terminal_width=80))
