"""A lost offset map is made again from both logs. Or not at all: `tests/unit/test_rebuild.py`."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from tests.broker.conftest import Pair
from tests.broker.map_reader import assert_map_is_exact, read_map
from tests.broker.mirror import await_count, await_lag_zero, write_config
from tests.broker.pair_io import transactions
from tests.kafka_io import numbered

COMMITTED = "consumer.isolation.level"


def _rebuild(pair: Pair, folder: Path, topic: str = ".*") -> Result:
    keys = {**pair.keys, f"{pair.alias}.{COMMITTED}": "read_committed"}
    path = write_config(folder / "c.properties", pair.clusters, [pair.flow], keys)
    ends = ["--source", pair.alias, "--target", pair.target_alias, "--topic", topic]
    return CliRunner().invoke(main, ["offsets", "rebuild", "--config", str(path), *ends])


def test_a_lost_map_is_made_again_from_the_records(pair: Pair, tmp_path: Path) -> None:
    keys = {f"{pair.alias}.{COMMITTED}": "read_committed"}
    pair.source.create(pair.topic(), 2)
    transactions(pair, pair.topic(), 2, 5)  # aborted ones between: the two sides count differently
    driver = pair.replicate(keys)
    await_count(pair.target, pair.remote(), 24)
    await_lag_zero(driver)
    refused = _rebuild(pair, tmp_path)
    assert (refused.exit_code, "a driver runs it" in refused.output) == (1, True)
    driver.stop()
    whole = read_map(pair.target, pair.map_topic)
    pair.target.delete(pair.map_topic)

    result = _rebuild(pair, tmp_path)
    assert result.exit_code == 0, result.output
    assert f"{pair.topic()}-0: 12 records" in result.output
    assert read_map(pair.target, pair.map_topic) == whole
    assert "nothing is missing" in _rebuild(pair, tmp_path).output

    driver = pair.replicate(keys)
    pair.source.write(pair.topic(), numbered(6, 2, "later"))
    await_count(pair.target, pair.remote(), 30)
    await_lag_zero(driver)
    source, remote = pair.source.read(pair.topic(), committed=True), pair.target.read(pair.remote())
    found = read_map(pair.target, pair.map_topic)
    for partition in (0, 1):
        assert_map_is_exact(found[pair.topic(), partition], source, remote, partition)
