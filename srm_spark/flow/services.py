"""What runs beside the records of one attempt, by the driver's clock: its pulse, lists, groups, topics, table."""

from __future__ import annotations

from collections.abc import Callable

from srm_spark.flow.clusters import Clusters
from srm_spark.flow.groups.consumer_groups import ConsumerGroups
from srm_spark.flow.meter import Meter
from srm_spark.flow.periodic import Periodic, Task
from srm_spark.flow.pulse import Pulse, Stall
from srm_spark.flow.recorded import Recorded
from srm_spark.flow.topics.commands import FlowCommands
from srm_spark.flow.topics.lists import FlowLists, KnownActs
from srm_spark.flow.topics.map_table import MapTable
from srm_spark.flow.topics.remote_acls import RemoteAcls
from srm_spark.flow.topics.remote_quotas import RemoteQuotas
from srm_spark.flow.topics.topic_configs import Remotes, TopicConfigs
from srm_spark.spark import SparkSession

_SLOW_SECONDS = 60.0
"""A look at the lists that takes longer is told."""


class Services:
    """Their life: who begins when, and what an end waits for."""

    def __init__(
        self,
        clusters: Clusters,
        recorded: Recorded,
        tasks: Periodic,
        stalled: Callable[[Stall | None], None],
        remotes: Remotes,
        *,
        commands: FlowCommands,
        known: KnownActs | None = None,
        meter: Meter | None = None,
    ) -> None:
        """`stalled` takes what the pulse says; `remotes` says what flows; `commands` hears what is done to it.

        `known` are acts that earlier runs have read; `meter` takes figures.
        """
        self._timings = clusters.settings.timings
        self._tasks = tasks
        self._settings, self._maps = clusters.settings, recorded.maps
        self._table: MapTable | None = None
        self.pulse = Pulse(clusters, stalled, self._timings.silent_seconds)
        self.groups = ConsumerGroups(clusters, recorded.maps, (meter or Meter()).checkpointed)
        self.lists = FlowLists(clusters, commands, known)
        self._following: Task | None = None
        self._topics = self._topic_tasks(clusters, recorded, remotes)
        self._running: list[Task] = []

    def watch(self) -> None:
        """Feel the pulse: from the first call to a cluster on."""
        self.pulse.begin(self._tasks)

    def follow_lists(self) -> None:
        """Know the lists, and follow them from now on. Raises TargetUnavailable."""
        self.lists.begin()
        name, seconds = f"lists {self._settings.flow}", self._timings.lists_seconds
        # By the clock and not by the flow, which may be busy for minutes: who changed a list is told at once.
        self._following = self._tasks.every(
            seconds, name, self.lists.look, at_once=False, slow=_SLOW_SECONDS, last=self.lists.close
        )

    def begin(self) -> None:
        """Begin what needs the flow to be ours."""
        self.groups.start(self._tasks)
        flow = self._settings.flow
        self._running = [
            self._tasks.every(seconds, f"{name} {flow}", look) for name, seconds, look in self._topics if seconds
        ]

    def begin_table(self, session: SparkSession) -> None:
        """Begin what needs Spark, too; once."""
        if self._table is None:
            self._table = MapTable(self._settings, session, self._maps)
            self._table.start(self._tasks)

    def tell_to_stop(self) -> None:
        """Begin nothing more."""
        self.pulse.end()
        self.groups.tell_to_stop()
        if self._following is None:
            self.lists.close()
        else:
            self._following.stop()
        for task in self._running:
            task.stop()
        if self._table is not None:
            self._table.tell_to_stop()

    def join(self, *, waits: bool) -> None:
        """Wait for what they are at, or for nothing: a call that comes late does no harm, a write is cut off whole."""
        self.groups.join(self._timings.groups_stop_seconds if waits else 0.0)
        if self._table is not None:
            self._table.join(self._timings.table_stop_seconds if waits else 0.0)

    def _topic_tasks(
        self, clusters: Clusters, recorded: Recorded, remotes: Remotes
    ) -> list[tuple[str, float | None, Callable[[], None]]]:
        """What keeps remote topics as their source topics: name, seconds between two times, and what is done then."""
        settings, maps = clusters.settings, recorded.maps
        return [
            ("topic configs", settings.topics.configs_seconds, TopicConfigs(clusters, maps, remotes).look),
            ("ACLs", settings.acls.seconds, RemoteAcls(clusters, maps, remotes).look),
            ("quotas", settings.acls.quotas_seconds, RemoteQuotas(clusters, maps).look),
        ]
