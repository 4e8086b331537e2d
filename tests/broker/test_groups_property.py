"""Random topics, random groups at every lag, random restarts: a translated offset is the next unread record's, always.

`SRM_SEED=N` repeats a run.
"""

from __future__ import annotations

import os
import random

import pytest

from srm_spark.driver import Driver
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_lag_zero
from tests.broker.pair_io import FAST
from tests.broker.random_topics import Copies, Place, RandomTopics, wrong
from tests.group_io import Checkpoint, commit, read_checkpoints
from tests.kafka_io import Kafka

pytestmark = pytest.mark.slow

ROUNDS = 2
GROUPS = 10
"""New ones in each round and direction; older ones stay where they were, and must stay right."""

Stands = dict[tuple[str, Place], int]
"""Group and source partition → where the group stands: on the source, or on the remote partition."""


def test_every_group_goes_on_at_its_next_unread_record(pair: Pair) -> None:
    seed = int(os.environ.get("SRM_SEED") or random.randrange(10**6))
    print(f"SRM_SEED={seed}")
    topics = RandomTopics(pair, random.Random(seed))
    topics.create()
    forward: Stands = {}
    backward: Stands = {}
    driver = _start(pair)
    for number in range(ROUNDS):
        topics.change()
        if topics.random.random() < 0.5:
            driver.stop()
            topics.change()
            driver = _start(pair)
        await_lag_zero(driver)
        for one in range(GROUPS):
            forward |= _commit(topics, pair.source, "", f"g{pair.unique}-{number}-{one}")
            backward |= _commit(topics, pair.target, f"{pair.alias}.", f"r{pair.unique}-{number}-{one}")
        copies = {
            (t, p): found
            for t in topics.partitions
            for p, found in topics.copies(pair.target.read(pair.alias + "." + t)).items()
        }
        _check(pair.target, f"{pair.alias}.checkpoints.internal", f"{pair.alias}.", forward, copies)
        swapped = {place: [(down, up) for up, down in found] for place, found in copies.items()}
        _check(pair.source, f"{pair.target_alias}.checkpoints.internal", "", backward, swapped)
        topics.trim()


def _start(pair: Pair) -> Driver:
    keys = {
        **FAST,
        "topics": f".*-{pair.unique}",
        "groups": f"[gr]{pair.unique}-.*",
        f"{pair.alias}.consumer.isolation.level": "read_committed",
    }
    return pair.start(pair.clusters, [pair.flow, f"{pair.target_alias}->{pair.alias}"], keys)


def _commit(topics: RandomTopics, cluster: Kafka, prefix: str, group: str) -> Stands:
    """Let a new group stand anywhere in the topics of the source, or in their copies."""
    stands = topics.anywhere({topic: cluster.ends(prefix + topic) for topic in topics.partitions})
    commit(cluster, group, {(prefix + topic, partition): at for (topic, partition), at in stands.items()})
    return {(group, place): at for place, at in stands.items()}


def _check(cluster: Kafka, checkpoints: str, prefix: str, stands: Stands, copies: dict[Place, Copies]) -> None:
    def found() -> dict[tuple[str, str, int], list[Checkpoint]]:
        return read_checkpoints(cluster, checkpoints) if checkpoints in cluster.topics() else {}

    wanted = {(group, prefix + t, p): at for (group, (t, p)), at in stands.items() if copies.get((t, p))}
    assert wanted

    def is_there() -> bool:
        now = found()
        return all(key in now and now[key][-1].upstream == at for key, at in wanted.items())

    await_until(is_there, SOON, lambda: f"checkpoints of {wanted.keys() - found().keys()}")
    now = found()
    for (group, (topic, partition)), at in stands.items():
        if (last := now.get((group, prefix + topic, partition))) is not None:
            skipped = list(wrong(copies.get((topic, partition), []), at, last[-1].downstream))
            assert not skipped, f"{group} on {topic}-{partition} at {at} was translated to {last[-1]}: {skipped}"
