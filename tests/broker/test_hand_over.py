"""MirrorMaker 2, us, MirrorMaker 2 and us again, on one stream of records that never rests: each one once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from srm_spark.testing import JavaProcess
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.map_reader import mapped_pairs
from tests.broker.mirror import SOON, await_lag_zero
from tests.broker.mirror_maker import connect_cluster, mirror_maker
from tests.kafka_io import Kafka
from tests.soak.load import Load, compare, true_pairs

pytestmark = pytest.mark.slow

PARTITIONS = 3
FLUSH = "10000"
"""Milliseconds between two flushes of its offsets: what it writes in between is recorded nowhere."""
MirrorMaker = Callable[[], AbstractContextManager[JavaProcess]]


def _dedicated(pair: Pair, folder: Path) -> tuple[MirrorMaker, str, dict[str, str]]:
    """How to start it, its topic of offsets, and what our configuration says of it."""
    keys = {"topics": pair.topic(), f"{pair.target_alias}.offset.flush.interval.ms": FLUSH}
    return partial(mirror_maker, folder, pair.clusters, pair.flow, keys), pair.progress_topic, {}


def _in_connect(pair: Pair, folder: Path) -> tuple[MirrorMaker, str, dict[str, str]]:
    """The same for a Connect cluster, where topic and connector have names of their own."""
    offsets, name = f"connect-offsets-{pair.unique}", "orders-to-b"
    worker = {
        "group.id": f"connect-{pair.unique}",
        "offset.storage.topic": offsets,
        "config.storage.topic": f"connect-configs-{pair.unique}",
        "status.storage.topic": f"connect-status-{pair.unique}",
        "offset.flush.interval.ms": FLUSH,
    }
    connector = {
        "name": name,
        "topics": pair.topic(),
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "heartbeats.replication.enabled": "false",
        "sync.topic.acls.enabled": "false",
    }
    ours = {f"{pair.target_alias}.offset.storage.topic": offsets, f"{pair.flow}.name": name}
    return partial(connect_cluster, folder, pair.clusters, pair.flow, worker, connector), offsets, ours


@pytest.mark.parametrize("where", [_dedicated, _in_connect])
def test_mirror_maker_hands_over_to_us_and_takes_over_again_and_so_do_we(
    where: Callable[[Pair, Path], tuple[MirrorMaker, str, Mapping[str, str]]], pair: Pair, tmp_path: Path
) -> None:
    mirror_maker_2, offsets, ours = where(pair, tmp_path)
    source, target, topic, remote = pair.source, pair.target, pair.topic(), pair.remote()
    source.create(topic, PARTITIONS)
    with Load(source, topic, PARTITIONS) as load:
        with mirror_maker_2() as process:
            await_until(lambda: _recorded(target, offsets, topic), SOON, lambda: process.log_text()[-2000:])
            recorded = sum(_recorded(target, offsets, topic).values())
            await_until(lambda: target.count(remote) > recorded + 500, SOON, "records behind its last flush")
            process.kill()
        unrecorded = target.count(remote) - sum(_recorded(target, offsets, topic).values())
        assert unrecorded > 400, "it was killed right after a flush"
        driver = pair.replicate({"topics": topic, **ours})
        _await_more(target, remote, 1000)
        assert driver.stop()
        copied = _recorded(target, offsets, topic)
        assert sum(copied.values()) == target.given(remote), "what we record is what is there"
        told_before = mapped_pairs(target, pair.map_topic)
        with mirror_maker_2():
            _await_more(target, remote, 1000)
        driver = pair.replicate({"topics": topic, **ours})
        _await_more(target, remote, 500)
        load.end()
        await_until(lambda: target.count(remote) >= source.count(topic), SOON, "all records")
        await_lag_zero(driver)
    here, there = source.read(topic), target.read(remote)
    verdict = compare(here, there)
    assert verdict.records > 2500
    assert verdict.is_good, str(verdict)
    true, told = true_pairs(here, there), mapped_pairs(target, pair.map_topic)
    for partition, pairs in true.items():
        assert told[partition].items() <= pairs.items(), "the map says where records lie"
        assert max(told_before[partition]) == copied[partition] - 1, "of all that we had copied, and of no more"
        assert told_before[partition].items() <= told[partition].items(), "what was known before is known still"
        assert max(told[partition]) == max(pairs), "and what we copied then"
    assert sum(map(len, told_before.values())) >= 1000, "all that we copied is in the map"


def _await_more(target: Kafka, remote: str, more: int) -> None:
    there = target.count(remote)
    await_until(lambda: target.count(remote) >= there + more, SOON, f"{more} more records in {remote}")


def _recorded(target: Kafka, offsets: str, topic: str) -> dict[int, int]:
    """Partition → source offsets that are recorded as replicated; empty until every partition is."""
    if offsets not in target.topics():
        return {}
    found = {}
    for log in target.read(offsets).values():
        for stored in log:
            (_, place), value = json.loads(stored.record.key or b""), json.loads(stored.record.value or b"null")
            if place.get("topic") == topic:
                found[place["partition"]] = value["offset"] + 1
    return found if len(found) == PARTITIONS else {}
