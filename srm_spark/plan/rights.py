"""Who may write copies on the target of a flow: staged by the flow, in force from failover to failback."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import replace

from srm_spark.config.settings import FlowSettings
from srm_spark.core.acls import TOPIC, Acl
from srm_spark.core.cluster import Cluster
from srm_spark.core.made_here import MadeHere
from srm_spark.core.wording import count
from srm_spark.errors import SourceUnavailable, TargetUnavailable
from srm_spark.flow.clusters import Connect, connect
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.remote_acls import record_acls, refused_acls
from srm_spark.plan.snapshot import WriteRight


class WriteRights:
    """Of the flow that made the copies: with a failback, of the one of the other direction."""

    def __init__(self, settings: FlowSettings, *, allows: bool, reach: Connect = connect) -> None:
        """`allows`: they are to be in force; else to be taken back."""
        self._clusters = reach(settings)
        self.settings = self._clusters.settings
        self._allows = allows
        self._refused: dict[Acl, str] = {}
        role = f"{settings.flow}|move-rights"
        self._maps = OffsetMaps(self._clusters.target, settings.map_topic, role, TargetUnavailable)

    def close(self) -> None:
        """Let go of the connections."""
        self._maps.close()

    def look(self) -> tuple[WriteRight, ...]:
        """What the move is about; without any, nobody is asked for ACLs. Raises TargetUnavailable.

        With a failback that is what is recorded as made by a failover, there or not.
        """
        about = self._about(self._made())
        there = self._there() if about else frozenset()
        return tuple(WriteRight(acl, acl in there, self._refused.get(acl, "")) for acl in sorted(about))

    def set(self, only: Collection[Acl] | None = None) -> None:
        """Put them in force, or take them back, `only` these where that is said; what is refused the next look tells.

        Raises TargetUnavailable, and ProgressFailed where it cannot be recorded.
        """
        target, answers = self._clusters.target, dict[Acl, str | None]()
        entries = target.acls((TOPIC,))
        about, there = self._about(self._made()), entries or frozenset[Acl]()
        about = about if only is None else about & frozenset(only)
        if self._allows:
            missing = about - there
            self._record(lambda made: made | missing)  # in front of it, else nobody takes it back
            answers = target.add_acls(missing) if missing else {}
            self._record(lambda made: made - refused_acls(answers))
        elif entries is not None:
            answers = target.remove_acls(about & there) if about & there else {}
            # What somebody took away before is ours no more, either: who makes it from now on keeps it.
            self._record(lambda made: made - (about - refused_acls(answers)))
        self._refused = {acl: why for acl, why in answers.items() if why is not None}

    def _record(self, change: Callable[[frozenset[Acl]], frozenset[Acl]]) -> None:
        made = self._made().acls  # as it is now: the driver of the flow records what it makes, too
        record_acls(self._clusters, made, change(made))

    def _about(self, made: MadeHere) -> frozenset[Acl]:
        return made.staged if self._allows else made.writing

    def _made(self) -> MadeHere:
        topic, target = self.settings.map_topic, self._clusters.target
        if self._allows and not self.settings.acls.stages_writes:
            return MadeHere()
        if topic in target.topics():
            self._maps.refresh()
        return self._maps.made

    def _there(self) -> frozenset[Acl]:
        """Entries of the target; none where it has no authorizer."""
        return frozenset(self._clusters.target.acls((TOPIC,)) or ())


def left_in_force(cluster: Cluster, back: FlowSettings) -> str | None:
    """What is not known of who may write copies on the source of a failback, whose other direction is not configured.

    None where no failover put anything in force there. Raises SourceUnavailable.
    """
    over = back.flow.reverse
    topic = replace(back, flow=over).map_topic
    if topic not in cluster.topics():
        return None
    with closing(OffsetMaps(cluster, topic, f"{back.flow}|move-rights", SourceUnavailable)) as maps:
        maps.refresh()
        left = maps.made.writing
    what = f"whether applications may still write remote topics of {over} is not known"
    why = f"a failover put {count(len(left), 'ACL')} in force on {over.target}"
    return f"{what}: {why}; add {over}.enabled = true, and run the same command again" if left else None
