"""What is found out about a flow from its clusters alone: what is not known is never a number."""

from __future__ import annotations

from srm_spark.cli.status_view import documents, text
from srm_spark.core.acls import Acl
from srm_spark.core.acts import Command, CommandKind, Scope, scope_of
from srm_spark.core.driver_status import FlowState, drivers_of
from srm_spark.core.lists import Act, Change, ListKind
from srm_spark.core.model import ProgressDetail, TopicPartition
from srm_spark.core.standstills import Standstill
from srm_spark.core.tail import TailRecord
from srm_spark.errors import TargetUnavailable
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.topics.committer import committer_of
from srm_spark.flow.topics.internal_topics import ensure_topic, map_topic
from srm_spark.flow.topics.remote_acls import record_acls, record_staged
from srm_spark.flow.topics.status_topic import StatusTopic
from srm_spark.look.flows import FlowLook, FlowReport, look_at
from tests.unit.memory_flow import HERE
from tests.unit.memory_run import World
from tests.unit.memory_words import act, now, say


def look(world: World) -> FlowReport:
    return FlowLook(world.flow.settings, world.flow.reach).look()


def test_before_the_first_driver_nothing_is_known_but_how_much_there_is_to_copy() -> None:
    world = World()
    world.flow.write(b"a", b"b", b"c")
    found = look(world)
    assert (found.drivers.state, found.unknown_since, found.lag.records) == (None, None, 3)
    assert found.lag.bytes is None, "nothing was copied that would tell how large records are"
    (row,) = found.partitions
    assert (row.partition, row.remote, row.next_offset, row.end) == (HERE, TopicPartition("A.t", 0), None, 3)


def test_acls_that_wait_for_a_failover_and_those_that_one_put_in_force() -> None:
    world = World({"sync.topic.acls.write.policy": "failover"})
    assert (look(world).staged_acls, look(world).write_acls) == (0, 0)
    writes = Acl("A.t", "LITERAL", "User:ann", "*", "WRITE", "ALLOW")
    ensure_topic(world.flow.target, map_topic(world.flow.settings))
    record_staged(world.flow.clusters, set(), {writes, writes._replace(principal="User:bob")})
    record_acls(world.flow.clusters, set(), {writes})
    found = look(world)
    assert (found.staged_acls, found.write_acls) == (1, 1)
    lines = text([found]).splitlines()
    assert "  A->B: 1 ACL staged for failover" in lines
    assert any("1 ACL to write remote topics in force since a failover: srm-control failback" in line for line in lines)
    assert (look(World()).staged_acls, look(World()).write_acls) == (None, None)


def test_where_the_record_of_acls_cannot_be_read_they_alone_are_not_known() -> None:
    world = World({"sync.topic.acls.write.policy": "failover"})
    world.flow.write(b"a")
    world.copied()
    ensure_topic(world.flow.target, map_topic(world.flow.settings))
    record_staged(world.flow.clusters, set(), {Acl("A.t", "LITERAL", "User:ann", "*", "WRITE", "ALLOW")})

    def happens(what: str) -> None:
        if what.startswith(f"read {world.flow.settings.map_topic}-"):
            raise TargetUnavailable("no READ on it")

    world.flow.target.happens = happens
    found = look(world)
    assert (found.target_down, found.lag.records, found.staged_acls, found.write_acls) == (None, 0, None, None)
    assert documents([found])["flows"][0]["acls_unknown"] == found.acls_unknown == "no READ on it"
    assert "  A->B: which ACLs wait for a failover, or came by one, is not known: no READ on it" in text([found])


def test_lag_in_records_bytes_and_seconds() -> None:
    world = World()
    world.flow.write(b"a", b"b")
    world.copied()
    assert (look(world).lag.records, look(world).lag.seconds, look(world).lag.bytes) == (0, 0.0, 0)
    world.flow.log.append(TailRecord(0, now() - 30_000, b"k", b"old"))
    world.flow.log.append(TailRecord(0, now(), b"k", b"new"))
    lag = look(world).lag
    assert lag.records == 2
    assert lag.seconds is not None
    assert 30 <= lag.seconds < 40
    assert lag.told_by == "clusters"


def test_bytes_are_estimated_by_what_was_copied() -> None:
    world = World()
    world.flow.write(b"a", b"b")
    assigned = world.flow.start().assignment
    source, intervals = world.flow.copy()
    logs = assigned.logs[HERE]
    detail = ProgressDetail(source, world.flow.remote.end, tuple(intervals), logs=logs, bytes=200)
    committer_of(world.flow.clusters, {}, None).commit({HERE: detail})
    assert look(world).lag.bytes == 0
    world.flow.write(b"c", b"d", b"e")
    assert look(world).lag.bytes == 300
    say(world, standing=[Standstill(scope_of(HERE), "held at offset 2: it is too large")])
    assert look(world).lag.bytes is None, "a record that is refused is no usual one"


def test_without_a_timestamp_the_age_is_unknown() -> None:
    world = World()
    world.flow.log.append(TailRecord(0, -1, b"k", b"v"))
    assert look(world).lag.records == 1
    assert look(world).lag.seconds is None


def test_a_silent_driver_leaves_its_state_unknown_since_its_last_word() -> None:
    world = World()
    world.copied()
    at = say(world, ago=60, lag=7)
    found = look(world)
    assert (found.drivers.state, found.unknown_since) == (None, at)
    assert found.lag.records == 0, "both clusters say so now, whatever the driver said"


def test_with_the_source_down_the_lag_is_unknown_since_the_driver_lost_it() -> None:
    world = World()
    world.copied()
    since = now() - 9_000
    say(world, FlowState.STALLED, unknown_since=since)
    world.flow.source.down = "no route"
    found = look(world)
    assert (found.lag.records, found.lag.bytes, found.lag.seconds) == (None, None, None)
    assert found.lag.unknown_since == since
    assert "no route" in (found.source_down or "")
    assert found.drivers.state is FlowState.STALLED
    (row,) = found.partitions
    assert (row.end, row.records) == (None, None)


def test_with_the_source_and_the_driver_gone_the_lag_is_unknown_since_the_drivers_last_word() -> None:
    world = World()
    world.copied()
    at = say(world, ago=60, lag=0)
    world.flow.source.down = "no route"
    found = look(world)
    assert (found.lag.records, found.lag.unknown_since, found.unknown_since) == (None, at, at)


def test_a_driver_that_had_lost_the_lag_before_it_was_killed_leaves_it_unknown_since_then() -> None:
    world = World()
    world.copied()
    since = now() - 90_000
    at = say(world, FlowState.STALLED, ago=60, unknown_since=since)
    world.flow.source.down = "no route"
    found = look(world)
    assert (found.lag.unknown_since, found.unknown_since) == (since, at)


def test_a_source_that_only_the_driver_reaches_is_told_by_the_driver() -> None:
    world = World()
    world.copied()
    say(world, lag=5)
    world.flow.source.down = "no route"
    lag = look(world).lag
    assert (lag.records, lag.seconds, lag.told_by) == (5, None, "driver")


def test_with_the_target_down_all_is_unknown_since_the_last_look_that_worked() -> None:
    world = World()
    world.copied()
    say(world, lag=0)
    one = FlowLook(world.flow.settings, world.flow.reach)
    known = one.look()
    world.flow.target.down = "no route"
    found = one.look()
    assert (found.drivers.state, found.lag.records, found.unknown_since) == (None, None, known.at)
    assert "no route" in (found.target_down or "")
    assert look(world).unknown_since is None, "who never saw it does not know since when"


def test_a_word_that_comes_while_somebody_looks_is_no_matter_of_clocks() -> None:
    world = World()
    world.copied()
    say(world, ago=3_600)
    one = FlowLook(world.flow.settings, world.flow.reach)
    assert one.look().drivers.owner is None
    say(world, ago=3_600)
    assert one.look().drivers.owner is not None


def test_a_word_that_was_there_at_the_first_look_ages_by_the_watchers_own_clock() -> None:
    world = World()
    world.copied()
    at = say(world, ago=60)
    seconds = [100.0]
    topic = StatusTopic(world.flow.settings, world.flow.target, "test", lambda: seconds[0])
    topic.refresh()
    behind = at - 60_000
    assert drivers_of(topic.words.values(), behind).owner is not None, "the host's clock is two minutes behind"
    seconds[0] += 60
    topic.refresh()
    assert drivers_of(topic.words.values(), behind).owner is None


def test_a_status_topic_that_was_deleted_is_begun_anew() -> None:
    world = World()
    world.copied()
    say(world)
    one = FlowLook(world.flow.settings, world.flow.reach)
    assert one.look().drivers.owner is not None
    world.flow.target.delete(world.flow.settings.status_topic)
    assert (one.look().target_down, one.look().drivers.owner) == (None, None)
    say(world)
    assert one.look().drivers.owner is not None
    world.flow.target.delete(world.flow.settings.status_topic)
    for _ in range(2):
        say(world, FlowState.STALLED)
    assert one.look().drivers.state is FlowState.STALLED


def test_what_is_held_is_told_by_the_owner_or_else_as_it_was_recorded() -> None:
    world = World()
    world.flow.write(b"a")
    world.refuse = lambda *_: Failure(FailureKind.TOO_LARGE, "it is too large")
    world.copied()
    assert look(world).held == {"t-0": "held at offset 0: it is too large"}
    assert look(world).partitions[0].kind is FailureKind.TOO_LARGE
    say(world, standing=[Standstill(Scope("t"), "A.t cannot be created")])
    assert look(world).held == {"t": "A.t cannot be created"}
    assert look(world).partitions[0].held == "A.t cannot be created"


def test_a_partition_without_a_leader_makes_the_lag_unknown() -> None:
    world = World()
    world.copied()
    world.flow.source.without_leader.add(HERE)
    lag = look(world).lag
    assert (lag.records, lag.seconds) == (None, None)
    assert "t-0 has no leader" in (lag.reason or "")


def test_a_topic_that_was_made_anew_or_cut_makes_the_lag_unknown() -> None:
    world = World()
    world.flow.write(*[b"x"] * 10)
    world.copied()
    world.flow.log.cut(5)
    assert (look(world).lag.records, look(world).partitions[0].records) == (None, None)
    world.topic("t", *[b"x"] * 20)
    lag = look(world).lag
    assert (lag.records, lag.reason) == (None, "t-0 is not the log that was copied any more on A")


def test_a_topic_that_was_deleted_is_no_part_of_the_lag_and_named() -> None:
    world = World()
    world.flow.write(b"a")
    world.topic("u", b"1", b"2")
    world.copied()
    world.topic("v", b"1", b"2", b"3")
    world.flow.source.delete("t")
    found = look(world)
    assert (found.lag.records, found.not_shown) == (3, ("t",))
    assert "  A->B: t is no part of the lag: A does not show it any more" in text([found]).splitlines()
    assert documents([found])["flows"][0]["not_shown"] == ["t"]


def test_where_the_whole_flow_is_paused_each_partition_stands_still() -> None:
    world = World()
    world.flow.write(b"a")
    world.copied()
    for one in (Standstill(Scope(), "by ann", FailureKind.PAUSED), Standstill(Scope(), "by ann")):
        act(world, Command(CommandKind.PAUSE, Scope(), 1, "ann@host", "x"))
        say(world, standing=[one])  # a driver of before does not say the kind
        (row,) = look(world).partitions
        assert (row.held, row.kind) == ("by ann", FailureKind.PAUSED)


def test_where_no_driver_runs_pauses_are_told_by_their_acts() -> None:
    world = World()
    world.flow.write(b"a")
    world.copied()
    act(world, Command(CommandKind.PAUSE, Scope("t"), 1, "ann@host", "x"))
    found = look(world)
    assert (found.held, found.partitions[0].kind) == ({"t": "paused by ann@host: x"}, FailureKind.PAUSED)


def test_topics_on_the_deny_list_are_no_part_of_the_lag() -> None:
    world = World()
    world.topic("u", b"1", b"2")
    assert look(world).lag.records == 2
    act(world, Act(ListKind.TOPICS, Change(add_deny=("u",)), 1, "ann@host"))
    assert look(world).lag.records == 0


def test_flows_are_looked_at_together() -> None:
    one, other = World(), World()
    other.flow.target.down = "away"
    found = look_at([FlowLook(world.flow.settings, world.flow.reach) for world in (one, other)])
    assert [report.target_down is None for report in found] == [True, False]
