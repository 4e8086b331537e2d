"""Options that several commands share, each declared once, and what their values mean."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from srm_spark import __version__
from srm_spark.config.load import Loaded, load
from srm_spark.config.settings import FlowSettings, Settings
from srm_spark.config.spelling import did_you_mean
from srm_spark.core.filters import NameFilter, split_list
from srm_spark.errors import ConfigError, SrmError

_F = TypeVar("_F", bound=Callable[..., Any])

PROGRAM = f"srm-spark {__version__}"
OK, ERROR, USAGE, DIFFERENT, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes of all commands."""

FILE = click.Path(path_type=Path, dir_okay=False)
VERSION = click.version_option(__version__, message=PROGRAM, help="Print the version.")


def config(text: str = "As for srm-driver; repeatable.", *, required: bool = True) -> Callable[[_F], _F]:
    """The option `--config`; its value is `files`."""
    return click.option("--config", "files", multiple=True, required=required, type=FILE, help=text)


def flow(text: str, *, required: bool = True) -> Callable[[_F], _F]:
    """The option `--flow` of commands that look at one flow; its value is `name`."""
    return click.option("--flow", "name", required=required, metavar="A->B", help=text)


CONFIG = config()
DEFINES = click.option("-D", "defines", multiple=True, metavar="KEY=VALUE", help="Wins over all files; repeatable.")
FLOW = flow("Only this flow.", required=False)
FLOWS = click.option("--flow", "flows", multiple=True, metavar="A->B", help="Only this flow; repeatable.")
SOURCE = click.option("--source", required=True, metavar="ALIAS", help="Where the groups consume.")
TARGET = click.option("--target", required=True, metavar="ALIAS", help="Where they go on.")
GROUP = click.option("--group", "names", default=".*", show_default=True, metavar="LIST", help="Names or regexes.")
TOPIC = click.option(
    "--topic", "names", default=".*", show_default=True, metavar="LIST", help="Source topics, or regexes."
)
YES = click.option("--yes", is_flag=True, help="Do not ask.")


def type_to_go_on(flow: str) -> None:
    """What is asked without `--yes` where much depends on it. Anything but the flow's name ends the command."""
    if click.prompt(f"Type {flow} to go on", err=True) != flow:
        raise click.ClickException("that is not the flow's name; nothing was changed")


def dry_run(text: str = "Print what would be done; change nothing.") -> Callable[[_F], _F]:
    """The option `--dry-run`."""
    return click.option("--dry-run", is_flag=True, help=text)


def output(*formats: str, former: bool = True) -> Callable[[_F], _F]:
    """The option `-o` with these formats, the first one by default; `--format` is its `former` name."""
    names = ("-o", "--output", *(("--format",) if former else ()))
    kind = click.Choice(formats)
    return click.option(*names, "output", type=kind, default=formats[0], show_default=True, help="How to print.")


OUTPUT = output("text", "json")


def print_json(document: object) -> None:
    """What `-o json` prints, for programs."""
    click.echo(json.dumps(document, indent=2))


def several(*options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Options that a few commands have in common, in this order."""

    def decorated(command: _F) -> _F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def refuse_untaken(name: str, taken: Container[str | None], given: Iterable[str]) -> None:
    """Raises UsageError for one of the options `given` in front that the command does not take; --config fits all."""
    for option in given:
        if option != "files" and option not in taken:
            spelled = "-D" if option == "defines" else f"--{option.replace('_', '-')}"
            raise click.UsageError(f"{name} does not take {spelled}")


def pairs(defines: Sequence[str]) -> dict[str, str]:
    """The overrides that `-D` options spell."""
    values = {}
    for define in defines:
        key, separator, value = define.partition("=")
        if not separator or not key.strip():
            raise click.UsageError(f"-D {shown_key(key)}: write KEY=VALUE")
        values[key.strip()] = value
    return values


def shown_key(text: str) -> str:
    """What may be printed of a mistyped `K=V`: no value, which may be a password, whatever stands in front of it."""
    return re.split(r"[\s:=]", text.strip(), maxsplit=1)[0]


def loaded(
    files: Sequence[Path], defines: Sequence[str], *, strict: bool = False, keeps_secrets: bool = False
) -> Loaded:
    """What `--config` and `-D` describe, usable or not."""
    return load(files, pairs(defines), strict=strict, keeps_secrets=keeps_secrets)


def settings_of(
    files: Sequence[Path], defines: Sequence[str], flows: Sequence[str] = (), *, into: Sequence[str] = ()
) -> Settings:
    """What `--config`, `-D` and a repeatable `--flow` describe. Raises ConfigError with everything that is wrong."""
    found = load(files, pairs(defines), flows, into=into)
    if found.report.problems:
        raise ConfigError(found.report.problems)
    return found.settings


def flows_of(
    files: Sequence[Path], defines: Sequence[str], name: str | None = None, *, exit_code: int = USAGE
) -> tuple[FlowSettings, ...]:
    """The enabled flows of `--config` and `-D`, or the one of an optional `--flow`. Raises as `flow_of`."""
    return flows_in(settings_of(files, defines), name, exit_code=exit_code)


def flows_in(settings: Settings, name: str | None, *, exit_code: int = USAGE) -> tuple[FlowSettings, ...]:
    """The same of what was read already."""
    return settings.flows if name is None else (flow_in(settings, name, exit_code=exit_code),)


def flow_of(files: Sequence[Path], defines: Sequence[str], name: str, *, exit_code: int = USAGE) -> FlowSettings:
    """The enabled flow that `--config`, `-D` and `--flow` (or `--source` and `--target`) describe.

    Raises ConfigError; a flow that is not there ends the command with `exit_code`.
    """
    return flow_in(settings_of(files, defines), name, exit_code=exit_code)


def flow_in(settings: Settings, name: str, *, exit_code: int = USAGE) -> FlowSettings:
    """The same of what was read already."""
    flows = {str(one.flow): one for one in settings.flows}
    if name in flows:
        return flows[name]
    raise unknown_flow(name, flows, exit_code)


def unknown_flow(
    name: str,
    known: Mapping[str, object],
    exit_code: int = USAGE,
    what: str = "an enabled flow of these files; enabled",
) -> click.ClickException:
    """A flow that is none of the `known` ones: what to tell, and the exit code."""
    # What the shell leaves of --flow A->B; the rest went into a file named B.
    hint = "quote it: the shell took the >" if name.endswith("-") else did_you_mean(name, known)
    text = f"{name} is not {what}: {', '.join(known) or 'none'}"
    whole = f"{text} — {hint}" if hint else text
    return click.UsageError(whole) if exit_code == USAGE else click.ClickException(whole)


def topics_of(names: str) -> NameFilter:
    """The topics that `--topic` takes."""
    return NameFilter(split_list(names), ())


@contextmanager
def told() -> Iterator[None]:
    """An error of ours within this ends the command with its sentence and exit code 1."""
    try:
        yield
    except SrmError as error:
        raise click.ClickException(str(error)) from error
