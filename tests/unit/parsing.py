"""Command lines of texts, tried with the real parsers."""

from __future__ import annotations

from collections.abc import Sequence

import click
import pytest

from srm_spark.cli.control import main
from srm_spark.cli.driver import run
from srm_spark.cli.service import run as serve

PROGRAMS: dict[str, click.Command] = {"srm-control": main, "srm-driver": run, "srm-service": serve}


def parsed(words: Sequence[str]) -> list[click.Command]:
    """The commands that a line names, one in the other, all parsed and none run. Raises ClickException."""
    found: list[click.Command] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(click.Context, "invoke", lambda context, *_, **__: found.append(context.command))
        PROGRAMS[words[0]].main(list(words[1:]), words[0], standalone_mode=False)
    return found
