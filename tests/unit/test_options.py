"""`--config`, `-D` and `--flow` mean the same for every command; what is wrong with them is told in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.cli.driver import run
from srm_spark.cli.options import ERROR, USAGE, pairs

GOOD = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"
FLOW = ("--flow", "A->C")
SIDES = ("--source", "A", "--target", "C")
COMMANDS = [
    (("losses", *FLOW), ERROR),
    (("plan", *FLOW), ERROR),
    (("drift", *FLOW), ERROR),
    (("quarantine", "list", *FLOW), USAGE),
    (("quarantine", "replay", *FLOW), USAGE),
    (("quarantine", "drop", *FLOW), USAGE),
    (("groups", "status", *SIDES), USAGE),
    (("offsets", "--export", *SIDES), USAGE),
    (("offsets", "rebuild", *SIDES), USAGE),
    (("offsets", "translate", "--file", __file__, *SIDES), USAGE),
]
SAID = "A->C is not an enabled flow of these files; enabled: A->B — did you mean A->B?"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "srm.properties"
    path.write_text(GOOD)
    return path


def _commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for below, each in command.commands.items():
            yield from _commands(each, f"{name} {below}".strip())
    else:
        yield name, command


@pytest.mark.parametrize(("words", "code"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_a_flow_that_is_not_there_is_told_in_the_same_words(file: Path, words: tuple[str, ...], code: int) -> None:
    for result in (
        CliRunner().invoke(main, [*words, "--config", str(file)]),
        CliRunner().invoke(main, ["--config", str(file), *words]),
    ):
        assert (result.exit_code, result.output.splitlines()[-1]) == (code, f"Error: {SAID}")


@pytest.mark.parametrize("words", [words for words, _ in COMMANDS], ids=" ".join)
def test_what_is_wrong_with_a_file_comes_before_the_flow(file: Path, words: tuple[str, ...]) -> None:
    file.write_text(GOOD + "offset.lag.max = many\n")
    result = CliRunner().invoke(main, [*words, "--config", str(file)])
    assert (result.exit_code, "got 'many'" in result.output) == (ERROR, True)
    file.write_text(GOOD)
    result = CliRunner().invoke(main, [*words, "--config", str(file), "-D", "offset.lag.max=many"])
    assert (result.exit_code, "-D: offset.lag.max: got 'many'" in result.output) == (ERROR, True)
    result = CliRunner().invoke(main, [*words, "--config", str(file), "-D", "offset.lag.max"])
    assert (result.exit_code, "-D offset.lag.max: write KEY=VALUE" in result.output) == (USAGE, True)


def test_what_a_shell_left_of_a_flow_is_explained(file: Path) -> None:
    result = CliRunner().invoke(main, ["losses", "--config", str(file), "--flow", "A-"])
    assert "A- is not an enabled flow of these files; enabled: A->B — quote it: the shell took the >" in result.output


def test_a_flow_that_is_not_enabled_is_shown_all_the_same(file: Path) -> None:
    assert CliRunner().invoke(main, ["config", "show", str(file), "--flow", "B->A"]).exit_code == 0
    result = CliRunner().invoke(main, ["config", "show", str(file), "--flow", "A->A"])
    assert (result.exit_code, "A->A is not a flow between the clusters" in result.output) == (USAGE, True)


def test_an_option_means_the_same_everywhere() -> None:
    """One name, one way to write it; `--flow` is one flow, or several for a driver."""
    kinds = {"--config": {"files"}, "-D": {"defines"}, "--flow": {"name", "flows"}, "--source": {"source"}}
    for start in (main, run):
        for name, command in _commands(start):
            for each in command.params:
                for option in set(each.opts) & kinds.keys():
                    assert each.name in kinds[option], (name, option)


def test_a_mistyped_key_is_told_without_its_value() -> None:
    for text in ("B.sasl.password s3cret", "B.sasl.password:s3cret"):
        with pytest.raises(click.UsageError, match=r"-D B\.sasl\.password: write KEY=VALUE"):
            pairs([text])
