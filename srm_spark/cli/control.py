"""`srm-control`: commands for people. They render what the packages below report and decide nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from srm_spark.cli.clients import CLIENTS
from srm_spark.cli.completion import completion_of
from srm_spark.cli.interrupts import InterruptedGroup
from srm_spark.cli.later import Later
from srm_spark.cli.manual import overview
from srm_spark.cli.options import VERSION, refuse_untaken
from srm_spark.cli.options import config as config_option

_COMMANDS = {
    "apply": ("plan", "apply"),
    "bundle": ("bundle", "bundle"),
    "config": ("config", "config"),
    "deploy": ("deploy", "deploy"),
    "drift": ("plan", "drift"),
    "drivers": ("drivers", "drivers"),
    "explain": ("explain", "explain"),
    "failback": ("moves", "failback"),
    "failover": ("moves", "failover"),
    "groups": ("groups", "groups"),
    "history": ("commands", "history"),
    "losses": ("losses", "losses"),
    "offsets": ("groups", "offsets"),
    "pause": ("commands", "pause"),
    "plan": ("plan", "plan"),
    "quarantine": ("quarantine", "quarantine"),
    "restart": ("commands", "restart"),
    "resume": ("commands", "resume"),
    "reverse-checkpointed-topics": ("lists", "reverse_checkpointed_topics"),
    "statement": ("statements", "statement"),
    "status": ("status", "status"),
    "switchover": ("moves", "switchover"),
    "topics": ("lists", "topics"),
    "verify": ("verify", "verify"),
    "verify-statement": ("statements", "verify_statement"),
}


@overview(
    "srm-control config validate srm.properties",
    "srm-control status --config srm.properties",
    "srm-control topics --config srm.properties --source A --target B --add orders",
)
@click.group(cls=InterruptedGroup, commands=Later(_COMMANDS), context_settings={"help_option_names": ["-h", "--help"]})
@config_option("For every command below that has it, too; repeatable.", required=False)
@CLIENTS
@VERSION
@click.pass_context
def main(context: click.Context, /, **options: Any) -> None:
    """Looks at and steers srm-spark. Options that a command has, too, may stand in front of it, as in SRM's scripts.

    Ctrl-C ends each command with exit code 130, within seconds, also where a cluster does not answer.
    """
    given = {name: value for name, value in options.items() if value}
    command = main.commands.get(context.invoked_subcommand or "")
    if command is not None:
        refuse_untaken(str(context.invoked_subcommand), _options(command), given)
        context.default_map = {str(command.name): _defaults(command, given)}


def _options(command: click.Command) -> set[str | None]:
    """Names of its options, and of those of all below it."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return {each.name for each in command.params}.union(*map(_options, below))


def _defaults(command: click.Command, values: Mapping[str, Any]) -> dict[str, Any]:
    """These values for every option of such a name, of the command and of all below it."""
    own = {each.name: values[each.name] for each in command.params if each.name in values}
    below = command.commands if isinstance(command, click.Group) else {}
    return {**own, **{name: _defaults(each, values) for name, each in below.items()}}


main.add_command(completion_of("srm-control"))
