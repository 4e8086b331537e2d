"""What a flow has found to be lost, read from the target alone."""

from __future__ import annotations

from contextlib import closing

from srm_spark.config.settings import FlowSettings
from srm_spark.core.model import KeptLoss
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import Connect, connect
from srm_spark.flow.topics.offset_map import OffsetMaps


def kept_losses(settings: FlowSettings, reach: Connect = connect) -> tuple[KeptLoss, ...]:
    """All losses, in the order in which they were found. Raises TargetUnavailable."""
    target = reach(settings).target
    role = f"{settings.flow}|losses"
    with closing(OffsetMaps(target, settings.map_topic, role, TargetUnavailable)) as maps:
        maps.refresh()
        return tuple(sorted(maps.losses.values(), key=lambda kept: (kept.found_at, kept.partition)))
