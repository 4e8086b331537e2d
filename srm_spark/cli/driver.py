"""`srm-driver`: runs the flows of a configuration file. Parses, calls the driver, prints; decides nothing."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from srm_spark.cli.completion import completion_of
from srm_spark.cli.doctor import doctor
from srm_spark.cli.first_lines import first_lines
from srm_spark.cli.manual import manual
from srm_spark.cli.options import DEFINES, ERROR, FILE, FLOWS, INTERRUPTED, OK, VERSION, config, pairs, settings_of
from srm_spark.cli.progress_log import ProgressLog
from srm_spark.cli.reload import Reloader
from srm_spark.core.filters import split_list
from srm_spark.driver import JOIN_SECONDS, Driver
from srm_spark.errors import ConfigError, Problem, SrmError
from srm_spark.flow.status import FlowState, FlowStatus

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_SECONDS = 0.2
_GARBAGE = (50_000, 20, 20)
"""Objects that are new, and searches among the younger ones, before there is a search; Python's are 700, 10, 10."""
LOG_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"]


class _Driver(click.Group):
    """SRM and MirrorMaker 2 write `--clusters A B`, with blanks."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_clusters_joined(args, self.commands))


def with_clusters_joined(args: Sequence[str], commands: Collection[str]) -> list[str]:
    """The arguments with what follows `--clusters` in one word, up to the next option or command."""
    joined: list[str] = []
    is_open = False
    for word in args:
        is_open = is_open and not word.startswith("-") and word not in commands
        if is_open and joined[-1] != "--clusters":
            joined[-1] = f"{joined[-1]},{word}"
        else:
            joined.append(word)
        is_open = is_open or word == "--clusters"
    return joined


@manual(
    "srm-driver --config srm.properties",
    "srm-driver --config srm.properties --flow 'A->B' --pid-file srm.pid",
    "srm-driver --config srm.properties --clusters B,C --no-wait",
    reads="topics, configs, ACLs and groups of the sources; what srm-control has done, on the targets.",
    writes="remote topics, internal topics and, where they are synced, ACLs and positions of groups on the targets; "
    "offset syncs on the sources; the Delta table of state.path; the file of --pid-file.",
    ok="stopped in peace",
    error="the configuration cannot be used, a flow failed, or Spark ended",
    interrupted="ended at once by a second Ctrl-C",
)
@click.group(cls=_Driver, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@config("The file to run; repeatable, merged in order.", required=False)
@FLOWS
@click.option("--clusters", multiple=True, metavar="B,C", help="Only flows into these clusters, as SRM's and MM2's.")
@DEFINES
@click.option("--no-wait", is_flag=True, help="Fail a flow that another driver owns instead of waiting for it.")
@click.option(
    "--log-level", default="INFO", show_default=True, type=click.Choice(LOG_LEVELS), help="From where on to log."
)
@click.option(
    "--log-progress", default=60.0, show_default=True, metavar="SECONDS", help="Log each flow's rate and lag; 0: never."
)
@click.option("--pid-file", type=FILE, help="Write the process id there while it runs, for srm-control config apply.")
@VERSION
@click.pass_context
def run(
    context: click.Context,
    *,
    files: tuple[Path, ...],
    flows: tuple[str, ...],
    clusters: tuple[str, ...],
    defines: tuple[str, ...],
    no_wait: bool,
    log_level: str,
    log_progress: float,
    pid_file: Path | None,
) -> None:
    """Replicate the flows of a configuration file until stopped (SIGTERM or Ctrl-C ends the batch in progress).

    SIGHUP reads the file again and restarts the flows that changed; srm-control config apply checks it first.
    """
    if context.invoked_subcommand is not None:
        return
    if not files:
        raise click.MissingParameter(ctx=context, param_hint="'--config'", param_type="option")
    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)-7s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    stop = _Stop()
    pairs(defines)  # a mistake of the command line, before anything else is told
    into = split_list(",".join(clusters))
    reloader = Reloader(lambda: settings_of(files, defines, flows, into=into))
    try:
        settings = settings_of(files, defines, flows, into=into)
        for warning in settings.warnings:
            logging.warning(warning)
        for line in first_lines(settings, log_progress):
            logging.info(line)
        with _pid_in(pid_file):
            code = _run(
                Driver(settings, waits=not no_wait, spark_later=True), stop, reloader, ProgressLog(log_progress)
            )
    except ConfigError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        raise SystemExit(ERROR) from None
    except SrmError as error:
        click.echo(str(error), err=True)
        raise SystemExit(ERROR) from None
    # Python forgets our handlers on its way out, and a signal that is sent once more would decide about the exit code.
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(code)


@contextmanager
def _pid_in(path: Path | None) -> Iterator[None]:
    """Our process id is in that file for as long as this lasts. Raises ConfigError where it cannot be written."""
    if path is not None:
        try:
            path.write_text(f"{os.getpid()}\n")
        except OSError as error:
            reason = f"cannot be written: {error.strerror}"
            raise ConfigError([Problem("--pid-file", str(path), reason, "name a file in a folder of yours")]) from error
    try:
        yield
    finally:
        if path is not None:
            path.unlink(missing_ok=True)


def _run(driver: Driver, stop: _Stop, reloader: Reloader, progress: ProgressLog) -> int:
    """Run until a signal asks to stop; the exit code."""
    if stop.asked:
        driver.stop()
        return OK
    stop.waits_for = _batches(driver.status())
    _search_less_for_cycles()
    try:
        with driver:
            while not stop.asked and not driver.wait(_LOOK_SECONDS):
                reloader.look(driver)
                statuses = driver.status()
                stop.waits_for = _batches(statuses)  # a reload may have ended flows and begun others
                progress.look(statuses)
            states = [status.state for status in driver.status()]
    except SrmError as error:
        click.echo(str(error), err=True)
        return ERROR
    finally:
        progress.log_totals(driver.status())
    return ERROR if FlowState.FAILED in states else OK


def _search_less_for_cycles() -> None:
    """A log full of gaps makes objects by the hundred thousand and batch; Python's searches took half of its time.

    What is there already stays, so nothing is lost by leaving it out; rarer searches find the same, a little later.
    """
    gc.freeze()
    gc.set_threshold(*_GARBAGE)


def _batches(statuses: Sequence[FlowStatus]) -> str:
    flows = ", ".join(str(status.flow) for status in statuses)
    return f"the batch in progress of {flows}, {JOIN_SECONDS:g} s at most"


class _Stop:
    """Takes SIGTERM and Ctrl-C from now on: one that comes while Spark starts counts, too.

    The first one ends in peace and says what it waits for. A second Ctrl-C ends now, as kill -9 would: the next start
    recognises what was written and not recorded. A second SIGTERM is none: who starts a driver may have to repeat it.
    """

    def __init__(self) -> None:
        self.asked = False
        self._has_ended_by_key = False
        self.waits_for = "Spark to start, which takes some seconds"
        for number in _STOP_SIGNALS:
            signal.signal(number, self._ask)

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self._has_ended_by_key and number == signal.SIGINT:
            logging.warning("ended at once: what was written and is not recorded is recognised by the next start")
            os._exit(INTERRUPTED)
        self._has_ended_by_key = self._has_ended_by_key or number == signal.SIGINT
        if not self.asked:
            self.asked = True
            logging.info("stopping: waiting for %s; Ctrl-C again ends now", self.waits_for)


run.add_command(completion_of("srm-driver"))
run.add_command(doctor)


def main() -> None:
    """Console script."""
    run()
