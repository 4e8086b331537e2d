"""Options that several commands share, and what their values mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from srm_spark import __version__

PROGRAM = f"srm-spark {__version__}"
OK, ERROR, USAGE, DIFFERENT, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes of all commands."""

FILE = click.Path(path_type=Path, dir_okay=False)
VERSION = click.version_option(__version__, message=PROGRAM, help="Print the version.")
FLOWS = click.option("--flow", "flows", multiple=True, metavar="A->B", help="Only this flow; repeatable.")
DEFINES = click.option("-D", "defines", multiple=True, metavar="KEY=VALUE", help="Wins over all files; repeatable.")


def pairs(defines: Sequence[str]) -> dict[str, str]:
    """The overrides that `-D` options spell."""
    found = {}
    for define in defines:
        key, separator, value = define.partition("=")
        if not separator or not key.strip():
            raise click.UsageError(f"-D {key}: write KEY=VALUE")
        found[key.strip()] = value
    return found
