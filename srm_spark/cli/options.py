"""Options that several commands share, and what their values mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from srm_spark import __version__

_F = TypeVar("_F", bound=Callable[..., Any])

PROGRAM = f"srm-spark {__version__}"
OK, ERROR, USAGE, DIFFERENT, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes of all commands."""

FILE = click.Path(path_type=Path, dir_okay=False)
VERSION = click.version_option(__version__, message=PROGRAM, help="Print the version.")
FLOWS = click.option("--flow", "flows", multiple=True, metavar="A->B", help="Only this flow; repeatable.")
CONFIG = click.option(
    "--config", "files", multiple=True, required=True, type=FILE, help="As for srm-driver; repeatable."
)
DEFINES = click.option("-D", "defines", multiple=True, metavar="KEY=VALUE", help="Wins over all files; repeatable.")


def output(*formats: str) -> Callable[[_F], _F]:
    """The option `-o` with these formats, the first one by default; `--format` is its former name."""
    names = ("-o", "--output", "--format")
    kind = click.Choice(formats)
    return click.option(*names, "output", type=kind, default=formats[0], show_default=True, help="How to print.")


OUTPUT = output("text", "json")


def pairs(defines: Sequence[str]) -> dict[str, str]:
    """The overrides that `-D` options spell."""
    found = {}
    for define in defines:
        key, separator, value = define.partition("=")
        if not separator or not key.strip():
            raise click.UsageError(f"-D {key}: write KEY=VALUE")
        found[key.strip()] = value
    return found
