"""What drivers say of a flow: the bytes, what an old word means, and what several drivers come to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from srm_spark.core.acts import Scope
from srm_spark.core.audit import Audit
from srm_spark.core.driver_status import (
    DriverId,
    DriverStatus,
    FlowState,
    GroupsSummary,
    Heard,
    decode_status,
    driver_key,
    drivers_of,
    encode_status,
)
from srm_spark.core.model import Flow
from srm_spark.core.standstills import Standstill, by_name, from_names
from tests.unit.driver_samples import HELD, ME, OWNER

ONE, OTHER = ME, DriverId("host/2", 12, 1_700_000_000_001)
FLOW = Flow("A", "B")
NOW = 1_700_000_100_000
HERE = (b'["status","host-1/4711/1700000000000"]', b'{"v":1,"at":1700000005000,"every":5.0,"state":"running",')
REST = (
    b'"since":1700000003000,"topics":1,"partitions":2,"realtime":1,"records":5,"bytes":200,"records_per_second":1234.5,'
    b'"bytes_per_second":30.0,"latency_ms":40,"lag_records":12000,%s"held_more":0,"parked":0,"lost_records":0,'
    b'"groups":{"taken":3,"in_sync":2,"left":{"g":"t-0: not synced: the group has members on the target"},"more":0},'
    b'"last_error":"B did not answer","last_error_at":1699999945000}'
)
STANDING = b'"standing":[{"topic":"t","partition":1,"why":"held at offset 0: no","kind":"too-large"}],'
GOLDEN = (HERE[0], HERE[1] + (REST % STANDING)[:-1] + b',"held":{"t-1":"held at offset 0: no"}}')
BEFORE = (HERE[0], HERE[1] + REST % b'"held":{"A->B":"paused","t-1":"held at offset 0: no","u":"gone"},')
"""As drivers said it that named what stands still, and no kind."""


def said(
    state: FlowState = FlowState.RUNNING, seconds_ago: float = 0, driver: DriverId = ONE, *, is_last: bool = False
) -> Heard:
    return Heard(DriverStatus(driver, NOW - int(1000 * seconds_ago), 5.0, state, is_last=is_last))


def test_bytes() -> None:
    assert (driver_key(ONE), encode_status(OWNER, FLOW)) == GOLDEN
    assert decode_status(*GOLDEN) == OWNER


def test_what_an_audit_found_is_read() -> None:
    audited = replace(OWNER, audit=Audit(60.0, 1, ended=2, records=3, differences=1, first="t-0: 1 lost"))
    value = encode_status(audited, FLOW)
    found = (
        b'"audit":{"seconds":60.0,"since":1,"ended":2,"records":3,"differences":1,"first":"t-0: 1 lost","uncovered":0}'
    )
    assert found in value
    assert decode_status(GOLDEN[0], value) == audited
    assert decode_status(GOLDEN[0], value.replace(b'"since":1,', b'"since":"x",')) == OWNER, "the rest counts"


def test_what_drivers_of_before_said_is_read() -> None:
    named = (Standstill(Scope(), "paused"), Standstill(Scope("t", 1), "held at offset 0: no"))
    assert decode_status(*BEFORE) == replace(OWNER, standing=(*named, Standstill(Scope("u"), "gone")))
    assert from_names({"logs-01": "gone"}) == (Standstill(Scope("logs-01"), "gone"),)


def test_readers_of_before_find_the_names_of_what_stands_still() -> None:
    standing = (Standstill(Scope(), "paused"), Standstill(Scope("t"), "gone"), HELD)
    held = json.loads(encode_status(replace(OWNER, standing=standing), FLOW))["held"]
    assert held == {"A->B": "paused", "t": "gone", "t-1": "held at offset 0: no"}


def test_a_topic_that_is_called_as_a_partition_is_not_taken_for_it() -> None:
    both = (Standstill(Scope("t-0"), "no remote topic"), Standstill(Scope("t", 0), "too large"))
    read = decode_status(GOLDEN[0], encode_status(replace(OWNER, standing=both), FLOW))
    assert read is not None
    assert set(read.standing) == set(both)
    names = {"topic t-0": "no remote topic", "t-0": "too large"}
    assert by_name(read.standing, FLOW) == names


def test_a_kind_of_a_later_version_is_not_known() -> None:
    read = decode_status(GOLDEN[0], GOLDEN[1].replace(b"too-large", b"too-late"))
    assert read == replace(OWNER, standing=(replace(HELD, kind=None),))


def test_what_is_not_known_is_left_out_and_read_as_not_known() -> None:
    quiet = DriverStatus(OTHER, 1, 5.0, FlowState.STALLED, unknown_since=7)
    assert b"lag_records" not in encode_status(quiet, FLOW)
    assert decode_status(driver_key(OTHER), encode_status(quiet, FLOW)) == quiet


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b'["status","host-1/4711/1"]', None),
        (b'["act","x"]', GOLDEN[1]),
        (b'["status","nobody"]', GOLDEN[1]),
        (b'["status",7]', GOLDEN[1]),
        (GOLDEN[0], b"[]"),
        (GOLDEN[0], GOLDEN[1].replace(b'"v":1', b'"v":2')),
        (GOLDEN[0], GOLDEN[1].replace(b"running", b"dancing")),
        (GOLDEN[0], GOLDEN[1].replace(b'"taken":3,', b"")),
        (GOLDEN[0], GOLDEN[1].replace(b'"partition":1', b'"partition":"1"')),
        (GOLDEN[0], GOLDEN[1].replace(STANDING, b'"standing":7,')),
    ],
)
def test_anything_else_is_no_word_of_a_driver(key: bytes | None, value: bytes | None) -> None:
    assert decode_status(key, value) is None


def test_a_field_of_a_later_version_is_passed_over() -> None:
    assert decode_status(GOLDEN[0], GOLDEN[1].replace(b'"topics":1', b'"topics":1,"weather":"fine"')) == OWNER


def test_many_names_and_long_sentences_fit_into_a_record() -> None:
    left = {f"g{number}": "x" * 50_000 for number in range(10_000)}
    standing = tuple(Standstill(Scope("t", number), "x" * 50_000) for number in range(10_000))
    groups = GroupsSummary(10_000, 0, left)
    value = encode_status(
        replace(OWNER, standing=standing, groups=groups, reason="y" * 90_000, last_error="z" * 90_000), FLOW
    )
    assert len(value) < 500_000
    read = decode_status(GOLDEN[0], value)
    assert read is not None
    assert len(read.standing) + read.held_more == 10_000
    assert json.loads(value)["groups"]["more"] == 9_800


def test_a_driver_is_silent_when_it_missed_three_words() -> None:
    assert not said(seconds_ago=15).is_silent(NOW)
    assert said(seconds_ago=15.1).is_silent(NOW)
    assert not said(FlowState.STOPPED, 900, is_last=True).is_silent(NOW), "it said that there will be no other one"


def test_where_a_word_was_seen_to_come_no_clocks_are_compared() -> None:
    assert not replace(said(seconds_ago=900), seconds_ago=1.0).is_silent(NOW)
    assert replace(said(seconds_ago=-900), seconds_ago=16.0).is_silent(NOW)


def test_a_reader_whose_clock_is_behind_takes_the_newest_word_for_now() -> None:
    found = drivers_of([said(), said(seconds_ago=60, driver=OTHER)], NOW - 900_000)
    assert found.owner is not None
    assert [one.driver for one in found.silent] == [OTHER]


def test_an_owner_and_who_would_take_over() -> None:
    found = drivers_of([said(FlowState.WAITING, driver=OTHER), said(FlowState.STALLED)], NOW)
    assert found.owner is not None
    assert (found.owner.driver, found.state) == (ONE, FlowState.STALLED)
    assert [one.driver for one in found.standby] == [OTHER]
    assert found.unknown_since is None


def test_an_owner_that_is_silent_leaves_the_flow_unknown_whoever_waits() -> None:
    silent = said(seconds_ago=20)
    found = drivers_of([silent, said(FlowState.WAITING, driver=OTHER)], NOW)
    assert (found.owner, found.state, found.unknown_since) == (None, None, silent.status.at)
    assert len(found.standby) == 1


def test_who_takes_over_speaks_for_the_flow() -> None:
    found = drivers_of([said(seconds_ago=20), said(FlowState.STARTING, driver=OTHER)], NOW)
    assert (found.owner, found.state, found.unknown_since) == (None, FlowState.STARTING, None)
    assert [one.driver for one in found.trying] == [OTHER]


def test_the_last_word_of_a_driver_stays_true() -> None:
    stopped = said(FlowState.STOPPED, 3600, is_last=True)
    assert drivers_of([stopped], NOW).state is FlowState.STOPPED
    later = drivers_of([stopped, said(seconds_ago=7200, driver=OTHER)], NOW)
    assert later.state is FlowState.STOPPED, "who was silent before that does not count"
    earlier = drivers_of([stopped, said(seconds_ago=1800, driver=OTHER)], NOW)
    assert (earlier.state, earlier.unknown_since) == (None, NOW - 1_800_000)
    assert drivers_of([said(FlowState.FAILED, 3600, is_last=True)], NOW).state is FlowState.FAILED


def test_nobody_said_anything() -> None:
    found = drivers_of([], NOW)
    assert (found.state, found.unknown_since, found.live) == (None, None, ())


def test_of_two_that_run_the_newest_counts() -> None:
    found = drivers_of([said(seconds_ago=4), said(driver=OTHER, seconds_ago=1)], NOW)
    assert found.owner is not None
    assert found.owner.driver == OTHER
    assert [one.driver for one in found.trying] == [ONE]


def test_of_two_that_claim_a_flow_one_that_runs_counts_before_one_that_stalls() -> None:
    found = drivers_of([said(seconds_ago=4), said(FlowState.STALLED, driver=OTHER)], NOW)
    assert found.owner is not None
    assert (found.owner.driver, found.state) == (ONE, FlowState.RUNNING)
