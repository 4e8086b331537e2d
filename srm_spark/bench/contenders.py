"""The programs that are compared: each copies one topic from `source` to `target`, as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import javaproperties

from srm_spark.testing import JavaProcess

_REPLICATED = ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.")
_STORED = ("offset.storage.", "status.storage.", "config.storage.")
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

    @property
    def remote_topic(self) -> str:
        """Where the copy lies."""
        return f"{self.alias}.{self.topic}"

    @property
    def log_path(self) -> Path:
        """What the contender prints."""
        return self.folder / f"{self.alias}.log"

    def config(self, extra: Mapping[str, str]) -> Path:
        """A configuration that both contenders read."""
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
            **{f"{what}replication.factor": "1" for what in (*_REPLICATED, *_STORED)},
            **extra,
        }
        path = self.folder / f"{self.alias}.properties"
        path.write_text(javaproperties.dumps(keys, timestamp=False))
        return path


@contextmanager
def mirror_maker(job: Job) -> Iterator[int]:
    """MirrorMaker 2 in dedicated mode, from its jars, with its own defaults; yields its process id."""
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    process = JavaProcess(main, str(job.config({})), log_path=job.log_path, heap="1g", jvm_options=())
    process.start()
    try:
        yield process.pid
    finally:
        process.stop(STOP_SECONDS)


@contextmanager
def srm_spark(job: Job, extra: Mapping[str, str] = {}) -> Iterator[int]:
    """Our driver, embedded Spark, with its own defaults; yields its process id."""
    command = [str(Path(sys.executable).parent / "srm-driver"), "--config", str(job.config(extra))]
    with job.log_path.open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process.pid
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def exactly_once(job: Job) -> AbstractContextManager[int]:
    """Our driver in its exactly-once mode."""
    return srm_spark(job, {"target.exactly.once.source.support": "enabled"})


CONTENDERS = {"MirrorMaker 2": mirror_maker, "srm-spark": srm_spark, "exactly-once": exactly_once}
TRANSACTIONAL = ("exactly-once",)
"""Whose copies have more offsets than records: a marker per transaction and partition."""
