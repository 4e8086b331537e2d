"""Consumer groups: exact checkpoints for every position, and offsets on the target while nobody consumes there."""

from __future__ import annotations

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition

from srm_spark.config.settings import ClusterSettings
from srm_spark.driver import Driver
from srm_spark.flow.groups.sync import Synced, SyncState
from srm_spark.kafka.group_calls import GroupCalls, SharedProcess
from srm_spark.kafka.group_server import Described
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_count, await_lag_zero
from tests.broker.pair_io import FAST, transactions
from tests.group_io import Checkpoint, commit, committed, member, next_record, next_unread, read_checkpoints
from tests.kafka_io import numbered


def checkpoints(pair: Pair) -> dict[tuple[str, str, int], list[Checkpoint]]:
    name = f"{pair.alias}.checkpoints.internal"
    return read_checkpoints(pair.target, name) if name in pair.target.topics() else {}


def synced(driver: Driver) -> tuple[Synced, ...]:
    report = driver.status()[0].consumers
    return () if report is None else report.synced


def test_every_position_is_translated_exactly_after_restarts_too(pair: Pair) -> None:
    keys = {**FAST, f"{pair.alias}.consumer.isolation.level": "read_committed", "groups": f"g{pair.unique}.*"}
    pair.source.create(pair.topic(), 2)
    transactions(pair, pair.topic(), 2, 3)
    driver = pair.replicate(keys)
    await_count(pair.target, pair.remote(), 16)
    await_lag_zero(driver)
    driver.stop()
    transactions(pair, pair.topic(), 2, 3)
    driver = pair.replicate(keys)
    await_count(pair.target, pair.remote(), 32)
    await_lag_zero(driver)
    source, remote = pair.source.read(pair.topic(), committed=True), pair.target.read(pair.remote())
    ends = pair.source.ends(pair.topic())
    wanted = {}
    for offset in range(max(ends.values()) + 1):
        group, stands = f"g{pair.unique}-{offset}", {(pair.topic(), p): min(offset, end) for p, end in ends.items()}
        commit(pair.source, group, stands, f"at {offset}")
        for (_, partition), at in stands.items():
            there = next_unread(source, remote, partition, at)
            wanted[group, pair.remote(), partition] = [Checkpoint(at, there, f"at {offset}")]
    assert len(wanted) > 40
    await_until(lambda: len(checkpoints(pair)) == len(wanted), SOON, "a checkpoint for every position")
    assert checkpoints(pair) == wanted


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_offsets_are_set_exactly_while_nobody_consumes(pair: Pair, protocol: str) -> None:
    group = f"g{pair.unique}"
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    reader = member(pair.source, group, pair.topic(), group_protocol=protocol)
    try:
        for _ in range(7):
            reader.commit(message=next_record(reader), asynchronous=False)
    finally:
        reader.close()
    driver = pair.replicate({**FAST, "groups": group, "sync.group.offsets.enabled": "true"})
    place = (pair.remote(), 0)
    await_until(
        lambda: committed(pair.target, group, pair.remote()).get(place, (0, ""))[0] == 7, SOON, "the group stands at 7"
    )
    there = member(pair.target, group, pair.remote(), group_protocol=protocol)
    try:
        message = next_record(there)
        assert (message.value(), message.offset()) == (b"v7", 7)
        # It is active on the target now: nothing that happens on the source moves it.
        commit(pair.source, group, {(pair.topic(), 0): 9})
        await_until(
            lambda: any(verdict.state.name == "ACTIVE" for verdict in synced(driver)), SOON, "seen to be active"
        )
        assert committed(pair.target, group, pair.remote())[place][0] == 7
    finally:
        there.close()
    await_until(lambda: committed(pair.target, group, pair.remote())[place][0] == 9, SOON, "it left, and is moved on")


def _verdict_at(driver: Driver, upstream: int) -> str | None:
    """What became of the group's position in the newest round that saw it at `upstream`."""
    return next((found.state.name for found in synced(driver) if found.position.committed.offset == upstream), None)


def test_a_group_that_rewinds_on_the_source_rewinds_on_the_target_where_that_is_wanted(pair: Pair) -> None:
    """It is; `tests/unit/test_consumer_groups.py` has the other case, too."""
    group, here, there = f"g{pair.unique}", (pair.topic(), 0), (pair.remote(), 0)
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    keys = {**FAST, "groups": group, "sync.group.offsets.enabled": "true"}
    driver = pair.replicate({**keys, "sync.group.offsets.rewinds.enabled": "true"})

    def await_stand(upstream: int, verdicts: tuple[str, ...], downstream: int) -> None:
        commit(pair.source, group, {here: upstream})
        await_until(lambda: _verdict_at(driver, upstream) in verdicts, SOON, lambda: f"{verdicts}: {synced(driver)}")
        assert committed(pair.target, group, pair.remote())[there][0] == downstream

    await_stand(8, ("SYNCED", "IN_STEP"), 8)
    await_stand(3, ("SYNCED", "IN_STEP"), 3)
    commit(pair.target, group, {there: 6})  # it consumed there
    await_stand(2, ("AHEAD",), 6)


def test_a_client_process_that_dies_is_started_again(pair: Pair) -> None:
    """A coordinator that moves kills the client library (librdkafka issue 5040); the driver must not notice."""
    others = _group_servers()
    group = f"g{pair.unique}"
    pair.source.create(pair.topic())
    commit(pair.source, group, {(pair.topic(), 0): 4})
    settings = ClusterSettings(pair.alias, pair.source.bootstrap_servers)
    calls = GroupCalls(settings, {}, "test", SharedProcess())  # others of this test process may use theirs
    try:
        expected = {group: [(pair.topic(), 0, 4, "")]}
        assert calls.offsets([group], 30) == expected
        (child,) = _group_servers() - others
        child.kill()
        child.wait(10)
        assert calls.offsets([group], 30) == expected
        assert calls.commit(group, [(pair.topic(), 0, 5, "moved")], 30) == {(pair.topic(), 0): None}
        assert calls.offsets([group], 30) == {group: [(pair.topic(), 0, 5, "moved")]}
        assert calls.describe([group, f"no{group}"], 30) == {group: Described("EMPTY"), f"no{group}": Described("DEAD")}
    finally:
        calls.close()
    assert _group_servers() <= others


def _group_servers() -> set[psutil.Process]:
    return {p for p in psutil.Process().children() if "group_server" in " ".join(p.cmdline())}


def test_an_offset_that_an_open_transaction_may_move_is_not_taken_for_none(pair: Pair) -> None:
    """On the target a group would be set back to where it stands on the source, behind what it has done there."""
    group = f"g{pair.unique}"
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    driver = pair.replicate({**FAST, "groups": group, "sync.group.offsets.enabled": "true"})
    await_count(pair.target, pair.remote(), 10)
    producer = pair.target.producer(transactional_id=f"tx-{pair.unique}")
    consumer = Consumer({**pair.target.options, "group.id": group})
    metadata = consumer.consumer_group_metadata()
    consumer.close()
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(pair.remote(), 0, 8)], metadata, 30)
    commit(pair.source, group, {(pair.topic(), 0): 3})
    told = "a transaction that may move its offset there is open"
    await_until(
        lambda: [(one.state, one.detail) for one in synced(driver)] == [(SyncState.REFUSED, told)],
        SOON,
        lambda: f"the sync tells of it: {synced(driver)}",
    )
    producer.commit_transaction(30)
    await_until(lambda: [one.state for one in synced(driver)] == [SyncState.AHEAD], SOON, "it is further there")
    assert [offset for offset, _ in committed(pair.target, group, pair.remote()).values()] == [8]
