"""Consumer groups: exact checkpoints for every position, and offsets on the target while nobody consumes there."""

from __future__ import annotations

from functools import partial

import psutil
import pytest

from srm_spark.config.settings import ClusterSettings
from srm_spark.driver import Driver
from srm_spark.flow.groups.sync import Synced
from srm_spark.kafka import group_calls
from srm_spark.kafka.group_calls import GroupCalls
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


def test_a_partition_without_records_translates_0_to_0_and_only_then(pair: Pair) -> None:
    pair.source.create(pair.topic("empty"), 2)
    pair.source.create(pair.topic("full"))
    pair.source.write(pair.topic("empty"), numbered(5))  # partition 0 only
    pair.source.write(pair.topic("full"), numbered(5))
    group = f"g{pair.unique}"
    commit(pair.source, group, {(pair.topic("empty"), 0): 5, (pair.topic("empty"), 1): 0, (pair.topic("full"), 0): 5})
    latest = {f"{pair.alias}.consumer.auto.offset.reset": "latest"}
    driver = pair.replicate({**FAST, **latest, "topics.exclude": pair.topic("empty"), "groups": group})
    await_lag_zero(driver)
    await_until(lambda: f"{pair.alias}.checkpoints.internal" in pair.target.topics(), SOON, "the topic")
    pair.source.write(pair.topic("full"), numbered(2, prefix="more"))
    await_until(lambda: checkpoints(pair), SOON, "a checkpoint once records flow")
    assert checkpoints(pair) == {(group, pair.remote("full"), 0): [Checkpoint(5, 0, "")]}
    driver.stop()
    pair.replicate({**FAST, "topics": pair.topic("empty"), "groups": group})
    await_until(lambda: len(checkpoints(pair)) == 3, SOON, "checkpoints of both partitions")
    assert checkpoints(pair)[group, pair.remote("empty"), 1] == [Checkpoint(0, 0, "")]
    assert checkpoints(pair)[group, pair.remote("empty"), 0][-1] == Checkpoint(5, 5, "")


def _stands_at(pair: Pair, key: tuple[str, str, int], offset: int) -> bool:
    return any(found.upstream == offset for found in checkpoints(pair).get(key, [])[-1:])


def test_checkpoints_are_monotonic_and_follow_a_group_that_rewinds(pair: Pair) -> None:
    group = f"g{pair.unique}"
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    place, key = (pair.topic(), 0), (group, pair.remote(), 0)
    pair.replicate({**FAST, "groups": group})
    for offset in (3, 8, 5, 10):
        commit(pair.source, group, {place: offset})
        await_until(partial(_stands_at, pair, key, offset), SOON, f"a checkpoint at {offset}")
    assert checkpoints(pair)[key] == [Checkpoint(at, at, "") for at in (3, 8, 5, 10)]


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


@pytest.mark.parametrize("follows", [True, False])
def test_a_group_that_rewinds_on_the_source_rewinds_on_the_target_where_that_is_wanted(
    pair: Pair, *, follows: bool
) -> None:
    group, here, there = f"g{pair.unique}", (pair.topic(), 0), (pair.remote(), 0)
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    keys = {**FAST, "groups": group, "sync.group.offsets.enabled": "true"}
    driver = pair.replicate({**keys, "sync.group.offsets.rewinds.enabled": str(follows).lower()})

    def await_stand(upstream: int, verdicts: tuple[str, ...], downstream: int) -> None:
        commit(pair.source, group, {here: upstream})
        await_until(lambda: _verdict_at(driver, upstream) in verdicts, SOON, lambda: f"{verdicts}: {synced(driver)}")
        assert committed(pair.target, group, pair.remote())[there][0] == downstream

    await_stand(8, ("SYNCED", "IN_STEP"), 8)
    if follows:
        await_stand(3, ("SYNCED", "IN_STEP"), 3)
        commit(pair.target, group, {there: 6})  # it consumed there
        await_stand(2, ("AHEAD",), 6)
    else:
        await_stand(3, ("AHEAD",), 8)


def test_filters_of_the_users_own(pair: Pair) -> None:
    """Of groups, and of what a remote topic inherits; that of topics is shown with the policies."""
    pair.source.create(pair.topic(), 1, {"segment.ms": "77777777", "retention.ms": "123456789"})
    for kind in ("paying", "free"):
        commit(pair.source, f"{pair.unique}-{kind}", {(pair.topic(), 0): 0})
    own = "tests.broker.policies"
    pair.replicate({**FAST, "group.filter.class": f"{own}:Paying", "config.property.filter.class": f"{own}:NoSegments"})
    await_until(lambda: checkpoints(pair), SOON, "a checkpoint")
    assert {group for group, _, _ in checkpoints(pair)} == {f"{pair.unique}-paying"}
    assert pair.target.configs(pair.remote()) == {"retention.ms": "123456789"}


def test_a_client_process_that_dies_is_started_again(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that moves kills the client library (librdkafka issue 5040); the driver must not notice."""
    monkeypatch.setattr(group_calls, "_shared", group_calls._Shared())  # others of this test process may use theirs
    others = _group_servers()
    group = f"g{pair.unique}"
    pair.source.create(pair.topic())
    commit(pair.source, group, {(pair.topic(), 0): 4})
    settings = ClusterSettings(pair.alias, pair.source.bootstrap_servers)
    calls = GroupCalls(settings, {}, "test")
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
