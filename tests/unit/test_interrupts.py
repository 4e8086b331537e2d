"""Ctrl-C amid a call into the client library is Ctrl-C, whatever the library makes of it."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from srm_spark.cli.interrupts import InterruptedGroup, heard, interrupted_with
from srm_spark.cli.options import INTERRUPTED


def amid_a_call() -> None:
    """What Python raises where a function of C returned a result although a signal's handler had raised."""
    raise SystemError("returned a result with an exception set") from KeyboardInterrupt()


@click.group(cls=InterruptedGroup)
def root() -> None:
    """All commands."""


@root.command()
def asks() -> None:
    """Ask a cluster."""
    amid_a_call()


@root.command()
def changes() -> None:
    """Change a cluster."""
    with interrupted_with("it may count"):
        amid_a_call()


@root.command()
def fails() -> None:
    """Fail as a library with a defect does."""
    raise SystemError("a defect") from ValueError()


@pytest.mark.parametrize(("command", "said"), [("asks", "interrupted\n"), ("changes", "interrupted; it may count\n")])
def test_a_call_that_was_interrupted_ends_a_command_as_ctrl_c_does(command: str, said: str) -> None:
    done = CliRunner().invoke(root, [command])
    assert (done.exit_code, done.stderr) == (INTERRUPTED, f"\n{said}")


def test_a_defect_of_a_library_is_not_taken_for_ctrl_c() -> None:
    done = CliRunner().invoke(root, ["fails"])
    assert isinstance(done.exception, SystemError)


def test_whoever_handles_ctrl_c_itself_hears_of_it() -> None:
    with pytest.raises(KeyboardInterrupt), heard():
        amid_a_call()
