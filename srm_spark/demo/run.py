"""`make demo`: two real clusters, a flow between them, and the proof that every record of the copy is the same.

Everything that it starts (brokers, Spark's JVM) and writes (data, Spark's scratch files) lies in one temporary folder
and ends with it, however the demo ends. What Spark and the clients have to say goes to a log file.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TextIO

import click

from srm_spark.cli.interrupts import heard
from srm_spark.cli.options import DEFINES, DIFFERENT, ERROR, FILE, INTERRUPTED, OK, USAGE, pairs
from srm_spark.config import load_settings
from srm_spark.core.lists import Act, Change, ListKind
from srm_spark.core.model import Flow
from srm_spark.core.wording import count
from srm_spark.demo.applications import GROUP, WAITING, Applications
from srm_spark.demo.samples import SAMPLE_TOPICS, Samples
from srm_spark.demo.view import View
from srm_spark.demo.web import served
from srm_spark.driver import Driver
from srm_spark.errors import ConfigError, FlowError, Problem, SrmError
from srm_spark.flow.clusters import target_of
from srm_spark.flow.lag import LagReader
from srm_spark.flow.status import FlowState, FlowStatus
from srm_spark.flow.topics.list_writer import ListWriter
from srm_spark.jars import fetch, java_command
from srm_spark.jars.cache import cache_dir
from srm_spark.kafka.compare import PartitionComparison, compare_topics
from srm_spark.testing import LocalKafka

CONFIG = Path(__file__).resolve().parents[2] / "conf" / "demo.properties"
SOURCE, TARGET = "primary", "secondary"

Predicate = Callable[[FlowStatus], bool]

_WAY_BACK = {f"{TARGET}->{SOURCE}.enabled": "true"}
"""Of what is kept: without it nobody could move back."""
_ADDED = "payments"
"""Not in the file: it flows when its list has it."""
_LOOK_SECONDS = 0.25
_START_SECONDS = 90.0
_CATCH_UP_SECONDS = 120.0
_PRIMARY = {"log.cleaner.backoff.ms": "500"}  # compaction within a second, not after a quarter of a minute


class Demo:
    """The steps, in the order in which they happen."""

    def __init__(self, view: View, seconds: float, stack: ExitStack, log: TextIO) -> None:
        self._view = view
        self._seconds = seconds
        self._stack = stack
        self._log = log

    def start(self, config: Path, defines: dict[str, str]) -> None:
        """Start the clusters and Spark at the same time, then write what is there before the flow starts."""
        self._config, self._defines = config, defines
        self._view.step(f"starting two Kafka clusters, {SOURCE} and {TARGET}, and Spark")
        source, target = LocalKafka(SOURCE, overrides=_PRIMARY), LocalKafka(TARGET)
        self._brokers = source, target
        self.settings = load_settings([config], {**addresses(self._brokers), **defines})
        flows = [flow.flow for flow in self.settings.flows]
        if flows != [Flow(SOURCE, TARGET)]:
            got = f"got {', '.join(map(str, flows))}; the demo runs {SOURCE}->{TARGET} and nothing else"
            raise ConfigError([Problem(str(config), "enabled", got, "srm-driver --config runs any configuration")])
        pool = self._stack.enter_context(ThreadPoolExecutor(2))
        starts: list[Future[None]] = []
        for broker in self._brokers:
            self._stack.callback(broker.close)
            starts.append(pool.submit(broker.start))
        self._driver = self._make_driver()
        for start in starts:
            start.result()
        self._samples = Samples(self.settings.clusters[SOURCE])
        self._samples.create()
        self._samples.fill()
        self._view.step(f"{self._samples.sent:,} records in {len(SAMPLE_TOPICS)} topics of {SOURCE}; starting the flow")
        self._stack.enter_context(self._driver)

    def run(self) -> list[PartitionComparison]:
        """Write and watch for a while, let the flow catch up, compare."""
        with self._view.watching():
            self._watch_until(lambda status: status.state is FlowState.RUNNING, _START_SECONDS, "starting")
            self._add_topic()
            self._move()
            # The flow's own lag is seldom 0 for long: heartbeats are copied, too, and one comes every second.
            with LagReader(self.settings.flows[0]) as reader:
                names = self._names()
                self._watch_until(lambda _: reader.lag(names) == 0, _CATCH_UP_SECONDS, "no new records, catching up")
        copied = self._driver.status()[0].records
        self._view.step(f"the sample topics have lag 0 ({copied:,} records copied); comparing every record")
        clusters = self.settings.clusters
        return list(compare_topics(clusters[SOURCE], clusters[TARGET], self._names()))

    def keep(self) -> None:
        """Let flows run both ways with applications beside them, say what can be tried, and wait for Ctrl-C."""
        source, target = self._brokers
        defines = {**addresses(self._brokers), **_WAY_BACK, **self._defines}
        self._driver.reload(load_settings([self._config], defines))
        self._stack.enter_context(Applications(*(self.settings.clusters[alias] for alias in (SOURCE, TARGET))))
        self._view.step(f"the way back, {TARGET}->{SOURCE}, starts, and applications go on writing")
        page = self._stack.enter_context(served(self._config, defines, self._log))
        for text in (*invitation(page), *suggestions(source.bootstrap_servers, target.bootstrap_servers)):
            self._view.say(text)
        while not self._driver.wait(3600):
            pass

    def _make_driver(self) -> Driver:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        with output_to(self._log):
            driver = Driver(self.settings, jars=fetch("driver"))
        for number, handler in handlers.items():
            signal.signal(number, handler)  # Spark's own would cancel the batch instead of letting it end
        return driver

    def _add_topic(self) -> None:
        """Let another topic flow, as `srm-control topics --add` does."""
        flow = self.settings.flows[0]
        self._view.step(f"srm-control topics --source {SOURCE} --target {TARGET} --add {_ADDED}")
        act = Act(
            ListKind.TOPICS, Change((_ADDED,)), int(time.time() * 1000), f"demo@{socket.gethostname()}", "to show it"
        )
        lists = ListWriter(target_of(flow, "demo"), SOURCE, replication_factor=flow.control_replication_factor)
        with closing(lists):
            lists.write(act)

    def _move(self) -> None:
        stop = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            moving = pool.submit(self._samples.keep_moving, stop)
            try:
                end = time.monotonic() + self._seconds
                while (left := end - time.monotonic()) > 0 and not moving.done():
                    self._look(f"writing for {left:.0f} s more")
                    time.sleep(_LOOK_SECONDS)
            finally:
                stop.set()
            moving.result()

    def _watch_until(self, is_reached: Predicate, seconds: float, doing: str) -> None:
        deadline = time.monotonic() + seconds
        while not is_reached(status := self._look(doing)):
            if time.monotonic() > deadline:
                lag = "unknown" if status.lag_records is None else str(status.lag_records)
                raise FlowError(
                    f"flow {status.flow}: {doing} took more than {seconds:.0f} s (state {status.state.value}, lag {lag}"
                    f"{f', {status.reason}' if status.reason else ''})"
                )
            time.sleep(_LOOK_SECONDS)

    def _look(self, doing: str) -> FlowStatus:
        status = self._driver.status()[0]
        if status.state is FlowState.FAILED:
            raise FlowError(str(status.reason))
        self._view.show(status, self._samples.sent, doing)
        return status

    def _names(self) -> dict[str, str]:
        policy = self.settings.flows[0].policy()
        return {topic.name: policy.format_remote_topic(SOURCE, topic.name) for topic in SAMPLE_TOPICS}


def addresses(brokers: tuple[LocalKafka, LocalKafka]) -> dict[str, str]:
    """What the configuration file says about the addresses is replaced."""
    return {f"{broker.name}.bootstrap.servers": broker.bootstrap_servers for broker in brokers}


def invitation(page: str) -> list[str]:
    """Where the page is, and what to try there."""
    return [
        "",
        f"The page of the service, and its REST API:  {page}  {page}/docs",
        f"1. Let a topic flow: {SOURCE} → {TARGET}, Lists, add {WAITING}; then Overview shows it.",
        f"2. Pause it: on Overview, topic {WAITING}, Pause; Resume lets it go on.",
        f"3. Fail over: Moves, groups {GROUP}, Plan; type {SOURCE}->{TARGET}, Begin.",
    ]


def suggestions(source: str, target: str) -> list[str]:
    """What to try while it runs, with Kafka's own tools."""
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    tools = f"{shlex.quote(java_command())} {quiet} -cp '{fetch('kafka')[0].parent}/*' org.apache.kafka.tools"
    control = shlex.quote(str(Path(sys.executable).parent / "srm-control"))
    show = "--formatter-property print.key=true --formatter-property print.headers=true"
    return [
        "",
        f"The clusters and both flows go on until Ctrl-C:  {SOURCE} at {source}  {TARGET} at {target}",
        "",
        f"# watch a remote topic on {TARGET}",
        f"{tools}.consumer.ConsoleConsumer --bootstrap-server {target} --topic {SOURCE}.orders {show}",
        f"# in another terminal, write to its source on {SOURCE}: one record per line, Ctrl-D ends",
        f"{tools}.ConsoleProducer --bootstrap-server {source} --topic orders",
        f"# make another topic on {SOURCE}, let it flow, and find it on {TARGET}",
        f"{tools}.TopicCommand --bootstrap-server {source} --create --topic fresh --partitions 2",
        f"{control} --bootstrap-servers {target} topics --source {SOURCE} --target {TARGET} --add fresh",
        f"{tools}.TopicCommand --bootstrap-server {target} --list",
    ]


@contextmanager
def workspace() -> Iterator[None]:
    """A folder for all temporary files: ours, the Python workers' and those of every JVM that is started."""
    directory = tempfile.mkdtemp(prefix="srm-demo-")
    java_options = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} -Djava.io.tmpdir={directory} -XX:-UsePerfData".strip()
    os.environ.update(TMPDIR=directory, JDK_JAVA_OPTIONS=java_options)
    tempfile.tempdir = directory
    try:
        yield
    finally:
        end_children()
        tempfile.tempdir = None
        shutil.rmtree(directory, ignore_errors=True)


def end_children() -> None:
    """End Spark's JVM, however far its start has come: it would outlive us and write to the folder again."""
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(int(pid), signal.SIGKILL)
                os.waitpid(int(pid), 0)


@contextmanager
def output_to(log: TextIO) -> Iterator[None]:
    """What child processes started in here print goes to the log: a JVM keeps the streams that it was born with."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    try:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def log_to(path: Path) -> TextIO:
    """Send all logging and warnings to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    log = path.open("w")
    logging.basicConfig(stream=log, level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s", force=True)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.captureWarnings(True)
    return log


def judge(view: View, rows: list[PartitionComparison]) -> int:
    """Print what the comparison found; the exit code."""
    view.table(rows)
    different = sum(row.difference is not None for row in rows)
    records = sum(row.target_records for row in rows)
    if different:
        view.step(f"{different} of {count(len(rows), 'partition')} differ")
        return DIFFERENT
    if not records:
        view.step("nothing was copied")
        return DIFFERENT
    view.step(f"{records:,} records in {len(rows)} partitions, all equal")
    return OK


def play(view: View, config: Path, defines: dict[str, str], seconds: float, *, keep: bool, log: TextIO) -> int:
    """The whole demo; the exit code."""
    with ExitStack() as stack:
        stack.enter_context(workspace())
        demo = Demo(view, seconds, stack, log)
        demo.start(config, defines)
        code = judge(view, demo.run())
        if keep:
            demo.keep()
        return code


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--keep", is_flag=True, help="Leave everything running afterwards, until Ctrl-C.")
@click.option("--seconds", default=15.0, show_default=True, help="How long records are written while the flow runs.")
@click.option("--config", default=CONFIG, type=FILE, help="Another configuration with these two clusters.")
@DEFINES
def main(*, keep: bool, seconds: float, config: Path, defines: tuple[str, ...]) -> None:
    """Replicate between two real Kafka clusters made for the occasion, and compare every record of both sides.

    Exit code 0: all equal, 1: it could not run, 3: a difference was found, 130: Ctrl-C.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)  # also where a shell had us ignore Ctrl-C
    overrides = pairs(defines)
    view = View()
    path = cache_dir() / "demo.log"
    log = log_to(path)
    try:
        with heard():
            code = play(view, config, overrides, seconds, keep=keep, log=log)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except ConfigError as error:
        click.echo(str(error), err=True)
        code = USAGE
    except SrmError as error:
        click.echo(f"demo: {error} (log: {path})", err=True)
        code = ERROR
    except Exception as error:
        logging.exception("demo failed")
        click.echo(f"demo: {type(error).__name__}: {error} (log: {path})", err=True)
        code = ERROR
    raise SystemExit(code)


if __name__ == "__main__":
    main(prog_name="python -m srm_spark.demo.run")
