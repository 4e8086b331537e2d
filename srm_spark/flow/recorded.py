"""What a flow has recorded in Kafka, read back: progress, offset map, quarantine."""

from __future__ import annotations

import time
from contextlib import suppress

from srm_spark.core.news import Every
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.refused.quarantine import Quarantine
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.progress import ProgressTopic

_LEFT_SECONDS = 60.0


class Recorded:
    """The flow's own topics on the target."""

    def __init__(self, clusters: Clusters) -> None:
        settings = clusters.settings
        self.progress = ProgressTopic(settings, clusters.target)
        role = f"{settings.flow}|offset-map"
        self.maps = OffsetMaps(clusters.target, settings.map_topic, role, TargetUnavailable)
        self._quarantine = Quarantine(settings, clusters.target, f"{settings.flow}|quarantine")
        self._parks, self._left_due = settings.refused.parks, Every(_LEFT_SECONDS)

    def refresh(self) -> None:
        """Read what was written to progress and map since the last call."""
        self.progress.refresh()
        self.maps.refresh()

    def quarantine(self) -> Quarantine:
        """What is in quarantine now; where no policy puts anything there, what was left, as of a minute ago."""
        if self._parks:
            self._quarantine.refresh()
        elif self._left_due.is_due(now := time.monotonic()):
            self._left_due.done(now)
            with suppress(TargetUnavailable):  # such a flow needs no right to read it
                self._quarantine.refresh()
        return self._quarantine

    def close(self) -> None:
        """Stop reading."""
        self.progress.close()
        self.maps.close()
        self._quarantine.close()
