"""Positions on a topic that flows both ways under one name, where the map of the way back is not to be had."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path

from srm_spark.config import load_settings
from srm_spark.config.settings import ClusterSettings
from srm_spark.core.checkpoints import Translation, TranslationStatus
from srm_spark.core.model import Interval, OffsetRange, TopicPartition
from srm_spark.core.offset_map import PartitionMap
from srm_spark.core.policy import IdentityReplicationPolicy
from srm_spark.core.translation import IntervalMap
from srm_spark.errors import FlowError, SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Clusters, filters_of
from srm_spark.flow.groups.positions import TargetPositions, Translator
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.kafka.cluster import ClusterClient
from srm_spark.kafka.lease import Lease

T0 = TopicPartition("t", 0)
FILE = """clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
B->A.enabled = true
replication.policy.class = IdentityReplicationPolicy
provenance.header.enabled = true
dialect = mm2
"""


class Silent(ClusterClient):
    """A cluster that says where partitions end, and else nothing or that it is down."""

    def __init__(self, settings: ClusterSettings, error: type[FlowError], *, is_down: bool) -> None:
        self.settings, self.timeout, self.properties, self.role = settings, 1.0, {}, "test"
        self._is_down = is_down

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        if self._is_down:
            raise SourceUnavailable("A does not answer")
        return {}

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, waits: bool = True, committed: bool = False
    ) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 9)


class Known(OffsetMaps):
    """Maps that nobody has to read."""

    def refresh(self) -> None:
        self.maps[T0] = PartitionMap("id")
        self.maps[T0].take(IntervalMap(OffsetRange(0, 3), 9, (Interval(0, 6, 3),)), "id")


def places(tmp_path: Path, *, is_down: bool) -> TargetPositions:
    path = tmp_path / "srm.properties"
    path.write_text(FILE)
    settings = load_settings([path]).flows[0]
    source = Silent(settings.source, SourceUnavailable, is_down=is_down)
    target = Silent(settings.target, TargetUnavailable, is_down=False)
    policy, filters = IdentityReplicationPolicy(source_alias="A"), filters_of(settings)
    ends = Clusters(settings, source, target, policy, filters, partial(Lease, settings.flow, target, "progress"))
    return Translator(ends, Known(target, "map", "test", TargetUnavailable)).places({(T0, 1)})


def test_nothing_is_guessed_about_what_the_target_has_of_its_own(tmp_path: Path) -> None:
    found = places(tmp_path, is_down=True)
    assert found.known[T0, 1].translation == Translation(TranslationStatus.UNMAPPED, 1)
    assert "A does not answer" in (found.no_way_back or "")


def test_without_a_flow_back_the_map_of_the_flow_is_all_there_is(tmp_path: Path) -> None:
    found = places(tmp_path, is_down=False)
    assert found.known[T0, 1].translation == Translation(TranslationStatus.EXACT, 1, 7)
    assert found.no_way_back is None
