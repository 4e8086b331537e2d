"""The programs that are compared: each copies one topic from `source` to `target`, as a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import javaproperties

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.cluster import TopicSpec
from srm_spark.errors import SetupError, SourceUnavailable, SrmError, TargetUnavailable
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.testing import JavaProcess

_REPLICATED = ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.")
_STORED = ("offset.storage.", "status.storage.", "config.storage.")
_LOOP = Path(__file__).parent / "bareloop"
STOP_SECONDS = 60


@dataclass(frozen=True)
class Job:
    """One run: which topic, between which clusters; the alias keeps runs apart."""

    alias: str
    topic: str
    source: str
    target: str
    """Bootstrap servers of the two clusters."""
    folder: Path
    codec: str = "none"
    """By which a contender compresses what it writes."""

    @property
    def remote_topic(self) -> str:
        """Where the copy lies."""
        return f"{self.alias}.{self.topic}"

    @property
    def log_path(self) -> Path:
        """What the contender prints."""
        return self.folder / f"{self.alias}.log"

    def config(self, extra: Mapping[str, str]) -> Path:
        """A configuration that MirrorMaker 2 and srm-spark read."""
        keys = {
            "clusters": f"{self.alias}, target",
            f"{self.alias}.bootstrap.servers": self.source,
            "target.bootstrap.servers": self.target,
            f"{self.alias}->target.enabled": "true",
            f"{self.alias}->target.topics": self.topic,
            f"target->{self.alias}.enabled": "false",
            "emit.heartbeats.enabled": "false",
            "sync.topic.acls.enabled": "false",
            "tasks.max": "2",
            "target.producer.compression.type": self.codec,
            **{f"{what}replication.factor": "1" for what in (*_REPLICATED, *_STORED)},
            **extra,
        }
        path = self.folder / f"{self.alias}.properties"
        path.write_text(javaproperties.dumps(keys, timestamp=False))
        return path


Contender = Callable[[Job], AbstractContextManager[int]]
"""Runs as a process of its own; yields its id."""


@contextmanager
def mirror_maker(job: Job, extra: Mapping[str, str] = {}) -> Iterator[int]:
    """MirrorMaker 2 in dedicated mode, from its jars, with its own defaults; yields its process id."""
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    process = JavaProcess(main, str(job.config(extra)), log_path=job.log_path, heap="1g", jvm_options=())
    process.start()
    try:
        yield process.pid
    finally:
        process.stop(STOP_SECONDS)


@contextmanager
def srm_spark(job: Job, extra: Mapping[str, str] = {}) -> Iterator[int]:
    """Our driver, embedded Spark, with its own defaults; yields its process id."""
    command = [str(Path(sys.executable).parent / "srm-driver"), "--config", str(job.config(extra))]
    with _running(command, job.log_path) as pid:
        yield pid


def exactly_once(job: Job) -> AbstractContextManager[int]:
    """Our driver in its exactly-once mode."""
    return srm_spark(job, {"target.exactly.once.source.support": "enabled"})


@contextmanager
def bare_loop(job: Job) -> Iterator[int]:
    """A loop in Go that consumes and produces and does nothing else; yields its process id.

    Raises SetupError where it cannot be built; see `build_loop`.
    """
    program = build_loop(job.folder)
    create_remote_topic(job)
    ends = {"source": job.source, "target": job.target, "topic": job.topic, "remote": job.remote_topic}
    options = [f"-{key}={value}" for key, value in {**ends, "codec": job.codec}.items()]
    with _running([str(program), *options], job.log_path) as pid:
        yield pid


def build_loop(folder: Path) -> Path:
    """The program of `bareloop/`, built into `folder` unless it is there.

    Raises SetupError where there is no Go, or it cannot build it, for example because modules cannot be fetched.
    """
    program = folder / "bareloop"
    if program.exists():
        return program
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        raise SetupError("there is no Go: `go` is not on the PATH")
    command = [go, "build", "-o", str(program), "."]
    done = subprocess.run(command, cwd=_LOOP, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"`go build` in {_LOOP} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return program


def create_remote_topic(job: Job) -> None:
    """For a contender that does not make it itself."""
    count = ClusterClient(ClusterSettings("source", job.source), SourceUnavailable).topics()[job.topic]
    target = ClusterClient(ClusterSettings("target", job.target), TargetUnavailable)
    reason = target.create([TopicSpec(job.remote_topic, count, 1, {})])[job.remote_topic]
    if reason:
        raise SrmError(f"topic {job.remote_topic} cannot be created: {reason}")


@contextmanager
def _running(command: list[str], log_path: Path) -> Iterator[int]:
    with log_path.open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process.pid
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def realtime(job: Job) -> AbstractContextManager[int]:
    """Our driver in its real-time lane."""
    return srm_spark(job, {"mode": "realtime"})


OURS, THEIRS, EXACTLY_ONCE, LIMIT = "srm-spark", "MirrorMaker 2", "exactly-once", "bare loop"
REALTIME = "real-time lane"
CONTENDERS: Mapping[str, Contender] = {
    THEIRS: mirror_maker,
    OURS: srm_spark,
    EXACTLY_ONCE: exactly_once,
    LIMIT: bare_loop,
    REALTIME: realtime,
}
FROM_A_BACKLOG = (THEIRS, OURS, EXACTLY_ONCE, LIMIT)
"""Whose throughput is compared."""
IN_TIME = (THEIRS, OURS, REALTIME)
"""Whose latency is compared."""
