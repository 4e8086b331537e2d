"""The allow and deny lists of a flow, read from its control topic: whatever process changed them, the filters follow.

What `srm-control` writes there is in `core/lists.py`. Only whoever knows all acts knows the lists: a flow does not
begin without them, and one that runs keeps what it knows where the topic cannot be read any more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone

from srm_spark.core.acts import AnyAct, Command, CommandState, Scope, act_id, decode
from srm_spark.core.cluster import Cluster
from srm_spark.core.lists import NO_LISTS, Act, Change, ListKind, Lists, ListState, change_between
from srm_spark.core.model import TopicPartition
from srm_spark.core.news import News
from srm_spark.core.wording import count
from srm_spark.errors import ActNotUnderstood, CodecError, FlowError, TargetUnavailable
from srm_spark.flow.clusters import Clusters
from srm_spark.flow.topics.commands import FlowCommands
from srm_spark.flow.topics.followed import FollowedTopic

log = logging.getLogger(__name__)


@dataclass
class KnownActs:
    """What the runs of one driver have read of a flow's acts.

    It counts for its next run, too: a retry must not begin what a deleted topic has kept out.
    """

    acts: Sequence[tuple[str, AnyAct]] = ()


class ActLog:
    """The control topic; `state` and `commands` are what the acts read so far add up to."""

    def __init__(self, cluster: Cluster, topic: str, role: str, earlier: Sequence[tuple[str, AnyAct]] = ()) -> None:
        """`cluster` is where it lies: the target. `earlier` acts count though the topic may hold them no more."""
        self.state = ListState()
        self.held = ListState()
        """The same without what only a topic held that is gone."""
        self.commands, self.held_commands = CommandState(), CommandState()
        self.acts: list[tuple[str, AnyAct]] = []
        """Ids and acts of all kinds, in the order of the log."""
        self.keys: set[bytes] = set()
        """Of the acts that it holds."""
        self.strange = 0
        """Records that are no acts."""
        self._cluster = cluster
        self._topic = FollowedTopic(cluster, topic, role, TargetUnavailable, cluster.timeout, forget=self._forget)
        self._unknown: str | None = None
        self._ids: set[str] = set()
        for act, what in earlier:
            self._count(act, what)

    @property
    def newest(self) -> str | None:
        """Id of the newest act."""
        return self.acts[-1][0] if self.acts else None

    @property
    def is_there(self) -> bool:
        """Whether the topic exists, as far as we may see."""
        return bool(self._cluster.topic_ids([self._topic.topic]))

    def gone(self) -> str | None:
        """What was deleted in front of the first act that it holds, in a sentence; None where nothing was."""
        first = self._cluster.first_offsets([TopicPartition(self._topic.topic, 0)], waits=False)
        if not (start := next(iter(first.values()), 0)):
            return None
        what = f"topic {self._topic.topic} begins at offset {start}: what was in front of it was deleted"
        return f"{what} and counts no more; look at the lists, and add again what is missing"

    def require(self) -> None:
        """Raises where the topic does not show, though it was made."""
        name = self._topic.topic
        if name not in self._cluster.topics():
            right = f"it does not show; allow READ on topic {name} to the principal of these credentials"
            raise self._cluster.refused(f"read the lists in topic {name}", right)

    def refresh(self) -> list[AnyAct]:
        """Acts since the last call.

        Raises where they cannot be read, and from then on where one is not understood. What was read of a topic that
        was deleted or made anew stays; acts of the new one come on top of it.
        """
        new: list[AnyAct] = []
        if self._unknown is None:
            for record in self._topic.new_records():
                try:
                    act = decode(record.key, record.value)
                except ActNotUnderstood as error:
                    self._unknown = f"the record at offset {record.offset} is not understood: {error}"
                    break
                except CodecError:
                    self.strange += record.value is not None
                    continue
                if record.key in self.keys:  # written twice: the second one would undo what came between
                    continue
                self._take(act_id(record.key), act)
                self.keys.add(record.key or b"")
                new.append(act)
        if self._unknown is not None:
            raise self._cluster.refused(f"read the lists in topic {self._topic.topic}", self._unknown)
        return new

    def unheld(self) -> dict[ListKind, Change]:
        """What goes on to count though the topic does not hold it: what would have to be written again."""
        changes = {kind: change_between(self.held.of(kind), self.state.of(kind)) for kind in ListKind}
        return {kind: change for kind, change in changes.items() if change}

    def unheld_pauses(self) -> list[Command]:
        """The same of pauses."""
        held = self.held_commands.pauses
        return [pause for scope, pause in self.commands.pauses.items() if scope not in held]

    def close(self) -> None:
        """Stop reading."""
        self._topic.close()

    def _take(self, act: str, what: AnyAct) -> None:
        if act not in self._ids:
            self._count(act, what)
        if isinstance(what, Act):
            self.held.take(what)
        else:
            self.held_commands.take(act, what)

    def _count(self, act: str, what: AnyAct) -> None:
        self._ids.add(act)
        self.acts.append((act, what))
        if isinstance(what, Act):
            self.state.take(what)
        else:
            self.commands.take(act, what)

    def _forget(self) -> None:
        self.held, self.held_commands = ListState(), CommandState()
        self.keys.clear()


class FlowLists:
    """Keeps the filters of a flow as its lists say, and hands on what else is done to it."""

    def __init__(
        self, clusters: Clusters, commands: FlowCommands | None = None, known: KnownActs | None = None
    ) -> None:
        """`known` is what earlier runs of the driver have read."""
        settings = clusters.settings
        self._known = known or KnownActs()
        self._flow, self._filters = settings.flow, clusters.filters
        self._topic = settings.control_topic
        self._acts = ActLog(clusters.target, settings.control_topic, f"{settings.flow}|lists", self._known.acts)
        self._commands = commands or FlowCommands(clusters)
        self._news = News()
        self._since: str | None = None
        self._changed = threading.Event()

    def begin(self) -> None:
        """Read them; the topic has been made. Raises TargetUnavailable: with half a list nothing may begin."""
        self._acts.require()
        self._acts.refresh()
        self._known.acts = tuple(self._acts.acts)
        self._tell_unheld()
        self._filters.take(self._acts.state.lists)
        self._commands.begin(self._acts.commands, self._acts.newest)
        self._tell_strange()
        if (gone := self._acts.gone()) is not None:
            log.warning("flow=%s lists: %s", self._flow, gone)
        if said := _summary(self._acts.state.lists):
            log.info("flow=%s lists: %s", self._flow, said)

    def look(self) -> None:
        """Take in what was changed since; where that fails what is known goes on to count."""
        known, failure = len(self._acts.acts), None
        try:
            self._acts.refresh()
        except FlowError as error:
            failure = error
        self._take([act for _, act in self._acts.acts[known:]])  # those before a failure, too
        if failure is None:
            self._tell_well()
        else:
            self._tell_failure(failure)

    def topics_changed(self) -> bool:
        """Whether the topic lists were changed since the last call."""
        if not self._changed.is_set():
            return False
        self._changed.clear()  # where it was not set, that would undo what happens now
        return True

    def close(self) -> None:
        """Stop reading."""
        self._acts.close()

    def _take(self, acts: list[AnyAct]) -> None:
        for act in acts:
            log.info("flow=%s %s%s", self._flow, "lists: " if isinstance(act, Act) else "", act)
        if acts:
            self._known.acts = tuple(self._acts.acts)
        if ListKind.TOPICS in self._filters.take(self._acts.state.lists):
            self._changed.set()
        if acts:  # behind the lists: from here on all of it may be answered
            self._commands.take(self._acts.commands, self._acts.newest)
        self._tell_strange()

    def _tell_strange(self) -> None:
        if self._news.is_new("strange", self._acts.strange or None):
            what, text = (
                count(self._acts.strange, "record"),
                "flow=%s lists: passed over %s of topic %s: no act of srm-control",
            )
            log.warning(text, self._flow, what, self._topic)

    def _tell_well(self) -> None:
        if self._since is None:
            return
        log.info("flow=%s lists: topic %s is read again, as it was until %s", self._flow, self._topic, self._since)
        self._since = None
        self._tell_unheld()

    def _tell_unheld(self) -> None:
        for kind, change in self._acts.unheld().items():
            text = "flow=%s lists: topic %s was made anew without %s %s, which count until the driver ends: add them"
            log.warning(text, self._flow, self._topic, kind.value, change.short())
        for pause in self._acts.unheld_pauses():
            text = "flow=%s topic %s was made anew without a pause: %s, until the driver ends: pause it again"
            log.warning(text, self._flow, self._topic, f"{pause.scope} is {pause.held}")

    def _tell_failure(self, error: FlowError) -> None:
        if self._since is None:  # once, however the words of the failure change
            self._since = datetime.now(timezone.utc).isoformat(timespec="seconds")
            text = "flow=%s lists: what is known goes on to count, changes since %s do not: %s"
            log.warning(text, self._flow, self._since, error)


def take_lists(clusters: Clusters) -> Mapping[Scope, Command]:
    """Let the filters be as the lists say now, for a command; the pauses that are in force.

    Where nothing was ever changed there is no topic. Raises TargetUnavailable.
    """
    settings = clusters.settings
    with closing(ActLog(clusters.target, settings.control_topic, f"{settings.flow}|lists")) as acts:
        if acts.is_there:
            acts.refresh()
    clusters.filters.take(acts.state.lists)
    return acts.commands.pauses


def _summary(lists: Mapping[ListKind, Lists]) -> str:
    """How many entries the lists have; empty where they have none."""
    parts = []
    for kind in ListKind:
        of_kind = lists.get(kind, NO_LISTS)
        if not of_kind.is_empty:
            parts.append(f"{kind.value} allow={len(of_kind.allow)} deny={len(of_kind.deny)}")
    return ", ".join(parts)
