"""srm-service as a process of its own, asked over HTTP, and what drivers would report to it."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from srm_spark.api.users import line_of
from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import (
    FlowSample,
    Histogram,
    PartitionSample,
    encode,
    metrics_topic,
)
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.testing.ports import free_ports
from tests.broker.conftest import Pair
from tests.broker.mirror import write_config
from tests.kafka_io import Kafka, Record

SRM_SERVICE = Path(sys.executable).parent / "srm-service"


def steering(pair: Pair, keys: Mapping[str, str], folder: Path) -> tuple[Path, int, Path]:
    """A configuration by which the service lets alice, whose password is `secret`, steer the flow of the pair.

    And where it listens on this machine, and the file of its audit records.
    """
    (port,), users, audit = free_ports(1), folder / "users", folder / "audit.log"
    users.write_text(line_of("alice", "secret", f"{pair.flow}=admin"))
    of_service = {
        "service.listen": f"127.0.0.1:{port}",
        "service.users.file": str(users),
        "service.audit.path": str(audit),
        "service.moves.path": str(folder),
    }
    return write_config(folder / "srm.properties", pair.clusters, [pair.flow], {**keys, **of_service}), port, audit


@contextmanager
def running(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """srm-service, which is told to stop at the end, and leaves no process behind."""
    with log.open("ab") as written:
        process = subprocess.Popen([str(SRM_SERVICE), *arguments], stdout=written, stderr=written)
        try:
            yield process
            others = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0, log.read_text()
            assert psutil.wait_procs(others, 30)[1] == []
        finally:
            if process.poll() is None:
                for one in psutil.Process(process.pid).children(recursive=True):
                    one.kill()
                process.kill()
                process.wait(20)


class Service:
    """Asked over HTTP, as alice."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    def get(self, path: str, password: str = "secret") -> tuple[int, str]:
        request = urllib.request.Request(self._base + path)
        request.add_header("authorization", f"Basic {base64.b64encode(f'alice:{password}'.encode()).decode()}")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def post(self, path: str, **body: object) -> Any:
        """As a program changes something."""
        request = urllib.request.Request(self._base + path, json.dumps(body).encode())
        request.add_header("authorization", f"Basic {base64.b64encode(b'alice:secret').decode()}")
        request.add_header("content-type", "application/json")
        request.add_header("x-requested-with", "tests")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def json(self, path: str) -> Any:
        status, text = self.get(path)
        assert status == 200, text
        return json.loads(text)


def report(target: Kafka, flow: Flow, topic: str, at: int) -> None:
    partition = TopicPartition(topic, 0)
    samples = (
        FlowSample(
            flow, "host/1/1", at, 30.0, 30.0, FlowState.RUNNING, topics=1, partitions=1, groups=0, lag_records=3
        ),
        PartitionSample(flow, at, 30.0, partition, f"{flow.source}.{topic}", 60, 6000, Histogram.of([8.0, 4.0])),
    )
    target.write(metrics_topic(flow), [Record(*encode(one), timestamp=at) for one in samples])
