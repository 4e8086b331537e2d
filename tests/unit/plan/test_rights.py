"""Who may write copies: in force from a failover to its failback, and only what is ours is taken back."""

from __future__ import annotations

from srm_spark.core.acls import Acl
from srm_spark.flow.topics.internal_topics import ensure_topic, map_topic
from srm_spark.flow.topics.remote_acls import record_staged
from srm_spark.plan.rights import WriteRights
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


def test_a_target_without_an_authorizer_has_none_in_force() -> None:
    flow = flow_of()
    flow.target.entries = None
    assert not any(right.is_in_force for right in rights(flow, allows=True).look())
