"""Which ACLs of the source remote topics and groups get."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import pytest

from srm_spark.core.acls import GROUP, Acl, AclRules, acl_records, remote_acls, staged_acls
from srm_spark.core.made_here import MadeHere
from srm_spark.core.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.remote_acls import RemoteAcls
from srm_spark.plan.rights import WriteRights
from tests.unit.memory_flow import MemoryFlow, flow_settings

READS = Acl("t", "LITERAL", "User:ann", "*", "READ", "ALLOW")
COPY = READS._replace(name="A.t")
OF_GROUP = Acl("g", "LITERAL", "User:ann", "*", "READ", "ALLOW", GROUP)
RULES = AclRules(lambda topic: topic in ("t", "*"), lambda topic: f"A.{topic}")
MORE = replace(
    RULES, remote_prefix=lambda prefix: f"A.{prefix}", takes_group=lambda group: group == "g", takes_group_patterns=True
)


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
        (READS._replace(name="*"), None),
        (READS._replace(name="other"), None),
        (READS._replace(host="10.0.0.1"), READS._replace(host="10.0.0.1")),
        (OF_GROUP, None),
    ],
)
def test_readers_of_a_topic_may_read_its_copies(acl: Acl, copy: Acl | None) -> None:
    assert remote_acls([acl], RULES) == (set() if copy is None else {copy._replace(name="A.t")})


@pytest.mark.parametrize(
    ("acl", "copy"),
    [
        (READS, COPY),
        (READS._replace(pattern="PREFIXED"), COPY._replace(pattern="PREFIXED")),
        (READS._replace(name="*"), READS._replace(name="A.", pattern="PREFIXED")),
        (READS._replace(name="*", operation="ALL"), READS._replace(name="A.", pattern="PREFIXED")),
        (READS._replace(name="*", operation="DELETE"), None),
        (READS._replace(name="*", operation="WRITE"), None),
        (
            READS._replace(name="*", operation="ALL", permission="DENY"),
            READS._replace(name="A.", pattern="PREFIXED", operation="ALL", permission="DENY"),
        ),
        (OF_GROUP, OF_GROUP),
        (OF_GROUP._replace(name="other"), None),
        (OF_GROUP._replace(name="*"), OF_GROUP._replace(name="*")),
        (OF_GROUP._replace(pattern="PREFIXED"), OF_GROUP._replace(pattern="PREFIXED")),
    ],
)
def test_by_choice_patterns_and_groups_are_taken_too(acl: Acl, copy: Acl | None) -> None:
    assert remote_acls([acl], MORE) == (set() if copy is None else {copy})


@pytest.mark.parametrize(
    ("acl", "staged"),
    [
        (READS._replace(operation="WRITE"), COPY._replace(operation="WRITE")),
        (READS._replace(operation="ALL", host="10.0.0.1"), COPY._replace(operation="WRITE", host="10.0.0.1")),
        (READS._replace(name="*", operation="WRITE"), READS._replace(name="A.", pattern="PREFIXED", operation="WRITE")),
        (READS, None),
        (READS._replace(operation="WRITE", permission="DENY"), None),
        (READS._replace(operation="WRITE", name="other"), None),
        (OF_GROUP._replace(operation="ALL"), None),
    ],
)
def test_what_allows_to_write_is_staged_where_readers_get_a_copy(acl: Acl, staged: Acl | None) -> None:
    assert staged_acls([acl], MORE) == ({} if staged is None else {acl: staged})


def test_by_choice_what_allows_to_write_is_recorded_and_not_made() -> None:
    keys = {"sync_topic_acls_write_policy": "failover", "sync_topic_acls_removal_enabled": "true"}
    synced = Synced(**keys)
    writes, copy = READS._replace(operation="WRITE"), COPY._replace(operation="WRITE")
    synced.source.add(writes)
    synced.acls.look()
    assert synced.target == {*synced.acls.made()} == {COPY}
    assert {*synced.acls.staged()} == {copy}
    WriteRights(synced.flow.settings, allows=True, reach=synced.flow.reach).set()
    synced.source.clear()
    synced.acls.look()
    synced.acls.look()
    assert synced.target == {copy}, "what a failover put in force stays, whatever the source says"
    assert {*synced.acls.made()} == {copy}
    assert not synced.acls.staged()


def test_what_is_staged_stays_while_its_topic_does_not_flow_for_a_while() -> None:
    synced = Synced(sync_topic_acls_write_policy="failover", topics="t, u")
    writes, copy = READS._replace(operation="WRITE"), COPY._replace(operation="WRITE")
    synced.source.update({writes, writes._replace(name="u"), writes._replace(name="other")})
    synced.acls.look()
    synced.remotes = {}
    synced.acls.look()
    synced.begin()
    synced.acls.look()
    assert {*synced.acls.staged()} == {copy}, "u never flowed"
    synced.source.discard(writes)
    synced.acls.look()
    synced.acls.look()
    assert not synced.acls.staged()


def test_what_was_made_is_recorded_by_resource() -> None:
    records = acl_records([], [COPY, COPY._replace(operation="DESCRIBE"), OF_GROUP])
    assert records == {
        b'["acls","GROUP","g"]': b'{"v":1,"made":[["LITERAL","User:ann","*","READ","ALLOW"]]}',
        b'["acls","TOPIC","A.t"]': (
            b'{"v":1,"made":[["LITERAL","User:ann","*","DESCRIBE","ALLOW"],["LITERAL","User:ann","*","READ","ALLOW"]]}'
        ),
    }
    made = MadeHere()
    assert all(made.take(*record) for record in records.items())
    assert made.acls == {COPY, COPY._replace(operation="DESCRIBE"), OF_GROUP}
    assert acl_records([COPY, OF_GROUP], [COPY]) == {b'["acls","GROUP","g"]': b'{"v":1,"made":[]}'}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'["configs","A.t"]', b'{"v":1,"made":[]}'),
        (b'["acls","TOPIC"]', b'{"v":1,"made":[]}'),
        (b'["acls","TOPIC","A.t"]', b'{"v":2,"made":[]}'),
        (b'["acls","TOPIC","A.t"]', b'{"v":1,"made":[["LITERAL"]]}'),
        (b'["acls","TOPIC","A.t"]', None),
        (b"\xff", b"{}"),
    ],
)
def test_what_is_no_such_record_is_passed_over(key: bytes, value: bytes | None) -> None:
    made = MadeHere()
    assert not made.take(key, value)
    assert not made.acls


class Synced:
    """A flow in memory, and what gives its target ACLs."""

    def __init__(self, **keys: str) -> None:
        self.flow = MemoryFlow(flow_settings({name.replace("_", "."): value for name, value in keys.items()}))
        self.flow.source.entries, self.flow.target.entries = {READS}, set()
        self.flow.write(b"a")
        self.flow.run()
        self.remotes: Mapping[str, str] = {"t": "A.t"}
        self.begin()

    def begin(self) -> None:
        """As after a restart."""
        settings, target = self.flow.settings, self.flow.target
        maps = OffsetMaps(target, settings.map_topic, "test", RuntimeError)  # type: ignore[arg-type]
        self.acls = RemoteAcls(self.flow.clusters, maps, lambda: self.remotes)

    @property
    def source(self) -> set[Acl]:
        assert self.flow.source.entries is not None
        return self.flow.source.entries

    @property
    def target(self) -> set[Acl]:
        assert self.flow.target.entries is not None
        return self.flow.target.entries


def test_what_is_missing_is_added_and_nothing_is_taken_away(caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced()
    others = Acl("A.t", "LITERAL", "User:bob", "*", "READ", "ALLOW")
    synced.target.add(others)
    caplog.set_level(logging.INFO)
    caplog.clear()
    synced.acls.look()
    synced.acls.look()
    synced.source.clear()
    synced.acls.look()
    assert synced.target == {others, COPY}
    (told,) = [record.message for record in caplog.records]
    assert told == "flow=A->B added 1 ACL on B: ALLOW READ on topic A.t to User:ann from *"


def test_whom_the_target_does_not_deny_any_more_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced(sync_topic_acls_principal_mapping_rules="RULE:CN=(.*)/$1/")
    synced.source.clear()
    synced.source.update({READS._replace(principal="User:*"), READS._replace(permission="DENY")})
    synced.acls.look()
    synced.acls.look()
    assert synced.target == {COPY._replace(principal="User:*")}
    (told,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert told.startswith("flow=A->B ACL not copied: DENY READ on topic t to User:ann from *: sync.topic.acls.princ")
    assert told.endswith("; deny it on B by hand")


def test_by_choice_what_was_made_here_goes_with_its_source(caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced(sync_topic_acls_removal_enabled="true")
    others = Acl("A.t", "LITERAL", "User:bob", "*", "READ", "ALLOW")
    before = READS._replace(operation="DESCRIBE")
    synced.source.add(before)
    synced.target.update({others, before._replace(name="A.t")})
    synced.acls.look()
    assert synced.target == {others, COPY, before._replace(name="A.t")}
    synced.begin()
    synced.source.clear()
    caplog.set_level(logging.INFO)
    caplog.clear()
    synced.acls.look()
    assert synced.target == {others, before._replace(name="A.t")}, "a restart knows what was made here, and by whom"
    (told,) = [record.message for record in caplog.records]
    assert told == "flow=A->B removed 1 ACL on B: ALLOW READ on topic A.t to User:ann from *"
    synced.acls.look()
    assert not any(synced.acls.made())


def test_what_was_made_before_removal_was_chosen_is_known() -> None:
    synced = Synced()
    synced.acls.look()
    synced.source.clear()
    synced.acls.look()
    assert synced.acls.made() == {COPY}


def test_a_topic_that_does_not_flow_now_keeps_its_acls() -> None:
    synced = Synced(sync_topic_acls_removal_enabled="true")
    synced.acls.look()
    synced.remotes = {}
    synced.acls.look()
    assert synced.target == {COPY}


def test_what_was_refused_and_is_made_by_hand_is_not_taken_back() -> None:
    synced = Synced(sync_topic_acls_removal_enabled="true")
    synced.flow.target.forbidden["A.t"] = "not allowed"
    synced.acls.look()
    assert not synced.acls.made()
    synced.flow.target.forbidden.clear()
    synced.target.add(COPY)
    synced.acls.look()
    synced.source.clear()
    synced.acls.look()
    assert synced.target == {COPY}


@pytest.mark.parametrize("policy", [DefaultReplicationPolicy("-"), IdentityReplicationPolicy()])
def test_what_was_made_by_another_policy_stays(policy: ReplicationPolicy) -> None:
    keys = {"sync_topic_acls_removal_enabled": "true", "sync_topic_acls_patterns_enabled": "true"}
    synced = Synced(**keys)
    synced.source.add(READS._replace(name="*"))
    synced.acls.look()
    before = {COPY, READS._replace(name="A.", pattern="PREFIXED")}
    assert synced.target == before
    synced.flow.clusters = replace(synced.flow.clusters, policy=policy)
    synced.remotes = {"t": policy.format_remote_topic("A", "t")}
    synced.begin()
    synced.acls.look()
    assert synced.target > before
    synced.source.clear()
    synced.acls.look()
    assert synced.target == before, "and what this policy made goes with its source"


def test_what_was_made_for_patterns_stays_while_they_are_not_copied() -> None:
    synced = Synced(sync_topic_acls_removal_enabled="true", sync_topic_acls_patterns_enabled="true")
    synced.source.add(READS._replace(name="*"))
    synced.acls.look()
    acls = replace(synced.flow.settings.acls, patterns=False)
    synced.flow.clusters = replace(synced.flow.clusters, settings=replace(synced.flow.settings, acls=acls))
    synced.begin()
    synced.acls.look()
    assert synced.target == {COPY, READS._replace(name="A.", pattern="PREFIXED")}
    synced.source.clear()
    synced.acls.look()
    assert synced.target == set()


def test_a_policy_that_keeps_names_has_no_prefixes_of_its_own() -> None:
    synced = Synced(sync_topic_acls_patterns_enabled="true")
    synced.remotes = {"t": "t"}
    synced.flow.clusters = replace(synced.flow.clusters, policy=IdentityReplicationPolicy())
    synced.begin()
    synced.source.add(READS._replace(pattern="PREFIXED"))
    synced.acls.look()
    assert synced.target == {READS}


def test_by_choice_prefixes_and_groups_come_too() -> None:
    synced = Synced(sync_topic_acls_patterns_enabled="true", sync_group_acls_enabled="true", groups="g")
    synced.source.update({READS._replace(pattern="PREFIXED"), OF_GROUP, OF_GROUP._replace(name="other")})
    synced.acls.look()
    assert synced.target == {COPY, COPY._replace(pattern="PREFIXED"), OF_GROUP}


def test_those_of_groups_are_known_as_made_here_while_they_are_not_looked_at() -> None:
    synced = Synced(sync_group_acls_enabled="true", groups="g")
    synced.source.add(OF_GROUP)
    synced.acls.look()
    acls = replace(synced.flow.settings.acls, groups=False)
    synced.flow.clusters = replace(synced.flow.clusters, settings=replace(synced.flow.settings, acls=acls))
    synced.begin()
    synced.acls.look()
    assert synced.acls.made() == {COPY, OF_GROUP}


def test_a_refusal_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced()
    synced.flow.target.forbidden["A.t"] = "not allowed"
    caplog.clear()
    synced.acls.look()
    synced.acls.look()
    (told,) = [record.message for record in caplog.records]
    assert told == "flow=A->B ACL on B cannot be added: ALLOW READ on topic A.t to User:ann from *: not allowed"


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_cluster_without_an_authorizer_is_no_failure(side: str, caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced()
    getattr(synced.flow, side).entries = None
    caplog.set_level(logging.INFO)
    caplog.clear()
    synced.acls.look()
    synced.acls.look()
    (told,) = [record.message for record in caplog.records]
    assert "has no authorizer" in told


def test_a_cluster_that_does_not_tell_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced()
    synced.flow.source.down = "away"
    caplog.clear()
    synced.acls.look()
    synced.acls.look()
    (told,) = [record.message for record in caplog.records]
    assert "ACLs are not copied" in told
