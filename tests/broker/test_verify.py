"""`srm-control verify` on real brokers: what plain producers did to the copies is found, record by record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from tests.broker.conftest import Pair
from tests.broker.mirror import await_lag_zero, write_config
from tests.broker.pair_io import await_committed
from tests.kafka_io import Record, numbered

RESUME = {"foreign.writer.policy": "resume"}


def _verify(pair: Pair, folder: Path, *arguments: str) -> Result:
    path = write_config(folder / "c.properties", pair.clusters, [pair.flow], {**pair.keys, **RESUME})
    return CliRunner().invoke(main, ["verify", "--config", str(path), *arguments])


def _document(result: Result) -> dict[str, Any]:
    (flow,) = json.loads(result.stdout)["flows"]
    assert isinstance(flow, dict)
    return flow


def test_copies_are_equal_until_somebody_writes_among_them(pair: Pair, tmp_path: Path) -> None:
    topic, remote = pair.topic(), pair.remote()
    pair.source.create(topic, 3)
    written = [each._replace(headers=(("h", None), ("h", b"1"))) for each in numbered(300, 3)]
    pair.source.write(topic, written)
    driver = pair.replicate(RESUME)
    await_committed(pair, 300)
    await_lag_zero(driver)
    result = _verify(pair, tmp_path)
    assert result.exit_code == 0, result.output
    assert "equal: 300 records of 3 partitions, by content" in result.output
    driver.stop()

    (again,) = [each.record for each in pair.target.read(remote)[0] if each.offset == 7]
    pair.target.write(remote, [again, Record(b"k", b"theirs", 1)])
    pair.source.write(topic, numbered(30, 3, "more"))
    driver = pair.replicate(RESUME)
    await_committed(pair, 332)
    await_lag_zero(driver)
    driver.stop()
    result = _verify(pair, tmp_path)
    assert result.exit_code == 3
    assert f"{topic}-0: doubled: source offset 7, target offset 100: one more copy of source offset 7" in result.output
    assert f"{topic}-1: foreign: target offset 100: no record of the source was copied to there" in result.output
    assert "different: 330 records of 3 partitions, by content" in result.output
    assert _verify(pair, tmp_path, "--partition", "2").exit_code == 0


def test_every_change_is_named_where_it_is(pair: Pair, tmp_path: Path) -> None:
    topic, remote = pair.topic(), pair.remote()
    pair.source.create(topic)
    pair.source.write(topic, numbered(12))
    driver = pair.replicate()
    await_committed(pair, 12)
    await_lag_zero(driver)
    driver.stop()
    copies = [each.record for each in pair.target.read(remote)[0]]
    copies[1] = copies[1]._replace(key=b"other")
    copies[3] = copies[3]._replace(value=None)
    copies[5] = copies[5]._replace(headers=(("h", b""),))
    copies[7] = copies[7]._replace(timestamp=(copies[7].timestamp or 0) + 1)
    copies[8], copies[9] = copies[9], copies[8]
    pair.target.delete(remote)
    pair.target.create(remote)
    pair.target.write(remote, copies[:11])
    result = _verify(pair, tmp_path, "--topic", topic, "-o", "json")
    assert result.exit_code == 3
    (found,) = _document(result)["partitions"]
    assert [(one["kind"], one["source"], one["target"]) for one in found["findings"]] == [
        ("changed", 1, 1),
        ("changed", 3, 3),
        ("changed", 5, 5),
        ("changed", 7, 7),
        ("swapped", 8, 8),
        ("swapped", 9, 9),
        ("lost", 11, None),
    ]
    assert [one["what"] for one in found["findings"][:4]] == [
        f"other {n}" for n in ("key", "value", "headers", "timestamp")
    ]
    assert found["equal"] == 5


def test_nothing_that_cannot_be_read_is_equal(pair: Pair, tmp_path: Path) -> None:
    result = _verify(pair, tmp_path, "--topic", "nothing-of-this-name")
    assert result.exit_code == 3
    assert "nothing checked: 0 records of 0 partitions, by content" in result.output
    pair.source.create(pair.topic())
    result = _verify(pair, tmp_path)
    assert result.exit_code == 3, "no record was copied"
