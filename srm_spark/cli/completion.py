"""`completion` of srm-control, srm-driver and srm-service: what lets a shell complete commands, options and files.

Click's own: its script asks the program at each Tab, by a variable of the environment.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from srm_spark.cli.manual import manual

SHELLS = ("bash", "zsh", "fish")


def completion_of(program: str) -> click.Command:
    """The command that prints the script for a program of this name."""

    @manual(
        f"{program} completion bash > ~/.local/share/bash-completion/completions/{program}",
        f"{program} completion zsh",
        f"{program} completion fish > ~/.config/fish/completions/{program}.fish",
        reads="nothing, also not when the shell completes.",
        writes="the script to stdout.",
    )
    @click.command("completion", help=_HELP.format(program=program))
    @click.argument("shell", type=click.Choice(SHELLS))
    @click.pass_context
    def completion(context: click.Context, *, shell: str) -> None:
        kind = get_completion_class(shell)
        assert kind is not None, shell
        script = kind(context.find_root().command, {}, program, variable(program)).source()
        click.echo(script, nl=False)

    return completion


def variable(program: str) -> str:
    """What the script asks a program of this name by, as click calls it."""
    return f"_{program}_COMPLETE".replace("-", "_").upper()


_HELP = """Prints a script that lets a shell complete commands, options, their choices, and files.

To install it, for the next shell that starts:

\b
  bash 4.4 or newer, in ~/.bashrc:
    eval "$({program} completion bash)"
  zsh, in ~/.zshrc, behind compinit:
    eval "$({program} completion zsh)"
  fish:
    {program} completion fish > ~/.config/fish/completions/{program}.fish

{program} must be on the PATH. Where bash-completion is installed, a file named {program} in its folder for users does
as well, and is read at the first Tab only.
"""
