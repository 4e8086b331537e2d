"""Who may write copies on the target of a flow: staged by the flow, in force from failover to failback."""

from __future__ import annotations

from srm_spark.config.settings import FlowSettings
from srm_spark.core.acls import TOPIC, Acl
from srm_spark.core.made_here import MadeHere
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.clusters import Connect, connect
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.remote_acls import record_acls, refused_acls
from srm_spark.plan.snapshot import WriteRight


class WriteRights:
    """Of the flow that made the copies: with a failback, of the one of the other direction."""

    def __init__(self, settings: FlowSettings, *, allows: bool, reach: Connect = connect) -> None:
        """`allows`: they are to be in force; else to be taken back."""
        self._clusters = reach(settings)
        self._settings = self._clusters.settings
        self._allows = allows
        self._refused: dict[Acl, str] = {}
        role = f"{settings.flow}|move-rights"
        self._maps = OffsetMaps(self._clusters.target, settings.map_topic, role, TargetUnavailable)

    def close(self) -> None:
        """Let go of the connections."""
        self._maps.close()

    def look(self) -> tuple[WriteRight, ...]:
        """What the move is about; without any, nobody is asked for ACLs. Raises TargetUnavailable."""
        about = self._about(self._made())
        there = self._there() if about else frozenset()
        shown = about if self._allows else about & there
        return tuple(WriteRight(acl, acl in there, self._refused.get(acl, "")) for acl in sorted(shown))

    def set(self) -> None:
        """Put them in force, or take them back; what is refused the next look tells.

        Raises TargetUnavailable, and ProgressFailed where it cannot be recorded.
        """
        made, there = self._made(), self._there()
        about, target = self._about(made), self._clusters.target
        if self._allows:
            missing = about - there
            record_acls(self._clusters, made.acls, made.acls | missing)  # in front of it, else nobody takes it back
            answers = target.add_acls(missing) if missing else {}
            record_acls(self._clusters, made.acls | missing, (made.acls | missing) - refused_acls(answers))
        else:
            answers = target.remove_acls(about & there) if about & there else {}
            record_acls(self._clusters, made.acls, made.acls - (answers.keys() - refused_acls(answers)))
        self._refused = {acl: why for acl, why in answers.items() if why is not None}

    def _about(self, made: MadeHere) -> frozenset[Acl]:
        if self._allows:
            return made.staged
        return frozenset(acl for acl in made.acls if acl.allows_writing)

    def _made(self) -> MadeHere:
        acls, topic, target = self._settings.acls, self._settings.map_topic, self._clusters.target
        if self._allows and not (acls.writes_on_failover and acls.seconds is not None):
            return MadeHere()
        if topic in target.topics():
            self._maps.refresh()
        return self._maps.made

    def _there(self) -> frozenset[Acl]:
        """Entries of the target; none where it has no authorizer."""
        return frozenset(self._clusters.target.acls((TOPIC,)) or ())
