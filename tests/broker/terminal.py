"""What a page of docs/procedures needs to be run: a folder, a shell with Kafka's scripts, and its brokers.

`python -m tests.broker.terminal PAGE` writes the page anew with what its commands print now, where they print something
else than it shows. It goes on to the end; look at the difference.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from srm_spark.testing import LocalKafka
from srm_spark.testing.java import QUICK_START, java_arguments
from tests.awaiting import await_until
from tests.procedures import Command, Fault, Page, PageFile, is_as_shown, read_page

TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-get-offsets.sh": "org.apache.kafka.tools.GetOffsetShell",
    "connect-mirror-maker.sh": "org.apache.kafka.connect.mirror.MirrorMaker",
}
"""As they lie in Kafka's bin folder."""
BESIDE = """
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset.storage.replication.factor = 1
emit.heartbeats.interval.seconds = 5
state.path =
"""
"""All that a file has here beside what the page says: a single broker holds one copy, and tables of the map, which no
page reads, and a batch for each heartbeat of each flow would take the cores that the pages share with other tests."""
_HINTS = ("The consumer rebalance protocol (KIP-848)", "NOTE: Picked up JDK_JAVA_OPTIONS")
"""Of the console consumer of some versions of Kafka, and of a JVM that is told how to compile."""
SHOWN_SECONDS = 120.0
PAUSE_SECONDS = 3.0
"""Between two tries: each starts a program, and takes the cores that what it waits for starts with."""
COMMAND_SECONDS = 120
END_SECONDS = 30


class Terminal:
    """A folder with the files of a page, a shell, and brokers under the names of the page."""

    def __init__(self, folder: Path, brokers: Mapping[str, LocalKafka]) -> None:
        self._folder = folder
        self._brokers = brokers
        self._groups: list[int] = []
        self.printed: Sequence[str] = ()
        """By the last command."""
        tools = folder / "bin"
        tools.mkdir()
        for name, main in TOOLS.items():
            arguments = java_arguments(main, (), log_levels={"org.apache.kafka": "error"})
            (tools / name).write_text(f'#!/bin/sh\nexec {shlex.join(arguments)} "$@"\n')
            (tools / name).chmod(0o755)
        path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = {**os.environ, "PATH": path, "LOGNAME": "ann"}
        self._environment["JDK_JAVA_OPTIONS"] = QUICK_START[0]  # drivers of a page live for a minute

    def take(self, step: PageFile | Command | Fault) -> None:
        """One step of the page; an AssertionError says what was printed instead of what it shows."""
        match step:
            case PageFile(name, text):
                has_clusters = "\nclusters = " in f"\n{text}"
                (self._folder / name).write_text(self._real(text) + (BESIDE if has_clusters else ""))
            case Fault(broker, act):
                getattr(self._brokers[broker], act)()
            case Command(repeats=True):
                await_until(lambda: self._is_shown_at_last(step), SHOWN_SECONDS, lambda: self._wrong(step))
            case Command():
                wrong = self._wrong(step)
                assert not wrong, wrong

    def close(self) -> None:
        """End what runs in the background."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for group in self._groups:
                with suppress(ProcessLookupError):
                    os.killpg(group, number)
            until = time.monotonic() + END_SECONDS
            while time.monotonic() < until and any(map(_lives, self._groups)):
                time.sleep(0.1)

    def logs(self) -> str:
        """Ends of what was logged to files."""
        return "\n".join(f"{path.name}:\n{path.read_text()[-8000:]}" for path in sorted(self._folder.glob("*.log")))

    def _is_shown_at_last(self, command: Command) -> bool:
        if not self._wrong(command):
            return True
        time.sleep(PAUSE_SECONDS)
        return False

    def _wrong(self, command: Command) -> str:
        code, self.printed = self._run(command.text)
        if code == command.exit_code and is_as_shown(self.printed, command.printed):
            return ""
        shown, printed = ("shown:", *command.printed), (f"printed, exit code {code}:", *self.printed)
        lines = [f"line {command.line}: $ {command.text}", *shown, *printed]
        return "\n".join(lines)

    def _run(self, text: str) -> tuple[int, list[str]]:
        output = self._folder / "bin" / "printed"
        with output.open("wb") as file:  # a pipe would stay open as long as what runs in the background
            process = subprocess.Popen(
                ["bash", "-c", self._real(text)],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
            self._groups.append(process.pid)
            code = process.wait(COMMAND_SECONDS)
        lines = (line.rstrip() for line in self._shown(output.read_text()).splitlines())
        return code, [line for line in lines if not line.startswith(_HINTS)]

    def _real(self, text: str) -> str:
        for name, broker in self._brokers.items():
            text = text.replace(f"{name}:9092", broker.bootstrap_servers)
        return text

    def _shown(self, text: str) -> str:
        for name, broker in self._brokers.items():
            text = text.replace(broker.bootstrap_servers, f"{name}:9092")
        return text.replace(f"@{socket.gethostname()}", "@host").replace(f"{socket.gethostname()} pid", "host pid")


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def terminal_of(page: Page, folder: Path) -> Iterator[Terminal]:
    """With brokers of the page's own, for its names are the same as those of others."""
    brokers = {name: LocalKafka(name) for name in page.brokers}
    with ExitStack() as stack:
        for broker in brokers.values():
            stack.callback(broker.close)
        with ThreadPoolExecutor(len(brokers)) as pool:
            list(pool.map(LocalKafka.start, brokers.values()))
        terminal = Terminal(folder, brokers)
        stack.callback(terminal.close)
        yield terminal


def record(path: Path) -> None:
    """Write the page with what its commands print now."""
    page, lines = read_page(path), path.read_text().splitlines()
    printed: dict[int, Sequence[str]] = {}
    with tempfile.TemporaryDirectory() as folder, terminal_of(page, Path(folder)) as terminal:
        for step in page.steps:
            begin = time.monotonic()
            try:
                terminal.take(step)
            except AssertionError as error:
                print(error)
            print(f"{time.monotonic() - begin:.1f} s: {step}")
            if isinstance(step, Command) and not is_as_shown(terminal.printed, step.printed):
                printed[step.line] = terminal.printed
        print(terminal.logs())
    for step in reversed(page.commands):
        if step.line in printed:
            first = step.line + step.text.count("\n")
            lines[first : first + len(step.printed)] = printed[step.line]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
