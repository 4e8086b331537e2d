"""A target whose disk is full: its broker dies of it, and the flow goes on when there is room again."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from srm_spark.testing import KafkaCluster, LocalKafka
from tests.awaiting import await_until
from tests.broker.conftest import Start
from tests.broker.mirror import SOON, assert_copied, await_count
from tests.kafka_io import Kafka, Record

pytestmark = pytest.mark.slow

_DISK = "64m"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with little room."""
    folder = tmp_path / "broker" / "data"
    folder.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", str(folder)], check=False)
    if mounted.returncode != 0:
        pytest.skip("a small disk needs the right to mount one")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_of_the_target_delays_records_only(
    disk: Path, primary: KafkaCluster, local_kafka: Callable[..., LocalKafka], unique: str, start: Start
) -> None:
    broker = local_kafka("full", data_dir=disk.parent)
    source, target = Kafka(primary), Kafka(broker)
    topic, remote = f"t-{unique}", f"a{unique}.t-{unique}"
    source.create(topic, 2)
    source.write(topic, _large(0, 1000))
    clusters = {f"a{unique}": primary, f"b{unique}": broker}
    start(clusters, [f"a{unique}->b{unique}"], {"topics": topic, "flow.retry.delay.ms": "1000"})
    await_count(target, remote, 1000)
    ballast = disk / "ballast"
    _fill(ballast)
    source.write(topic, _large(1000, 3000))
    await_until(lambda: not broker.running, SOON, "the broker dies of its full disk")
    words = broker.log_path.read_text(errors="replace")
    # The second one is what Java says of a file that lies in memory and has no room to grow.
    assert any(told in words for told in ("No space left on device", "unsafe memory access"))
    ballast.unlink()
    broker.start()
    source.write(topic, _large(3000, 3100))
    assert_copied(source, topic, target, remote)


def _large(start: int, end: int) -> list[Record]:
    return [Record(b"k", b"%d " % n + bytes(2000), n % 2) for n in range(start, end)]


def _fill(ballast: Path) -> None:
    """Leave no room."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(65536)) == 65536:
            pass
    with ballast.open("ab", buffering=0) as file, suppress(OSError):
        while file.write(bytes(512)):
            pass
