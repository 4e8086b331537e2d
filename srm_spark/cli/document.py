"""The pages of docs/ that are made from the program: its commands, and its kinds of failure.

`python -m srm_spark.cli.document docs` brings them up to date; a test says when they are not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from srm_spark.cli import control, driver, service
from srm_spark.failure import Effect, FailureKind

_MADE = "Made by `python -m srm_spark.cli.document docs`."
_WIDTH = 100
_EFFECTS = {
    Effect.PAUSES: "the partition (or group) waits and is tried again every minute; all others go on",
    Effect.WAITS: "the partition waits until somebody acts; all others go on",
    Effect.SEARCHES: "what it is about is looked for, and those partitions wait; else the flow retries",
    Effect.STARTS_ANEW: "both sides are looked at again, and the query starts at once",
    Effect.DRAWN_IN: "nothing is wrong with the partition itself; it is tried again with the next batch",
    Effect.RETRIES: "the flow starts again after `flow.retry.delay.ms`",
    Effect.FAILS: "the flow ends, and is not started again",
}


def pages() -> dict[str, str]:
    """Name of a page → its text."""
    return {"commands.md": commands_page(), "failures.md": failures_page()}


def commands_page() -> str:
    """Every command with its options, as `--help` prints them."""
    parts = [
        "# Commands",
        "",
        f"{_MADE} Exit codes: 0 done, 1 an error, 2 a wrong command line, 3 not everything;",
        "with each command stands what they mean there.",
    ]
    for name, command in (("srm-driver", driver.run), ("srm-control", control.main), ("srm-service", service.run)):
        for title, text in _helps(command, name, None):
            parts += ["", f"## {title}", "", "```", text.rstrip(), "```"]
    return "\n".join([*parts, ""])


def _helps(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    context = click.Context(
        command,
        info_name=name,
        parent=parent,
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
        **command.context_settings,
    )
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for each in sorted(command.commands):
            yield from _helps(command.commands[each], each, context)


def failures_page() -> str:
    """Every kind of failure: what it means, what the flow does about it, and what helps."""
    parts = [
        "# Failures",
        "",
        "What a flow does about a failure hangs on its kind. The kind is recorded with progress and in quarantine, and",
        f"its code is in the JSON of the commands; the sentence beside it is for people, and may change. {_MADE}",
        "",
        "| code | what happened | what the flow does | what helps |",
        "|---|---|---|---|",
        *(f"| `{k.value}` | {k.meaning} | {k.effect.value} | {k.remedy} |" for k in FailureKind),
        "",
        "| what the flow does | |",
        "|---|---|",
        *(f"| {effect.value} | {_EFFECTS[effect]} |" for effect in Effect),
    ]
    return "\n".join([*parts, ""])


def main(folder: Path) -> None:
    """Write the pages into `folder`."""
    for name, text in pages().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
