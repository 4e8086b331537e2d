"""Quotas of users come to the target, and only what is ours is ever changed there."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.change.planning import KeptKind
from srm_spark.core.made_here import MadeHere
from srm_spark.core.principal_rules import AS_THEY_ARE, read_rules
from srm_spark.core.quotas import Quota, QuotasCompared, after_refusals, compare_quotas, quota_records
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.remote_quotas import RemoteQuotas
from tests.unit.change.examples import drive, flow_of, planned, run_plan, write_plan
from tests.unit.memory_flow import MemoryFlow

ANN = Quota((("user", "ann"),), "producer_byte_rate")
BOB = Quota((("client-id", "c"), ("user", "bob")), "consumer_byte_rate")
ALL = Quota((("user", None),), "producer_byte_rate")
OF_CLIENT = Quota((("client-id", "c"),), "producer_byte_rate")
KEYS = {"sync_user_quotas_enabled": "true", "sync_topic_acls_enabled": "false"}
QUOTAS = st.dictionaries(st.sampled_from([ANN, BOB, ALL]), st.sampled_from([1.0, 2.0]))


def test_quotas_of_users_come_with_the_names_of_the_target() -> None:
    here = {ANN: 1.0, BOB: 2.0, ALL: 3.0, OF_CLIENT: 4.0}
    found = compare_quotas(here, {}, {}, read_rules("RULE:bob/rob/, RULE:x/y/").apply)
    rob = Quota((("client-id", "c"), ("user", "rob")), "consumer_byte_rate")
    assert found == QuotasCompared({rob: 2.0, ALL: 3.0}, {}, {rob: 2.0, ALL: 3.0})


def test_of_users_that_are_one_there_the_smallest_value_counts() -> None:
    one_user = read_rules("RULE:.*/all/").apply
    ann, eve, both = (Quota((("user", name),), "producer_byte_rate") for name in ("ann", "eve", "all"))
    for here in ({ann: 1.0, eve: 2.0}, {eve: 2.0, ann: 1.0}):
        assert compare_quotas(here, {}, {}, one_user).changes == {both: 1.0}
        assert compare_quotas(here, {both: 1.0}, {both: 1.0}, one_user).changes == {}


@pytest.mark.parametrize(
    ("here", "there", "made", "change", "kept", "ours"),
    [
        (1.0, None, None, 1.0, None, 1.0),
        (1.0, 1.0, 1.0, "", None, 1.0),
        (2.0, 1.0, 1.0, 2.0, None, 2.0),
        (1.0, 2.0, None, "", 2.0, None),
        (2.0, 2.0, 1.0, "", None, 2.0),  # it was changed, and nobody was left to record it
        (1.0, 1.0, None, "", None, None),  # somebody else made what we would have
        (1.0, 2.0, 1.0, "", 2.0, None),  # somebody has changed ours: it is theirs now
        (None, 1.0, 1.0, None, None, None),
        (None, 1.0, None, "", None, None),
        (None, 2.0, 1.0, "", None, None),
        (None, None, 1.0, "", None, None),
    ],
)
def test_what_somebody_else_set_stays_and_what_is_ours_follows_the_source(
    *,
    here: float | None,
    there: float | None,
    made: float | None,
    change: float | str | None,
    kept: float | None,
    ours: float | None,
) -> None:
    of_source, of_target, recorded = ({} if value is None else {ANN: value} for value in (here, there, made))
    found = compare_quotas(of_source, of_target, recorded, AS_THEY_ARE.apply)
    assert found.changes == ({} if change == "" else {ANN: change})
    assert found.kept == ({} if kept is None else {ANN: kept})
    assert found.made == ({} if ours is None else {ANN: ours})


@given(QUOTAS, QUOTAS, QUOTAS)
def test_behind_a_change_nothing_is_left_and_nobody_else_s_was_touched(
    here: dict[Quota, float], there: dict[Quota, float], made: dict[Quota, float]
) -> None:
    found = compare_quotas(here, there, made, AS_THEY_ARE.apply)
    assert all(quota not in there or made.get(quota) == there[quota] for quota in found.changes)
    after = {quota: value for quota, value in {**there, **found.changes}.items() if value is not None}
    again = compare_quotas(here, after, found.made, AS_THEY_ARE.apply)
    assert (again.changes, again.kept, again.made) == ({}, found.kept, found.made)


def test_what_was_refused_is_ours_as_it_was_before() -> None:
    found = compare_quotas({ANN: 2.0, ALL: 1.0}, {ANN: 1.0, BOB: 1.0}, {ANN: 1.0, BOB: 1.0}, AS_THEY_ARE.apply)
    assert after_refusals({ANN: 1.0, BOB: 1.0}, found, dict.fromkeys([ANN, BOB, ALL], "no")) == {ANN: 1.0, BOB: 1.0}


def test_what_was_made_is_recorded_by_who_is_limited() -> None:
    records = quota_records({ALL: 1.0}, {ANN: 1.5, BOB: 2.0})
    assert records == {
        b'["quotas",["user","ann"]]': b'{"v":1,"set":{"producer_byte_rate":1.5}}',
        b'["quotas",["user",null]]': b'{"v":1,"set":{}}',
        b'["quotas",["client-id","c"],["user","bob"]]': b'{"v":1,"set":{"consumer_byte_rate":2.0}}',
    }
    made = MadeHere()
    assert all(made.take(*record) for record in records.items())
    assert made.quotas == {ANN: 1.5, BOB: 2.0}
    assert not made.take(b'["quotas",["user","ann"]]', b"x")
    assert not made.take(b'["quotas",7]', b"x")
    assert made.quotas == {BOB: 2.0}


def look(flow: MemoryFlow) -> None:
    """As a driver that has just started."""
    maps = OffsetMaps(flow.target, flow.settings.map_topic, "test", TargetUnavailable)
    RemoteQuotas(flow.clusters, maps).look()


def test_a_flow_sets_them_and_takes_back_what_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    flow = flow_of(**KEYS)
    flow.start()
    flow.source.limits, flow.target.limits = {ANN: 1.0, BOB: 1.0}, {BOB: 5.0}
    caplog.set_level(logging.INFO)
    look(flow)
    assert flow.target.limits == {ANN: 1.0, BOB: 5.0}
    assert "flow=A->B changed 1 quota on B: producer_byte_rate of user ann = 1" in caplog.messages
    assert "flow=A->B keeps consumer_byte_rate of client-id c, user bob=5 on B: somebody else set it" in caplog.messages
    flow.source.limits = {}
    flow.target.forbidden["ann"] = "not allowed"
    look(flow)
    assert flow.target.limits == {ANN: 1.0, BOB: 5.0}
    flow.target.forbidden.clear()
    look(flow)
    assert flow.target.limits == {BOB: 5.0}


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("before", [{}, {ANN: 1.0}])
def test_what_is_ours_stays_ours_where_a_change_fails(*, before: dict[Quota, float], is_done: bool) -> None:
    flow = flow_of(**KEYS)
    flow.start()
    flow.source.limits = before.copy()
    look(flow)

    def happens(what: str) -> None:
        if what == "change quotas":
            flow.target.limits |= {ANN: 2.0} if is_done else {}
            raise TargetUnavailable("no answer")

    flow.source.limits, flow.target.happens = {ANN: 2.0}, happens
    look(flow)
    flow.target.happens = lambda _: None
    assert flow.target.limits == ({ANN: 2.0} if is_done else before)
    look(flow)
    assert flow.target.limits == {ANN: 2.0}
    flow.source.limits = {}
    look(flow)
    assert flow.target.limits == {}


def test_a_cluster_that_does_not_tell_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    flow = flow_of(**KEYS)
    flow.start()
    maps = OffsetMaps(flow.target, flow.settings.map_topic, "test", TargetUnavailable)
    quotas = RemoteQuotas(flow.clusters, maps)
    flow.source.down = "away"
    caplog.clear()
    quotas.look()
    quotas.look()
    (told,) = caplog.messages
    assert "quotas are not copied" in told


def test_a_plan_says_and_does_what_a_flow_does(tmp_path: Path) -> None:
    driven, applied = flow_of(**KEYS), flow_of(**KEYS)
    for flow in (driven, applied):
        drive(flow)
        flow.source.limits, flow.target.limits = {ANN: 1.0, BOB: 1.0, ALL: 1.0}, {BOB: 5.0}
        look(flow)
        flow.source.limits = {ANN: 2.0, BOB: 1.0}
    plan = planned(applied)
    assert [(step.does, str(step)) for step in plan.steps] == [
        ("change-quota", "producer_byte_rate of default user 1 -> not set"),
        ("change-quota", "producer_byte_rate of user ann 1 -> 2"),
    ]
    assert [(one.kind, one.name) for one in plan.drift] == [
        (KeptKind.QUOTA, "consumer_byte_rate of client-id c, user bob")
    ]
    report = run_plan(applied, write_plan(applied, tmp_path / "plan.json"))
    look(driven)
    assert (report.refused, applied.target.limits) == (0, {ANN: 2.0, BOB: 5.0})
    assert applied.target.limits == driven.target.limits
    assert planned(applied).steps == ()
    applied.source.limits = {}
    assert [str(step) for step in planned(applied).steps] == ["producer_byte_rate of user ann 2 -> not set"]


def test_a_refused_quota_is_tried_again(tmp_path: Path) -> None:
    flow = flow_of(**KEYS)
    drive(flow)
    flow.source.limits = {ANN: 1.0}
    flow.target.forbidden["ann"] = "not allowed"
    path = write_plan(flow, tmp_path / "plan.json")
    assert run_plan(flow, path).refused == 1
    flow.target.forbidden.clear()
    assert (run_plan(flow, path).refused, flow.target.limits) == (0, {ANN: 1.0})


def test_without_the_key_nobody_is_asked() -> None:
    flow = flow_of()
    flow.source.limits = {ANN: 1.0}
    assert planned(flow).world.quotas is None
