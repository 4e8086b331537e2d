"""A flow whose replication policy is another one than at its last run."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from tests.broker.conftest import Pair
from tests.broker.mirror import await_count, await_held, await_lag_zero, write_config
from tests.kafka_io import numbered, records

OTHER = {"replication.policy.separator": "_to_us_"}


def _plan(pair: Pair, folder: Path, keys: dict[str, str]) -> Result:
    path = write_config(folder / "plan.properties", pair.clusters, [pair.flow], {**pair.keys, **OTHER, **keys})
    return CliRunner().invoke(main, ["plan", "--config", str(path)])


def test_a_topic_of_another_name_waits_until_somebody_says_which_way(pair: Pair, tmp_path: Path) -> None:
    """To resume; `tests/unit/test_run.py` has both ways."""
    pair.source.create(pair.topic())
    pair.source.write(pair.topic(), numbered(10))
    driver = pair.replicate()
    await_count(pair.target, pair.remote(), 10)
    await_lag_zero(driver)
    driver.stop()
    now = f"{pair.alias}_to_us_{pair.topic()}"
    pair.source.write(pair.topic(), numbered(5, prefix="more "))
    driver = pair.replicate(OTHER)
    held = await_held(driver, [pair.topic()])[pair.topic()]
    assert f"lie in {pair.remote()} on {pair.target_alias} and would go to {now}" in held
    driver.stop()
    assert now not in pair.target.topics()
    assert driver.status()[0].losses == {}
    result = _plan(pair, tmp_path, {})
    assert result.exit_code == 3
    assert f"{pair.topic()}: {pair.remote()} -> {now}, which is not there yet" in result.output
    assert "* target.renamed.policy = stop" in result.output
    for way, offsets in (("resume", 5), ("recopy", 15)):
        assert f"= {way}: {offsets} source offsets" in result.output
        assert _plan(pair, tmp_path, {"target.renamed.policy": way}).exit_code == 0
    for _ in range(2):  # and once more, when nothing is left to decide
        driver = pair.replicate({**OTHER, "target.renamed.policy": "resume"})
        await_count(pair.target, now, 5)
        await_lag_zero(driver)
        driver.stop()
        assert driver.status()[0].losses == {}
    assert records(pair.target.read(now))[0] == records(pair.source.read(pair.topic()))[0][-5:]
    assert pair.target.given(pair.remote()) == 10
    assert "no remote topic has another name" in _plan(pair, tmp_path, {}).output
