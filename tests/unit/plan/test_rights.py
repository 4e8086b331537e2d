"""Who may write copies: in force from a failover to its failback, and only what is ours is taken back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from srm_spark.core.acls import Acl
from srm_spark.errors import TargetUnavailable
from srm_spark.flow.topics.internal_topics import ensure_topic, map_topic
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.remote_acls import RemoteAcls, record_staged
from srm_spark.plan.rights import WriteRights, left_in_force
from srm_spark.plan.snapshot import WriteRight
from tests.unit.memory_flow import MemoryFlow, flow_settings

WRITES = Acl("A.t", "LITERAL", "User:ann", "*", "WRITE", "ALLOW")
BY_HAND = WRITES._replace(principal="User:bob")
READS = WRITES._replace(operation="READ")


def flow_of(policy: str = "failover") -> MemoryFlow:
    """Two entries are staged, and somebody has made one of them."""
    flow = MemoryFlow(flow_settings({"sync.topic.acls.write.policy": policy}))
    ensure_topic(flow.target, map_topic(flow.settings))
    record_staged(flow.clusters, set(), {WRITES, BY_HAND})
    flow.target.entries = {BY_HAND, READS}
    return flow


def rights(flow: MemoryFlow, *, allows: bool) -> WriteRights:
    return WriteRights(flow.settings, allows=allows, reach=flow.reach)


def test_a_failover_puts_in_force_what_is_staged_and_a_failback_takes_back_what_that_made() -> None:
    flow = flow_of()
    over = rights(flow, allows=True)
    assert over.look() == (WriteRight(WRITES, is_in_force=False), WriteRight(BY_HAND, is_in_force=True))
    over.set()
    assert flow.target.entries == {READS, BY_HAND, WRITES}
    assert all(right.is_in_force for right in over.look())
    back = rights(flow, allows=False)
    assert back.look() == (WriteRight(WRITES, is_in_force=True),)
    back.set()
    assert (flow.target.entries, back.look()) == ({READS, BY_HAND}, ())
    assert rights(flow, allows=True).look() == (
        WriteRight(WRITES, is_in_force=False),
        WriteRight(BY_HAND, is_in_force=True),
    ), "the next failover finds it staged"


def test_what_is_refused_is_told_and_not_ours() -> None:
    flow = flow_of()
    flow.target.forbidden["A.t"] = "not allowed"
    over = rights(flow, allows=True)
    over.set()
    assert over.look()[0] == WriteRight(WRITES, is_in_force=False, refused="not allowed")
    flow.target.forbidden.clear()
    assert flow.target.entries is not None
    flow.target.entries.add(WRITES)
    assert rights(flow, allows=False).look() == (), "by now somebody else has made it"


def test_what_the_cluster_keeps_is_still_ours() -> None:
    flow = flow_of()
    rights(flow, allows=True).set()
    flow.target.forbidden["A.t"] = "not allowed"
    back = rights(flow, allows=False)
    back.set()
    assert back.look() == (WriteRight(WRITES, is_in_force=True, refused="not allowed"),)


def test_without_the_policy_nobody_is_asked_and_what_is_in_force_goes_all_the_same() -> None:
    flow = flow_of("never")

    def happens(what: str) -> None:
        raise AssertionError(what)

    flow.target.happens = happens
    assert rights(flow, allows=True).look() == ()
    flow = flow_of()
    rights(flow, allows=True).set()
    flow.change(flow_of("never").settings)
    assert rights(flow, allows=False).look() == (WriteRight(WRITES, is_in_force=True),)


def test_a_target_without_an_authorizer_has_none_in_force_and_forgets_nothing() -> None:
    flow = flow_of()
    rights(flow, allows=True).set()
    flow.target.entries = None
    back = rights(flow, allows=False)
    back.set()
    assert back.look() == (WriteRight(WRITES, is_in_force=False),)
    assert not any(right.is_in_force for right in rights(flow, allows=True).look())


def test_what_somebody_took_away_is_ours_no_more_after_a_failback() -> None:
    flow = flow_of()
    rights(flow, allows=True).set()
    assert flow.target.entries is not None
    flow.target.entries.discard(WRITES)
    back = rights(flow, allows=False)
    assert back.look() == (WriteRight(WRITES, is_in_force=False),)
    back.set()
    flow.target.entries.add(WRITES)
    assert back.look() == (), "whoever makes it now keeps it"


def driven() -> tuple[MemoryFlow, RemoteAcls]:
    """A flow whose target lacks who may read, and what of its driver compares both sides."""
    flow = flow_of()
    flow.start()
    flow.source.entries = {acl._replace(name="t") for acl in (WRITES, BY_HAND, READS)}
    flow.target.entries = {BY_HAND}
    maps = OffsetMaps(flow.target, flow.settings.map_topic, "driver", TargetUnavailable)
    return flow, RemoteAcls(flow.clusters, maps, lambda: {"t": "A.t"})


@pytest.mark.parametrize("call", ["list the ACLs", "add ACLs"])
@pytest.mark.parametrize("refusal", [None, "not allowed"])
def test_what_a_driver_records_amid_a_failover_stays_recorded(call: str, refusal: str | None) -> None:
    flow, driver = driven()

    def happens(what: str) -> None:
        if what == call:
            flow.target.happens = lambda _: None
            driver.look()
            if refusal is not None:
                flow.target.forbidden["A.t"] = refusal

    flow.target.happens = happens
    rights(flow, allows=True).set()
    assert flow.target.entries is not None
    assert READS in flow.target.entries
    assert driver.made() == ({READS, WRITES} if refusal is None else {READS})


def test_what_a_failover_records_amid_a_look_of_the_driver_stays_recorded() -> None:
    flow, driver = driven()

    def happens(what: str) -> None:
        if what == "add ACLs":
            flow.target.happens = lambda _: None
            rights(flow, allows=True).set()
            flow.target.forbidden["A.t"] = "not allowed"

    flow.target.happens = happens
    driver.look()
    assert driver.made() == {WRITES}


def test_a_failback_without_the_other_direction_says_what_a_failover_left() -> None:
    flow = flow_of()
    back = replace(flow.settings, flow=flow.settings.flow.reverse)
    assert left_in_force(flow.source, back) is None, "nobody ever copied"
    assert left_in_force(flow.target, back) is None, "no failover put anything in force"
    rights(flow, allows=True).set()
    assert left_in_force(flow.target, back) == (
        "whether applications may still write remote topics of A->B is not known: a failover put 1 ACL in force on B; "
        "add A->B.enabled = true, and run the same command again"
    )
