"""What a flow has recorded in Kafka, read back: progress, offset map, quarantine."""

from __future__ import annotations

from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.refused.quarantine import Quarantine
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.progress import ProgressTopic


class Recorded:
    """The flow's own topics on the target."""

    def __init__(self, clusters: Clusters) -> None:
        settings = clusters.settings
        self.progress = ProgressTopic(settings, clusters.target)
        role = f"{settings.flow}|offset-map"
        self.maps = OffsetMaps(clusters.target, settings.map_topic, role, TargetUnavailable)
        self._quarantine = Quarantine(settings, clusters.target, f"{settings.flow}|quarantine")
        self._parks = settings.refused.parks

    def refresh(self) -> None:
        """Read what was written to progress and map since the last call."""
        self.progress.refresh()
        self.maps.refresh()

    def quarantine(self) -> Quarantine:
        """What is in quarantine now; nothing where no policy puts anything there."""
        if self._parks:
            self._quarantine.refresh()
        return self._quarantine

    def close(self) -> None:
        """Stop reading."""
        self.progress.close()
        self.maps.close()
        self._quarantine.close()
