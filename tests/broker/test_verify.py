"""`srm-control verify` on real brokers: what plain producers did to the copies is found, record by record."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.core.audit import Audit
from srm_spark.driver import Driver
from srm_spark.statements import check_statement, make_keys, read_public_key
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_lag_zero, write_config
from tests.broker.pair_io import await_committed
from tests.group_io import commit
from tests.kafka_io import Record, Stored, numbered

RESUME = {"foreign.writer.policy": "resume"}


def _verify(pair: Pair, folder: Path, *arguments: str) -> Result:
    path = write_config(folder / "c.properties", pair.clusters, [pair.flow], {**pair.keys, **RESUME})
    return CliRunner().invoke(main, ["verify", "--config", str(path), *arguments])


def _document(result: Result) -> dict[str, Any]:
    (flow,) = json.loads(result.stdout)["flows"]
    assert isinstance(flow, dict)
    return flow


def _audit(driver: Driver) -> Audit:
    found = driver.status()[0].audit
    assert found is not None
    return found


def test_copies_are_equal_until_somebody_writes_among_them(pair: Pair, tmp_path: Path) -> None:
    topic, remote = pair.topic(), pair.remote()
    pair.source.create(topic, 3)
    written = [each._replace(headers=(("h", None), ("h", b"1"))) for each in numbered(300, 3)]
    pair.source.write(topic, written)
    audited = {**RESUME, "audit.interval.seconds": "1"}
    driver = pair.replicate(audited)
    await_committed(pair, 300)
    await_lag_zero(driver)
    await_until(lambda: _audit(driver).records == 300, SOON, lambda: f"an audit of all: {_audit(driver)}")
    assert (_audit(driver).first, _audit(driver).failed) == (None, None)
    result = _verify(pair, tmp_path)
    assert result.exit_code == 0, result.output
    assert "equal: 300 records of 3 partitions, by content" in result.output
    result = _verify(pair, tmp_path, "--sample", "40")
    assert result.exit_code == 0, result.output
    assert "no difference in the sample: 40 records of 3 partitions, by content" in result.output
    assert (
        "none of 40 records that were chosen by chance differs: with 95% confidence fewer than 7.2 %" in result.output
    )
    driver.stop()

    (again,) = [each.record for each in pair.target.read(remote)[0] if each.offset == 7]
    pair.target.write(remote, [again, Record(b"k", b"theirs", 1)])
    pair.source.write(topic, numbered(30, 3, "more"))
    driver = pair.replicate(audited)
    await_committed(pair, 332)
    await_lag_zero(driver)
    await_until(lambda: _audit(driver).differences == 2, SOON, lambda: f"both are found: {_audit(driver)}")
    await_until(
        lambda: _audit(driver).records == 310, SOON, lambda: f"and the partition that is right: {_audit(driver)}"
    )
    assert (_audit(driver).first or "").startswith(f"{topic}-0: 1 foreign; target offset 100: ")
    driver.stop()
    result = _verify(pair, tmp_path)
    assert result.exit_code == 3
    assert f"{topic}-0: doubled: source offset 7, target offset 100: one more copy of source offset 7" in result.output
    assert f"{topic}-1: foreign: target offset 100: no record of the source was copied to there" in result.output
    assert "different: 330 records of 3 partitions, by content" in result.output
    assert _verify(pair, tmp_path, "--partition", "2").exit_code == 0


def test_what_was_found_is_signed_and_goes_into_the_statement_of_a_move(pair: Pair, tmp_path: Path) -> None:
    topic = pair.topic()
    pair.source.create(topic, 2)
    pair.source.write(topic, numbered(40, 2))
    commit(pair.source, f"g{pair.unique}", {(topic, 0): 10, (topic, 1): 20})
    driver = pair.replicate(RESUME)
    await_committed(pair, 40)
    await_lag_zero(driver)
    driver.stop()
    make_keys(tmp_path / "k", tmp_path / "k.pub")
    key, proof = ("-D", f"statement.key={tmp_path / 'k'}"), tmp_path / "proof.intoto.jsonl"
    result = _verify(pair, tmp_path, "--statement", str(proof), *key)
    assert result.exit_code == 0, result.output
    said = check_statement(proof, read_public_key(tmp_path / "k.pub"))[1]
    for subject, partition in zip(said["subject"][::2], (0, 1), strict=True):
        # By a plain consumer, and as docs/statements.md writes it down.
        assert subject["name"] == f"{pair.alias} {topic}-{partition} 0 to 20"
        assert subject["digest"]["sha256"] == root_by_hand(pair.source.read(topic)[partition])
    line = ["failover", "--config", str(tmp_path / "c.properties"), "--flow", pair.flow, "--yes", *key]
    result = CliRunner().invoke(main, [*line, "--state", str(tmp_path / "move.json"), "--verified", str(proof)])
    assert result.exit_code == 0, result.output
    (moved,) = tmp_path.glob("move-*.intoto.jsonl")
    line = ["verify-statement", str(moved), "--public-key", str(tmp_path / "k.pub")]
    result = CliRunner().invoke(main, [*line, "-o", "json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["predicate"]["verified"]["verdict"] == "equal"
    assert "By content: equal" in moved.with_name(moved.name.replace(".intoto.jsonl", ".html")).read_text()


def root_by_hand(records: list[Stored]) -> str:
    """Of records that have a key, a value, and no headers."""
    whole = b""
    for one in records:
        key, value = one.record.key, one.record.value
        assert key is not None
        assert value is not None
        whole += struct.pack(">qq", one.offset, one.record.timestamp or 0)
        whole += struct.pack(">i", len(key)) + key + struct.pack(">i", len(value)) + value + struct.pack(">i", 0)
    return hashlib.sha256(whole).hexdigest()


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
