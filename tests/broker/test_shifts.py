"""Other positions on real clusters: what is copied, what is told, where groups go on, and what a crash leaves."""

from __future__ import annotations

import json
import random
import threading
import time
from pathlib import Path

import pytest

from srm_spark.config.settings import FlowSettings
from srm_spark.core.acts import Command, CommandKind, Shift, scope_of
from srm_spark.core.model import OffsetRange, ProgressDetail, TopicPartition
from srm_spark.errors import ProgressFailed
from srm_spark.flow.clusters import connect
from srm_spark.flow.commanding import Commanding
from srm_spark.flow.topics.progress import ProgressTopic, ProgressWriter
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_count, await_lag_zero
from tests.broker.mirror_maker import checkpoint_connector
from tests.broker.pair_io import EXACTLY_ONCE, FAST, await_committed
from tests.broker.process import kill_all_of, srm_driver
from tests.broker.steered import Steered, ended
from tests.group_io import commit, read_checkpoints
from tests.kafka_io import numbered, records


@pytest.fixture
def steered(pair: Pair, tmp_path: Path) -> Steered:
    return Steered(pair, tmp_path)


def place(pair: Pair, group: str, partition: int) -> int | None:
    """Where a group goes on by its newest checkpoint."""
    name = f"{pair.alias}.checkpoints.internal"
    found = read_checkpoints(pair.target, name) if name in pair.target.topics() else {}
    history = found.get((group, pair.remote(), partition))
    return None if history is None else history[-1].downstream


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys",
    [{}, EXACTLY_ONCE, {"mode": "realtime"}],
    ids=["default", "exactly-once", "realtime"],
)
def test_positions_are_set_while_paused_and_what_is_skipped_is_told(keys: dict[str, str], steered: Steered) -> None:
    pair, name = steered.pair, steered.pair.topic()
    topic = ("--topic", name)
    pair.replicate({**keys, **FAST})
    await_committed(pair, 20)
    commit(pair.source, "g", {(name, 1): 8})
    refused = steered.run("offsets", "rewind", *topic, "--by", "2", "--yes")
    assert (refused.returncode, f"{name}-0: not done: it is not paused" in refused.stderr) == (3, True)
    steered("pause", *topic)
    steered.write("skipped and not")
    await_until(lambda: place(pair, "g", 1) is not None, SOON, "a checkpoint")
    first = place(pair, "g", 1)
    assert first is not None
    printed = steered("offsets", "skip", *topic, "--partition", "0", "--by", "4", "--yes")
    assert printed.startswith(f"{name}-0: goes on at 14 once it is resumed, says ")
    printed = steered("offsets", "rewind", *topic, "--partition", "1", "--to", "7", "--yes")
    assert printed.startswith(f"{name}-1: goes on at 7 once it is resumed, says ")
    positions = [line.split()[1:6] for line in steered("offsets", "list", *topic).splitlines()[1:]]
    assert positions == [["0", "14", "0", "20", "6"], ["1", "7", "0", "20", "13"]]
    steered("resume", *topic)
    await_committed(pair, 20 + 6 + 13)
    here = records(pair.source.read(name))
    there = records(pair.target.read(pair.remote(), committed=True))
    assert there == {0: here[0][:10] + here[0][14:], 1: here[1][:10] + here[1][7:]}
    losses = json.loads(ended(steered.run("losses", "-o", "json")))
    assert [(each["partition"], each["cause"], each["source"]) for each in losses] == [
        (0, "skipped", {"start": 10, "end": 14})
    ]
    history = [line.split(" ", 3)[-1] for line in steered("history").splitlines()]
    assert history[1].startswith(f"offsets {name}-0 10 to 14: carried out by ")
    assert history[2].startswith(f"offsets {name}-1 10 to 7: carried out by ")
    await_until(lambda: (place(pair, "g", 1) or 0) > first, SOON, "the checkpoint to go to the second copy")
    again = place(pair, "g", 1)
    found = {stored.offset: stored.record for stored in pair.target.read(pair.remote(), committed=True)[1]}
    assert again is not None
    assert found[first] == found[again] == here[1][8]


def patient(settings: FlowSettings) -> Commanding:
    return Commanding(settings, connect, 2 * SOON)


@pytest.mark.slow
def test_a_driver_that_is_killed_amid_it_leaves_it_done_once_or_not_at_all(
    pair: Pair, tmp_path: Path, chance: random.Random
) -> None:
    keys = chance.choice(({}, EXACTLY_ONCE))
    print(f"keys {keys}")
    steered = Steered(pair, tmp_path)
    of_flow = {f"{pair.flow}.{key}": value for key, value in keys.items()}
    settings, p = pair.settings(tmp_path), TopicPartition(pair.topic(), 1)
    with srm_driver(tmp_path, pair.clusters, [pair.flow], {**pair.keys, **of_flow}) as driver:
        await_committed(pair, 20)
        steered("pause", "--topic", pair.topic())
        with Commanding(settings) as commanding:
            start = commanding.progress.positions[p].next_offset
            topic_id = commanding.clusters.source.topic_ids([p.topic])[p.topic]
            act = Command(CommandKind.OFFSETS, scope_of(p), 1, "ann@host", "", Shift(start, start - 1, topic_id))
            (act_id,) = commanding.write(act)
        time.sleep(chance.uniform(0.2, 1.4))  # a driver looks each second; it may die at any moment of this
        kill_all_of(driver)
    with srm_driver(tmp_path, pair.clusters, [pair.flow], {**pair.keys, **of_flow}), patient(settings) as done:
        answer = done.shifted([act_id])[act_id]
        assert answer.declined is None

        def stands() -> int:
            done.refresh()
            return done.progress.positions[p].next_offset

        await_until(lambda: stands() == start - 1, SOON, lambda: f"position {start - 1}, it is {stands()}")
    steered("resume", "--topic", pair.topic())
    with srm_driver(tmp_path, pair.clusters, [pair.flow], {**pair.keys, **of_flow}):
        await_committed(pair, 21)
        steered.await_others()
    here = records(pair.source.read(pair.topic()))
    there = records(pair.target.read(pair.remote(), committed=True))
    assert there == {0: here[0], 1: here[1] + here[1][9:]}


@pytest.mark.slow
def test_a_driver_that_hung_amid_it_sets_nothing_any_more(pair: Pair, tmp_path: Path) -> None:
    """It has the flow's producer id, and writes the position when another driver has begun."""
    pair.source.create(pair.topic(), 1)
    driver = pair.replicate()
    pair.source.write(pair.topic(), numbered(10))
    await_count(pair.target, pair.remote(), 10)
    driver.stop()
    settings = pair.settings(tmp_path)
    has_it, goes_on, failed = threading.Event(), threading.Event(), []

    def hangs() -> None:
        has_it.set()
        assert goes_on.wait(SOON)

    clusters = connect(settings)
    writer = clusters.make_shift_writer(None, True, hangs)
    assert writer is not None

    def late() -> None:
        try:
            at = ProgressDetail(OffsetRange(2, 2), 10, ())
            ProgressWriter(settings, writer).commit({TopicPartition(pair.topic(), 0): at})
        except ProgressFailed as error:
            failed.append(str(error))

    thread = threading.Thread(target=late)
    thread.start()
    assert has_it.wait(SOON)
    pair.replicate()
    pair.source.write(pair.topic(), numbered(10))
    await_count(pair.target, pair.remote(), 20)
    goes_on.set()
    thread.join(2 * SOON)
    assert len(failed) == 1, "the driver that has begun has taken the producer id"
    progress = ProgressTopic(settings, clusters.target)

    def position() -> int:
        progress.refresh()
        return progress.positions[TopicPartition(pair.topic(), 0)].next_offset

    await_until(lambda: position() == 20, SOON, lambda: f"20, it is {position()}")


@pytest.mark.slow
def test_mirror_makers_checkpoint_connector_follows_a_rewind(pair: Pair, tmp_path: Path) -> None:
    """It takes our syncs of second copies for a rewind, forgets those from before, and skips nothing."""
    pair.source.create(pair.topic(), 1)
    pair.source.write(pair.topic(), numbered(20))
    driver = pair.replicate({"emit.checkpoints.enabled": "false"})
    await_count(pair.target, pair.remote(), 20)
    steered = Steered(pair, tmp_path, topics=())
    steered("pause", "--topic", pair.topic())
    steered("offsets", "rewind", "--topic", pair.topic(), "--to", "10", "--yes")
    steered("resume", "--topic", pair.topic())
    await_count(pair.target, pair.remote(), 30)
    await_lag_zero(driver)
    places = {offset: offset + 10 for offset in range(10, 21)}
    for offset in places:
        commit(pair.source, f"g{pair.unique}-{offset}", {(pair.topic(), 0): offset})
    name = f"{pair.alias}.checkpoints.internal"
    keys = {"groups": f"g{pair.unique}.*", "topics": pair.topic()}

    def found() -> dict[int, int]:
        read = read_checkpoints(pair.target, name) if name in pair.target.topics() else {}
        return {history[-1].upstream: history[-1].downstream for history in read.values()}

    with checkpoint_connector(tmp_path, pair.clusters, pair.flow, keys):
        await_until(lambda: found().keys() == places.keys(), 2 * SOON, lambda: f"checkpoints, there are {found()}")
    assert all(20 <= there <= places[offset] for offset, there in found().items())
    assert (found()[10], found()[20]) == (20, 30)
