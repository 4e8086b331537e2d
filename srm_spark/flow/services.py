"""What runs beside the records of one attempt, by the driver's clock: its pulse, its groups, its table."""

from __future__ import annotations

from collections.abc import Callable

from srm_spark.flow.clusters import Clusters
from srm_spark.flow.groups.consumer_groups import ConsumerGroups
from srm_spark.flow.periodic import Periodic
from srm_spark.flow.pulse import Pulse, Stall
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.topics.map_table import MapTable
from srm_spark.spark import SparkSession


class Services:
    """Their life: who begins when, and what an end waits for."""

    def __init__(
        self,
        clusters: Clusters,
        recorded: Recorded,
        tasks: Periodic,
        stalled: Callable[[Stall | None], None],
    ) -> None:
        """`stalled` takes what the pulse says."""
        self._timings = clusters.settings.timings
        self._tasks = tasks
        self._settings, self._maps = clusters.settings, recorded.maps
        self._table: MapTable | None = None
        self.pulse = Pulse(clusters, stalled, self._timings.silent_seconds)
        self.groups = ConsumerGroups(clusters, recorded.maps)

    def watch(self) -> None:
        """Feel the pulse: from the first call to a cluster on."""
        self.pulse.begin(self._tasks)

    def begin(self) -> None:
        """Begin what needs the flow to be ours."""
        self.groups.start(self._tasks)

    def begin_table(self, session: SparkSession) -> None:
        """Begin what needs Spark, too; once."""
        if self._table is None:
            self._table = MapTable(self._settings, session, self._maps)
            self._table.start(self._tasks)

    def tell_to_stop(self) -> None:
        """Begin nothing more."""
        self.pulse.end()
        self.groups.tell_to_stop()
        if self._table is not None:
            self._table.tell_to_stop()

    def join(self, *, waits: bool) -> None:
        """Wait for what they are at, or for nothing: a call that comes late does no harm, a write is cut off whole."""
        self.groups.join(self._timings.groups_stop_seconds if waits else 0.0)
        if self._table is not None:
            self._table.join(self._timings.table_stop_seconds if waits else 0.0)
