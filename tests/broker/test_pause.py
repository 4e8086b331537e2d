"""Flows that are paused, resumed and restarted by the real command, while drivers run, die and come back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_count
from tests.broker.process import kill_all_of, srm_driver
from tests.broker.steered import Steered

TAKEN_SECONDS = 60.0
"""A driver that runs takes an act in two, and a command needs some to start, on a machine that is busy many."""


@pytest.fixture
def steered(pair: Pair, tmp_path: Path) -> Steered:
    return Steered(pair, tmp_path)


@pytest.mark.slow
def test_what_is_paused_stays_so_across_drivers_and_goes_on_where_it_stood(steered: Steered) -> None:
    pair, keys = steered.pair, steered.pair.keys
    with srm_driver(steered.folder, pair.clusters, [pair.flow], keys) as driver:
        await_count(pair.target, pair.remote(), 20)
        began = time.monotonic()
        printed = steered("pause", "--topic", pair.topic(), "--reason", "maintenance").splitlines()
        assert time.monotonic() - began < TAKEN_SECONDS
        assert printed[0] == f"paused: {pair.topic()}"
        assert f"pid {driver.pid} copies nothing more of it" in printed[1]
        steered.write("while paused")
        steered.await_others()
        assert steered.copied == 20
        assert f"{pair.topic()} paused by " in steered.log()
        kill_all_of(driver)
    with srm_driver(steered.folder, pair.clusters, [pair.flow], keys) as driver:
        steered.await_others()
        assert steered.copied == 20, "another driver holds it, too"
        printed = steered("resume", "--topic", pair.topic()).splitlines()
        assert f"pid {driver.pid} goes on where it stood" in printed[1]
        steered.assert_copied()
        steered.write("behind it")
        steered.assert_copied()
        assert f"pid {driver.pid} takes it" in steered("restart", "--reason", "to see it")
        await_until(lambda: steered.log().count("state=running") >= 2, SOON, steered.log)
        steered.write("of another run")
        steered.assert_copied()
    history = [line.split(" ", 3)[-1] for line in steered("history").splitlines()]
    topic = pair.topic()
    assert history == [f"pause {topic} (maintenance)", f"resume {topic}", "restart the flow (to see it)"]
