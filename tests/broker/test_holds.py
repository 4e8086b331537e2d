"""Holds: a record that cannot be copied stops its partition before it, says why, and nothing else."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

import pytest

from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied, await_count, await_held
from tests.broker.pair_io import ANY_TIME, BY_SPARK, HOUR, NANOSECONDS, OWN_CONFIGS
from tests.kafka_io import Record, records


def test_a_refused_record_holds_its_partition_at_its_offset_until_the_limit_is_raised(pair: Pair) -> None:
    now = int(time.time() * 1000)
    refused = {
        "large": Record(b"k", b"x" * 5000),
        "late": Record(b"k", b"v", timestamp=now + 2 * HOUR),
        "old": Record(b"k", b"v", timestamp=now - 48 * HOUR),
        "keyless": Record(None, b"v"),
    }
    limits = {
        "large": {"max.message.bytes": "2000"},
        "late": {"message.timestamp.after.max.ms": str(HOUR)},
        "old": {"message.timestamp.before.max.ms": str(24 * HOUR)},
        "keyless": {"cleanup.policy": "compact"},
    }
    fine = [Record(f"{i}".encode(), f"{i}".encode()) for i in range(4)]
    for name, record in refused.items():
        pair.source.create(pair.topic(name), 2, ANY_TIME)
        pair.target.create(pair.remote(name), 2, limits[name])
        pair.source.write(pair.topic(name), [*fine[:2], record, *fine[2:], fine[0]._replace(partition=1)])
    driver = pair.replicate(OWN_CONFIGS)
    held = {f"{pair.topic(name)}-0" for name in refused}
    reasons = await_held(driver, list(held))
    for name, words in {
        "large": "max.message.bytes is 2000",
        "late": f"message.timestamp.after.max.ms is {HOUR}",
        "old": f"message.timestamp.before.max.ms is {24 * HOUR}",
        "keyless": "no key and the target topic is compacted",
    }.items():
        assert reasons[f"{pair.topic(name)}-0"].startswith("held at offset 2: ")
        assert words in reasons[f"{pair.topic(name)}-0"]
    for name in refused:
        await_count(pair.target, pair.remote(name), 3)
        copied = records(pair.target.read(pair.remote(name)))
        assert [record.value for record in copied[0]] == [b"0", b"1"]
        assert [record.value for record in copied[1]] == [b"0"]
    assert driver.status()[0].lag_records == 3 * len(refused)

    driver.stop()  # a hold is not forgotten, and what came before it is not copied again
    driver = pair.replicate(OWN_CONFIGS)
    assert set(await_held(driver, list(held))) == held
    pair.target.configure(pair.remote("large"), max_message_bytes="9000")
    pair.target.configure(pair.remote("late"), message_timestamp_after_max_ms=str(9 * HOUR))
    pair.target.configure(pair.remote("old"), message_timestamp_before_max_ms=str(99 * HOUR))
    pair.target.configure(pair.remote("keyless"), cleanup_policy="delete")
    await_held(driver, [])
    for name in refused:
        assert_copied(pair.source, pair.topic(name), pair.target, pair.remote(name))


def test_a_timestamp_that_spark_could_not_read_is_copied(pair: Pair) -> None:
    pair.source.create(pair.topic(), 1, ANY_TIME)
    pair.target.create(pair.remote(), 1, ANY_TIME)
    pair.source.write(pair.topic(), [Record(b"k", b"0"), Record(b"k", b"!", timestamp=NANOSECONDS), Record(b"k", b"1")])
    pair.replicate(OWN_CONFIGS)
    assert_copied(pair.source, pair.topic(), pair.target, pair.remote())


@pytest.mark.slow
def test_a_timestamp_that_spark_cannot_read_holds_its_partition_only(pair: Pair) -> None:
    """Nanoseconds taken for milliseconds; it ends when the source no longer has the record."""
    pair.source.create(pair.topic(), 2, ANY_TIME)
    pair.source.create(pair.topic("other"))
    before = [Record(b"k", b"0"), Record(b"k", b"1")]
    pair.source.write(pair.topic(), [*before, Record(b"k", b"!", timestamp=NANOSECONDS), Record(b"k", b"behind")])
    pair.source.write(pair.topic(), [Record(b"k", b"beside", 1)])
    driver = pair.replicate({**BY_SPARK, **OWN_CONFIGS})
    reason = await_held(driver, [f"{pair.topic()}-0"])[f"{pair.topic()}-0"]
    assert reason.startswith("held at offset 2: its timestamp is ")
    await_count(pair.target, pair.remote(), 3)
    pair.source.write(pair.topic("other"), [Record(b"k", b"flows")])
    pair.source.write(pair.topic(), [Record(b"k", b"flows", 1)])
    assert_copied(pair.source, pair.topic("other"), pair.target, pair.remote("other"))
    await_count(pair.target, pair.remote(), 4)
    assert [record.value for record in records(pair.target.read(pair.remote()))[0]] == [b"0", b"1"]

    pair.source.delete_records(pair.topic(), 0, 3)
    await_held(driver, [])
    await_count(pair.target, pair.remote(), 5)
    assert [record.value for record in records(pair.target.read(pair.remote()))[0]] == [b"0", b"1", b"behind"]


@pytest.mark.parametrize("support", ["requested", "required"], ids=["", "exactly once"])
def test_a_large_record_that_fits_compressed_is_copied_between_others_that_do_not(pair: Pair, support: str) -> None:
    fits, noise = Record(b"k", b"z" * 50_000), Record(b"k", random.Random(1).randbytes(50_000))
    small = Record(b"k", b"v")
    for name in ("held", "parked"):
        pair.source.create(pair.topic(name))
        pair.target.create(pair.remote(name), 1, {"max.message.bytes": "20000", "compression.type": "zstd"})
        pair.source.write(pair.topic(name), [small, fits, noise, fits, noise, noise, fits, small])
    driver = pair.replicate({"exactly.once.support": support, "policy.park.topics": pair.topic("parked")})
    (reason,) = await_held(driver, [f"{pair.topic('held')}-0"]).values()
    assert "held at offset 2: " in reason
    wanted = {"held": [small, fits], "parked": [small, fits, fits, fits, small]}

    def copied(name: str) -> list[bytes | None]:
        return [stored.record.value for stored in pair.target.read(pair.remote(name), committed=True)[0]]

    for name, found in wanted.items():
        values = [record.value for record in found]
        await_until(partial(_is, copied, name, values), SOON, f"{len(values)} records of {name}")


def _is(copied: Callable[[str], list[bytes | None]], name: str, values: list[bytes | None]) -> bool:
    return copied(name) == values
