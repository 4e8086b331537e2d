"""Ctrl-C ends every command: with exit code 130, a sentence, and soon, also where a cluster does not answer.

A call into librdkafka cannot be interrupted: Python hears of the signal when it is over, which may take a minute. What
a command has to know later is on disk before it begins, so that its process may end amid such a call.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from srm_spark.cli.options import INTERRUPTED
from srm_spark.cli.prefixes import PrefixedGroup

_GRACE_SECONDS = 2.0
"""For what a command says at its end."""
_AMID = "interrupted amid a call to a cluster: what was asked for may be done all the same; run it again, or look first"


class InterruptedGroup(PrefixedGroup):
    """The root of all commands."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the whole of a process."""
        with _ending_soon():
            return super().__call__(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """One command. Where it is interrupted and says nothing itself, exit code 130 says it."""
        try:
            with heard():
                return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort) as error:
            if isinstance(error, click.Abort) and not isinstance(error.__context__, KeyboardInterrupt):
                raise  # a question that nobody is there to answer
            click.echo("\ninterrupted", err=True)
            raise SystemExit(INTERRUPTED) from None


@contextmanager
def heard() -> Iterator[None]:
    """Ctrl-C amid a call into confluent-kafka (2.16) is a KeyboardInterrupt, as it is anywhere else.

    Its calls may return a result although the signal has raised, which Python makes a SystemError of.
    """
    try:
        yield
    except SystemError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        raise KeyboardInterrupt from error


@contextmanager
def interrupted_with(text: str) -> Iterator[None]:
    """Where this is interrupted, the command ends with a sentence of its own."""
    try:
        with heard():
            yield
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted; {text}", err=True)
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def _ending_soon() -> Iterator[None]:
    """Behind a SIGINT the process ends within seconds, whatever it waits for."""
    ear, mouth = os.pipe()
    os.set_blocking(mouth, False)
    before = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(ear,), name="interrupts", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)


def _watch(ear: int) -> None:
    while signal.SIGINT not in os.read(ear, 64):
        pass
    time.sleep(_GRACE_SECONDS)
    print(f"\n{_AMID}", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)
