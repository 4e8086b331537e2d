"""What `--help` says below the options of a command: examples, what is read and written, exit codes.

A test parses every example as its command does, so none outlives an option.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from srm_spark.cli.options import DIFFERENT, ERROR, INTERRUPTED, OK, USAGE

_C = TypeVar("_C", bound=click.Command)

NOT_EVERYTHING = "not everything was done; what was not, and why, is printed"
NOTHING = "nothing."


def manual(
    *examples: str,
    reads: str,
    writes: str = NOTHING,
    ok: str = "done",
    error: str = "an error",
    different: str | None = None,
    interrupted: str | None = None,
) -> Callable[[_C], _C]:
    """The end of a command's help. `ok` to `interrupted`: what its exit codes mean; None where it has no such one."""
    texts = {OK: ok, ERROR: error, USAGE: "a wrong command line", DIFFERENT: different, INTERRUPTED: interrupted}
    codes = [f"  {code:<3}  {text}" for code, text in texts.items() if text is not None]
    return _ends_with(_examples(examples), f"Reads: {reads}", f"Writes: {writes}", _kept("Exit codes:", *codes))


def overview(*examples: str) -> Callable[[_C], _C]:
    """The end of the help of a command that has others below it, and does nothing by itself."""
    rest = "--help of each command says what it reads and writes, and its exit codes."
    return _ends_with(_examples(examples), rest)


def _ends_with(*paragraphs: str) -> Callable[[_C], _C]:
    def decorated(command: _C) -> _C:
        command.epilog = "\n\n".join(paragraphs)
        return command

    return decorated


def _examples(examples: tuple[str, ...]) -> str:
    return _kept("Examples:" if len(examples) > 1 else "Example:", *(f"  $ {example}" for example in examples))


def _kept(*lines: str) -> str:
    r"""These lines as they are: click wraps no paragraph behind a \b."""
    return "\n".join(("\b", *lines))
