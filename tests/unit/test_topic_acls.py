"""Which ACLs of source topics their remote topics get."""

from __future__ import annotations

import logging

import pytest

from srm_spark.core.acls import Acl, remote_acls
from srm_spark.flow.topics.topic_acls import TopicAcls
from tests.unit.memory_flow import MemoryFlow, flow_settings

READS = Acl("t", "LITERAL", "User:ann", "*", "READ", "ALLOW")


@pytest.mark.parametrize(
    ("acl", "copy"),
    [
        (READS, READS),
        (READS._replace(operation="DESCRIBE"), READS._replace(operation="DESCRIBE")),
        (READS._replace(operation="WRITE"), None),
        (READS._replace(operation="ALL"), READS),
        (READS._replace(operation="ALL", permission="DENY"), READS._replace(operation="ALL", permission="DENY")),
        (READS._replace(operation="WRITE", permission="DENY"), READS._replace(operation="WRITE", permission="DENY")),
        (READS._replace(pattern="PREFIXED"), None),
        (READS._replace(topic="*"), None),
        (READS._replace(topic="other"), None),
        (READS._replace(host="10.0.0.1"), READS._replace(host="10.0.0.1")),
    ],
)
def test_readers_of_a_topic_may_read_its_copies(acl: Acl, copy: Acl | None) -> None:
    found = remote_acls([acl], lambda topic: topic in ("t", "*"), lambda topic: f"A.{topic}")
    assert found == (set() if copy is None else {copy._replace(topic="A.t")})


class Synced:
    """A flow in memory, and what gives its remote topic ACLs."""

    def __init__(self) -> None:
        self.flow = MemoryFlow(flow_settings())
        self.flow.source.acls, self.flow.target.acls = {READS}, set()
        self.acls = TopicAcls(self.flow.clusters, lambda: {"t": "A.t"})


def test_what_is_missing_is_added_and_nothing_is_taken_away(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    synced = Synced()
    others = Acl("A.t", "LITERAL", "User:bob", "*", "READ", "ALLOW")
    synced.flow.target.acls = {others}
    synced.acls.look()
    synced.acls.look()
    synced.flow.source.acls = set()
    synced.acls.look()
    assert synced.flow.target.acls == {others, READS._replace(topic="A.t")}
    (told,) = [record.message for record in caplog.records]
    assert told == "flow=A->B added 1 ACL on B: ALLOW READ on topic A.t to User:ann from *"


def test_a_refusal_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced()
    synced.flow.target.forbidden["A.t"] = "not allowed"
    synced.acls.look()
    synced.acls.look()
    (told,) = [record.message for record in caplog.records]
    assert told == "flow=A->B cannot ALLOW READ on topic A.t to User:ann from * on B: not allowed"


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_cluster_without_an_authorizer_is_no_failure(side: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    synced = Synced()
    getattr(synced.flow, side).acls = None
    synced.acls.look()
    synced.acls.look()
    (told,) = [record.message for record in caplog.records]
    assert "has no authorizer" in told


def test_a_cluster_that_does_not_tell_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced()
    synced.flow.source.down = "away"
    synced.acls.look()
    synced.acls.look()
    (told,) = [record.message for record in caplog.records]
    assert "topic ACLs are not copied" in told
