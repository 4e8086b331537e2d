"""Offset syncs in both directions: MirrorMaker 2's own checkpoints from ours, and our translation from its."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from srm_spark.core.checkpoints import TranslationStatus
from srm_spark.core.model import TopicPartition
from srm_spark.core.offset_sync_store import OffsetSyncStore
from srm_spark.driver import Driver
from srm_spark.flow.groups.positions import GroupPosition
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_count, await_lag_zero
from tests.broker.mirror_maker import checkpoint_connector, mirror_maker
from tests.broker.sync_reader import read_syncs
from tests.group_io import commit, next_unread, read_checkpoints
from tests.kafka_io import numbered, produce

LAG_MAX = {"offset.lag.max": "10"}
FAST = {"emit.checkpoints.interval.seconds": "1", "refresh.groups.interval.seconds": "1"}


def transactions(pair: Pair, count: int, size: int = 14, prefix: str = "") -> None:
    """Each one leaves a marker behind, so both sides count differently."""
    producer = pair.source.producer(transactional_id=f"tx-{pair.unique}")
    producer.init_transactions(30)
    for number in range(count):
        producer.begin_transaction()
        produce(producer, pair.topic(), numbered(size, 2, f"{prefix}{number}-"))
        producer.commit_transaction(30)


def groups_everywhere(pair: Pair, step: int = 1) -> dict[str, int]:
    """A group at every so many offsets of both partitions; group → offset."""
    ends = pair.source.ends(pair.topic())
    groups = {f"g{pair.unique}-{offset:03}": offset for offset in range(0, max(ends.values()) + 1, step)}
    for group, offset in groups.items():
        commit(pair.source, group, {(pair.topic(), p): min(offset, end) for p, end in ends.items()})
    return groups


def test_mirror_makers_checkpoint_connector_reads_our_offset_syncs(pair: Pair, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), 2)
    transactions(pair, 4)
    driver = pair.replicate({**LAG_MAX, "emit.checkpoints.enabled": "false"})
    await_count(pair.target, pair.remote(), 56)
    transactions(pair, 3, 60, "more ")
    await_count(pair.target, pair.remote(), 236)
    await_lag_zero(driver)
    stores = {partition: OffsetSyncStore() for partition in (0, 1)}
    for _, partition, upstream, downstream in read_syncs(pair.source, f"mm2-offset-syncs.{pair.target_alias}.internal"):
        stores[partition].add((upstream, downstream))
    groups = groups_everywhere(pair, 5)
    name = f"{pair.alias}.checkpoints.internal"
    keys = {"groups": f"g{pair.unique}.*", "topics": pair.topic()}

    with checkpoint_connector(tmp_path, pair.clusters, pair.flow, keys):

        def has_all() -> bool:
            found = read_checkpoints(pair.target, name) if name in pair.target.topics() else {}
            return len(found) == 2 * len(groups)

        await_until(has_all, 2 * SOON, lambda: f"its checkpoints: {(tmp_path / 'connect.log').read_text()[-2000:]}")
    source, remote, ends = (
        pair.source.read(pair.topic(), committed=True),
        pair.target.read(pair.remote()),
        pair.source.ends(pair.topic()),
    )
    for (group, topic, partition), history in read_checkpoints(pair.target, name).items():
        at = min(groups[group], ends[partition])
        unread = next_unread(source, remote, partition, at)
        assert (topic, history[-1].upstream) == (pair.remote(), at)
        assert history[-1].downstream == stores[partition].downstream(at)
        assert history[-1].downstream <= unread
        assert at < ends[partition] or history[-1].downstream == unread  # the end of each batch has a sync


def sampled(driver: Driver) -> Iterator[GroupPosition]:
    report = driver.status()[0].consumers
    for found in () if report is None else report.positions.known:
        if found.translation.status is TranslationStatus.SAMPLED:
            yield found


def by_checkpoint(driver: Driver) -> dict[tuple[str, TopicPartition], int | None]:
    report = driver.status()[0].consumers
    return {
        (found.group, found.partition): found.translation.downstream
        for found in (() if report is None else report.positions.known)
        if found.translation.status is TranslationStatus.CHECKPOINT
    }


@pytest.mark.slow
def test_positions_in_what_mirror_maker_copied_are_translated_by_its_offset_syncs(pair: Pair, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), 2)
    with mirror_maker(tmp_path, pair.clusters, pair.flow, {**LAG_MAX, "topics": pair.topic()}):
        await_until(lambda: pair.remote() in pair.target.topics(), SOON, "its remote topic")
        for number in range(4):  # it has one sync per partition and poll: some are passed over
            transactions(pair, 1, 60, f"mm2 {number} ")
            await_count(pair.target, pair.remote(), 60 * (number + 1))
    groups = groups_everywhere(pair, 3)

    driver = pair.replicate({**LAG_MAX, **FAST, "groups": f"g{pair.unique}.*"})
    transactions(pair, 2, prefix="ours ")
    await_count(pair.target, pair.remote(), 268)
    await_lag_zero(driver)
    source, remote = pair.source.read(pair.topic(), committed=True), pair.target.read(pair.remote())
    name = f"{pair.alias}.checkpoints.internal"
    await_until(lambda: name in pair.target.topics(), SOON, "checkpoints")
    await_until(lambda: len(read_checkpoints(pair.target, name)) == 2 * len(groups), SOON, "one of each group")
    for (group, _, partition), history in read_checkpoints(pair.target, name).items():
        assert history[-1].upstream == groups[group]
        assert history[-1].downstream <= next_unread(source, remote, partition, groups[group])

    found = list(sampled(driver))
    assert len(found) > 20
    for position in found:
        at, there, partition = position.committed.offset, position.translation.downstream, position.partition.partition
        assert there is not None
        unread = next_unread(source, remote, partition, at)
        copies = {stored.record for stored in remote[partition] if there <= stored.offset < unread}
        assert len(copies) <= position.translation.reread
    report = driver.status()[0].consumers
    assert report is not None
    for position in report.positions.known:
        if position.translation.status is TranslationStatus.EXACT:
            unread = next_unread(source, remote, position.partition.partition, position.committed.offset)
            assert position.translation.downstream == unread

    driver.stop()  # compaction takes all syncs but the newest in the end; here it is thorough
    known = {(one.group, one.partition): one.translation.downstream for one in found}
    pair.source.delete(f"mm2-offset-syncs.{pair.target_alias}.internal")
    driver = pair.replicate({**LAG_MAX, **FAST, "groups": f"g{pair.unique}.*"})
    await_until(lambda: known.items() <= by_checkpoint(driver).items(), SOON, "what checkpoints keep")
