"""A log that goes back: what happens to a broker whose disk comes back from a backup."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from srm_spark.testing import LocalKafka


@contextmanager
def backup(broker: LocalKafka, topic: str) -> Iterator[None]:
    """At the end the topic's first partition is on disk again as it was at the beginning; the broker was restarted."""
    folder = broker.directory / "data" / f"{topic}-0"
    kept = shutil.copytree(folder, broker.directory / f"kept-{topic}")
    yield
    broker.kill()
    shutil.rmtree(folder)
    shutil.move(kept, folder)
    broker.start()
