"""`srm-driver`: runs the flows of a configuration file. Parses, calls the driver, prints; decides nothing."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import click

from srm_spark.config import load_settings
from srm_spark.driver import Driver
from srm_spark.errors import ConfigError, SrmError
from srm_spark.flow.status import FlowState

OK, ERROR, USAGE = 0, 1, 2
_LOOK_SECONDS = 0.2
LOG_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", "configs", multiple=True, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--flow", "flows", multiple=True, metavar="A->B", help="Run this flow only; may be repeated.")
@click.option("-D", "defines", multiple=True, metavar="KEY=VALUE", help="Set a key over what the files say.")
@click.option("--no-wait", is_flag=True, help="Fail a flow that another driver owns instead of waiting for it.")
@click.option(
    "--log-level", default="INFO", show_default=True, type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"])
)
def run(
    configs: tuple[Path, ...], flows: tuple[str, ...], defines: tuple[str, ...], no_wait: bool, log_level: str
) -> None:
    """Replicate the flows of a configuration file until stopped (SIGTERM or Ctrl-C ends the batch in progress)."""
    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)-7s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    asked = _signals()
    try:
        settings = load_settings(configs, dict(define.partition("=")[::2] for define in defines), flows)
        for warning in settings.warnings:
            logging.warning(warning)
        driver = Driver(settings, waits=not no_wait)
    except ConfigError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        raise SystemExit(USAGE) from None
    except SrmError as error:
        click.echo(str(error), err=True)
        raise SystemExit(ERROR) from None

    raise SystemExit(_run(driver, asked))


def _run(driver: Driver, asked: Sequence[int]) -> int:
    """Run until a signal asks to stop; the exit code."""
    try:
        with driver:
            while not asked and not driver.wait(_LOOK_SECONDS):
                pass
            states = [status.state for status in driver.status()]
    except SrmError as error:
        click.echo(str(error), err=True)
        return ERROR
    return ERROR if FlowState.FAILED in states else OK


def _signals() -> Sequence[int]:
    """Collects SIGTERM and SIGINT from now on: one that comes while Spark starts counts, too."""
    asked: list[int] = []

    def ask(number: int, _: FrameType | None) -> None:
        asked.append(number)

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    return asked


def main() -> None:
    """Console script."""
    run()
