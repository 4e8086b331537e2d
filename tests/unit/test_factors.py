"""Replication factors that the clusters cannot give are told with the line that wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from srm_spark.config import load_settings
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.factors import factors_too_large

FILE = """\
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
A->B.replication.factor = 4
B.offset.storage.replication.factor = 2
dialect = mm2
"""


@dataclass(frozen=True)
class Brokers:
    """A cluster of which only the size is known."""

    alias: str
    count: int

    def broker_count(self) -> int:
        """How many brokers."""
        return self.count


def _said(folder: Path, source: int, target: int, more: str = "") -> list[str]:
    path = folder / "srm.properties"
    path.write_text(FILE + more)
    (settings,) = load_settings([path]).flows
    a, b = Brokers("A", source), Brokers("B", target)
    syncs = b if settings.syncs.on_target else a
    ends: Any = SimpleNamespace(settings=settings, source=a, target=b, syncs_cluster=syncs)
    return factors_too_large(cast("Clusters", ends))


def test_each_factor_that_is_too_large_is_named_with_its_line(tmp_path: Path) -> None:
    remote, progress, syncs, checkpoints = _said(tmp_path, 1, 1)
    assert "srm.properties:5: A->B.replication.factor = 4, but B has 1 broker:" in remote
    assert "write replication.factor = 1" in remote
    assert "srm.properties:6: B.offset.storage.replication.factor = 2, but B has 1 broker:" in progress
    assert "offset-syncs.topic.replication.factor (default) = 3, but A has 1 broker:" in syncs
    assert "checkpoints.topic.replication.factor (default) = 3, but B has 1 broker:" in checkpoints


def test_nothing_is_said_where_they_fit(tmp_path: Path) -> None:
    assert _said(tmp_path, 3, 4) == []
    assert _said(tmp_path, 1, 4, "emit.offset-syncs.enabled = false\nemit.checkpoints.enabled = false\n") == []
    assert _said(tmp_path, 1, 4, "offset-syncs.topic.location = target\n") == []
    brokers_default = "".join(
        f"A->B.{topics}replication.factor = -1\n" for topics in ("", "offset-syncs.topic.", "checkpoints.topic.")
    )
    assert _said(tmp_path, 1, 2, brokers_default) == []
