"""`srm-service`: serves what drivers tell of their flows. Parses, loads, calls; decides nothing."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from srm_spark.cli.completion import completion_of
from srm_spark.cli.doctor import answer
from srm_spark.cli.driver import LOG_LEVELS
from srm_spark.cli.manual import manual
from srm_spark.cli.options import (
    DEFINES,
    ERROR,
    OUTPUT,
    VERSION,
    config,
    loaded,
    pairs,
    refuse_untaken,
    settings_of,
    told,
)
from srm_spark.config.keys_process import HISTORY_PATH_KEY
from srm_spark.config.load import load
from srm_spark.config.settings import Settings
from srm_spark.errors import ConfigError, SetupError, SrmError

_TAKEN: dict[str, tuple[str, ...]] = {
    "history": ("files", "defines", "log_level"),
    "doctor": ("files", "defines", "allow_anonymous"),
}
"""What stands in front of a command and counts for it; anything else is refused."""
_EXTRA = ("jwt", "fastapi", "uvicorn", "jinja2", "argon2", "fastapi_offline", "deltalake")


@manual(
    "srm-service --config srm.properties",
    "srm-service --config srm.properties -D service.listen=0.0.0.0:6670 -D service.users.file=users",
    reads="srm-metrics-A.internal and srm-meta.internal on each target; srm-service.internal on those of "
    "service.remote.targets; the files of service.users.file and service.tls.certificate.",
    writes="srm-service.internal on each target, where other machines reach it.",
    ok="stopped in peace",
    error="the configuration cannot be used, or the address is taken",
)
@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@config("The file whose flows to tell of; repeatable, merged in order.", required=False)
@DEFINES
@click.option("--allow-anonymous", is_flag=True, help="Let everybody ask who reaches the address.")
@click.option(
    "--log-level", default="INFO", show_default=True, type=click.Choice(LOG_LEVELS), help="From where on to log."
)
@VERSION
@click.pass_context
def run(
    context: click.Context,
    *,
    files: tuple[Path, ...],
    defines: tuple[str, ...],
    allow_anonymous: bool,
    log_level: str,
) -> None:
    """Serve what drivers tell of their flows: SRM's REST API, pages for people and Prometheus, until stopped.

    It listens on 127.0.0.1:6670. Another address needs users, or --allow-anonymous. Who has a role for it may change
    flows, too, as srm-control does. Options that a command has, too, may stand in front of it.
    """
    if context.invoked_subcommand is not None:
        given = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        refuse_untaken(context.invoked_subcommand, _TAKEN.get(context.invoked_subcommand, ()), given)
        return
    if not files:
        raise click.MissingParameter(ctx=context, param_hint="'--config'", param_type="option")
    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)-7s %(message)s", stream=sys.stderr)
    try:
        settings = _settings(files, defines)
        whole = load(files, pairs(defines), into=list(settings.clusters))  # a way back may lead into any of them
        if whole.report.problems:
            raise ConfigError(whole.report.problems)
        _api("server").serve(settings.service, settings.flows, whole, allow_anonymous=allow_anonymous)
    except ConfigError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        raise SystemExit(ERROR) from None
    except SrmError as error:
        click.echo(str(error), err=True)
        raise SystemExit(ERROR) from None


def _settings(files: tuple[Path, ...], defines: tuple[str, ...]) -> Settings:
    """Whatever this machine's driver writes to: the service tells of what it is asked to."""
    first = loaded(files, defines).settings
    settings = settings_of(files, defines, into=first.service.targets or list(first.clusters))
    for warning in settings.warnings:
        logging.warning(warning)
    return settings


@manual(
    "srm-service history --config srm.properties",
    reads="srm-metrics-A.internal on each target.",
    writes="the folder of service.history.path.",
    ok="stopped in peace",
    error="the configuration cannot be used, no folder is named, or Spark does not start or has ended",
)
@click.command()
@config("The file whose flows to keep the history of; repeatable, merged in order.", required=False)
@DEFINES
@click.option(
    "--log-level", default="INFO", show_default=True, type=click.Choice(LOG_LEVELS), help="From where on to log."
)
@click.pass_context
def history(context: click.Context, *, files: tuple[Path, ...], defines: tuple[str, ...], log_level: str) -> None:
    """Write the history of all flows, in a process of its own or by spark-submit, until stopped.

    The service does the same by itself, unless service.history.embedded = false.
    """
    before = context.parent.params if context.parent else {}
    files, defines = _with_those_in_front(context, files, defines)
    if before and context.get_parameter_source("log_level") is ParameterSource.DEFAULT:
        log_level = before["log_level"]
    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)-7s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with told():
        settings = _settings(files, defines)
        if settings.service.history is None:
            raise SetupError("no history is kept", f"set {HISTORY_PATH_KEY} to a folder")
        import_module("srm_spark.past.writing").write_history(settings.flows, settings.service.history, stop)


@manual(
    "srm-service user alice > users",
    "srm-service user bob --role operator --role 'A->B=admin'",
    reads="the password, twice, from the terminal.",
    ok="the line is printed",
)
@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="[A->B=]ROLE",
    help="none, viewer (default), operator or admin: everywhere, or of one flow and, alone, no other; repeatable.",
)
def user(name: str, roles: tuple[str, ...]) -> None:
    """Print a line for service.users.file: NAME, the argon2 hash of a password, which is asked for, and the roles."""
    if not name or ":" in name or not name.isprintable() or name != name.strip():
        raise click.UsageError(f"{name!r} cannot be a user's name: no colon, and no blanks around it")
    with told():
        users = _api("users")
        try:
            _api("roles").roles_of(" ".join(roles))
        except ValueError as error:
            raise click.UsageError(f"--role: {error}") from error
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        click.echo(users.line_of(name, password, " ".join(roles)))


@manual(
    "srm-service doctor --config srm.properties",
    "srm-service doctor --config srm.properties -o json",
    reads="the files that the configuration names; srm-metrics-A.internal and srm-meta.internal on each target.",
    ok="nothing failed; unknown is not failed",
    error="something failed, and its remedy is printed",
)
@click.command()
@config("The file to check; repeatable, merged in order.", required=False)
@DEFINES
@click.option("--allow-anonymous", is_flag=True, help="As for the service: let everybody ask who reaches the address.")
@OUTPUT
@click.pass_context
def doctor(
    context: click.Context, *, files: tuple[Path, ...], defines: tuple[str, ...], allow_anonymous: bool, output: str
) -> None:
    """Check what the service needs before it starts: address, users, certificate, folders, targets; change nothing."""
    before = context.parent.params if context.parent else {}
    files, defines = _with_those_in_front(context, files, defines)
    is_open = allow_anonymous or before.get("allow_anonymous", False)
    answer(_api("doctor").examine_service(files, pairs(defines), allow_anonymous=is_open), output)


def _with_those_in_front(
    context: click.Context, files: tuple[Path, ...], defines: tuple[str, ...]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Files and keys, those of the command behind those in front of it, over which they win. At least one file."""
    before = context.parent.params if context.parent else {}
    files = (*before.get("files", ()), *files)
    if not files:
        raise click.MissingParameter(ctx=context, param_hint="'--config'", param_type="option")
    return files, (*before.get("defines", ()), *defines)


def _api(module: str) -> Any:
    """A module of the API, which needs the extra. Ends the command where that is missing."""
    try:
        return import_module(f"srm_spark.api.{module}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        text = f"srm-service needs {error.name}, which is not installed: pip install 'srm-spark[api]'"
        raise click.ClickException(text) from error


run.add_command(completion_of("srm-service"))
run.add_command(doctor)
run.add_command(history)
run.add_command(user)


def main() -> None:
    """Console script."""
    run()
