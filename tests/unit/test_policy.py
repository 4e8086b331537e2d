"""Names across clusters, against what the classes of Kafka 4.3.1 answer."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.core.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    is_cycle,
    load_policy,
)
from srm_spark.errors import PluginError

DOTS = DefaultReplicationPolicy()
UNDERSCORE = DefaultReplicationPolicy("_", "_")
DOUBLE = DefaultReplicationPolicy("__", "__")
MIXED = DefaultReplicationPolicy("_", ".")
IDENTITY = IdentityReplicationPolicy(source_alias="A")

# policy, topic, remote name under alias A, source, upstream, original,
# flags: h heartbeats, c checkpoints, m MirrorMaker 2's, i internal
JAVA = [
    (DOTS, "t", "A.t", None, None, "t", ""),
    (DOTS, "A.t", "A.A.t", "A", "t", "t", ""),
    (DOTS, "B.A.t", "A.B.A.t", "B", "A.t", "t", ""),
    (DOTS, "A.", "A.A.", None, None, "A.", ""),
    (DOTS, "A..", "A.A..", None, None, "A..", ""),
    (DOTS, ".x", "A..x", "", "x", "x", "i"),
    (DOTS, "A..x", "A.A..x", "A", ".x", "x", ""),
    (DOTS, "...", "A....", None, None, "...", "i"),
    (DOTS, "heartbeats", "A.heartbeats", None, None, "heartbeats", "h"),
    (DOTS, "A.heartbeats", "A.A.heartbeats", "A", "heartbeats", "heartbeats", "h"),
    (DOTS, "B.A.heartbeats", "A.B.A.heartbeats", "B", "A.heartbeats", "heartbeats", "h"),
    (DOTS, "my-heartbeats", "A.my-heartbeats", None, None, "my-heartbeats", ""),
    (DOTS, "heartbeats!", "A.heartbeats!", None, None, "heartbeats!", ""),
    (DOTS, "!heartbeats", "A.!heartbeats", None, None, "!heartbeats", ""),
    (DOTS, "source1heartbeats", "A.source1heartbeats", None, None, "source1heartbeats", ""),
    (DOTS, "us-west.heartbeats", "A.us-west.heartbeats", "us-west", "heartbeats", "heartbeats", "h"),
    (DOTS, "__t", "A.__t", None, None, "__t", "i"),
    (DOTS, "__consumer_offsets", "A.__consumer_offsets", None, None, "__consumer_offsets", "i"),
    (
        DOTS,
        "mm2-offset-syncs.A.internal",
        "A.mm2-offset-syncs.A.internal",
        "mm2-offset-syncs",
        "A.internal",
        "internal",
        "mi",
    ),
    (DOTS, "A.checkpoints.internal", "A.A.checkpoints.internal", "A", "checkpoints.internal", "internal", "cmi"),
    (DOTS, "checkpoints.internal", "A.checkpoints.internal", "checkpoints", "internal", "internal", ""),
    (DOTS, "mm2.internal", "A.mm2.internal", "mm2", "internal", "internal", "mi"),
    (DOTS, "mm2internal", "A.mm2internal", None, None, "mm2internal", ""),
    (DOTS, "mm2-offsets.A.internal", "A.mm2-offsets.A.internal", "mm2-offsets", "A.internal", "internal", "mi"),
    (DOTS, "x.internal", "A.x.internal", "x", "internal", "internal", ""),
    (DOTS, "", "A.", None, None, "", ""),
    (UNDERSCORE, "A.t", "A_A.t", None, None, "A.t", ""),
    (UNDERSCORE, "us-west.heartbeats", "A_us-west.heartbeats", None, None, "us-west.heartbeats", ""),
    (UNDERSCORE, "us-west_heartbeats", "A_us-west_heartbeats", "us-west", "heartbeats", "heartbeats", "h"),
    (UNDERSCORE, "A_t", "A_A_t", "A", "t", "t", ""),
    (
        UNDERSCORE,
        "mm2-offset-syncs_A_internal",
        "A_mm2-offset-syncs_A_internal",
        "mm2-offset-syncs",
        "A_internal",
        "internal",
        "mi",
    ),
    (UNDERSCORE, "A.checkpoints.internal", "A_A.checkpoints.internal", None, None, "A.checkpoints.internal", ""),
    (UNDERSCORE, "A_checkpoints_internal", "A_A_checkpoints_internal", "A", "checkpoints_internal", "internal", "cmi"),
    (UNDERSCORE, "mm2-offsets.A.internal", "A_mm2-offsets.A.internal", None, None, "mm2-offsets.A.internal", ""),
    (DOUBLE, "heartbeats", "A__heartbeats", None, None, "heartbeats", "h"),
    (DOUBLE, "us-west.heartbeats", "A__us-west.heartbeats", None, None, "us-west.heartbeats", ""),
    (DOUBLE, "A__t", "A__A__t", "A", "t", "t", ""),
    (DOUBLE, "A___t", "A__A___t", "A", "_t", "_t", ""),
    (DOUBLE, "__t", "A____t", "", "t", "t", "i"),
    (DOUBLE, "A__heartbeats", "A__A__heartbeats", "A", "heartbeats", "heartbeats", "h"),
    (
        DOUBLE,
        "mm2-offset-syncs.A.internal",
        "A__mm2-offset-syncs.A.internal",
        None,
        None,
        "mm2-offset-syncs.A.internal",
        "",
    ),
    (MIXED, "A_t", "A_A_t", "A", "t", "t", ""),
    (
        MIXED,
        "mm2-offset-syncs_A_internal",
        "A_mm2-offset-syncs_A_internal",
        "mm2-offset-syncs",
        "A_internal",
        "internal",
        "",
    ),
    (MIXED, "A.checkpoints.internal", "A_A.checkpoints.internal", None, None, "A.checkpoints.internal", "cmi"),
    (MIXED, "A_checkpoints_internal", "A_A_checkpoints_internal", "A", "checkpoints_internal", "internal", ""),
    (MIXED, "mm2-offsets.A.internal", "A_mm2-offsets.A.internal", None, None, "mm2-offsets.A.internal", "mi"),
    (IDENTITY, "t", "t", "A", "t", "t", ""),
    (IDENTITY, "A.t", "A.t", "A", "A.t", "A.t", ""),
    (IDENTITY, ".x", ".x", "A", ".x", ".x", "i"),
    (IDENTITY, "heartbeats", "A.heartbeats", None, None, "heartbeats", "h"),
    (IDENTITY, "A.heartbeats", "A.A.heartbeats", "A", "heartbeats", "heartbeats", "h"),
    (IDENTITY, "B.A.heartbeats", "A.B.A.heartbeats", "B", "A.heartbeats", "heartbeats", "h"),
    (IDENTITY, "my-heartbeats", "A.my-heartbeats", None, None, "my-heartbeats", ""),
    (IDENTITY, "A.my-heartbeats", "A.A.my-heartbeats", "A", "my-heartbeats", "my-heartbeats", ""),
    (IDENTITY, "heartbeats!", "heartbeats!", "A", "heartbeats!", "heartbeats!", ""),
    (IDENTITY, "!heartbeats", "A.!heartbeats", None, None, "!heartbeats", ""),
    (IDENTITY, "source1heartbeats", "A.source1heartbeats", None, None, "source1heartbeats", ""),
    (IDENTITY, "__t", "__t", "A", "__t", "__t", "i"),
    (
        IDENTITY,
        "A.checkpoints.internal",
        "A.checkpoints.internal",
        "A",
        "A.checkpoints.internal",
        "A.checkpoints.internal",
        "cmi",
    ),
    (IDENTITY, "", "", "A", "", "", ""),
]

names = st.text(st.sampled_from("ab-"), min_size=1, max_size=5)


@pytest.mark.parametrize(("policy", "topic", "remote", "source", "upstream", "original", "flags"), JAVA)
def test_policies_answer_as_the_java_classes(
    *,
    policy: ReplicationPolicy,
    topic: str,
    remote: str,
    source: str | None,
    upstream: str | None,
    original: str,
    flags: str,
) -> None:
    assert policy.format_remote_topic("A", topic) == remote
    assert policy.topic_source(topic) == source
    assert policy.upstream_topic(topic) == upstream
    assert policy.original_topic(topic) == original
    assert policy.is_heartbeats_topic(topic) == ("h" in flags)
    assert policy.is_checkpoints_topic(topic) == ("c" in flags)
    assert policy.is_mm2_internal_topic(topic) == ("m" in flags)
    assert policy.is_internal_topic(topic) == ("i" in flags)


@pytest.mark.parametrize(
    ("policy", "syncs", "checkpoints"),
    [
        (DOTS, "mm2-offset-syncs.B.internal", "A.checkpoints.internal"),
        (UNDERSCORE, "mm2-offset-syncs_B_internal", "A_checkpoints_internal"),
        (DOUBLE, "mm2-offset-syncs__B__internal", "A__checkpoints__internal"),
        (MIXED, "mm2-offset-syncs.B.internal", "A.checkpoints.internal"),
        (IDENTITY, "mm2-offset-syncs.B.internal", "A.checkpoints.internal"),
    ],
)
def test_internal_topics_are_called_as_in_java(policy: ReplicationPolicy, syncs: str, checkpoints: str) -> None:
    assert policy.heartbeats_topic() == "heartbeats"
    assert policy.offset_syncs_topic("B") == syncs
    assert policy.checkpoints_topic("A") == checkpoints
    assert policy.is_mm2_internal_topic(syncs)
    assert policy.is_checkpoints_topic(checkpoints)
    assert policy.is_internal_topic(checkpoints)


@given(names, names, st.sampled_from([DOTS, UNDERSCORE, DOUBLE]))
def test_remote_names_lead_back(alias: str, topic: str, policy: DefaultReplicationPolicy) -> None:
    remote = policy.format_remote_topic(alias, topic)
    assert (policy.topic_source(remote), policy.upstream_topic(remote)) == (alias, topic)
    assert policy.original_topic(policy.format_remote_topic("c", remote)) == topic


@given(names)
def test_identity_keeps_names_but_those_of_heartbeats(topic: str) -> None:
    assert IDENTITY.format_remote_topic("A", topic) == topic
    assert IDENTITY.upstream_topic(topic) == topic
    heartbeats = topic + "heartbeats"
    assert IDENTITY.format_remote_topic("A", heartbeats) == "A." + heartbeats
    assert IDENTITY.upstream_topic("A." + heartbeats) == heartbeats


def test_identity_without_alias_knows_no_source() -> None:
    assert IdentityReplicationPolicy().topic_source("t") is None


@pytest.mark.parametrize(
    ("policy", "topic", "cycle"),
    [
        (DOTS, "t", False),
        (DOTS, "B.t", True),
        (DOTS, "B.A.t", True),
        (DOTS, "C.B.t", True),
        (DOTS, "C.D.B.t", True),
        (DOTS, "A.t", False),  # a cycle to 4.4 only
        (DOTS, "C.A.t", False),
        (DOTS, "B.", False),
        (DOTS, "B.heartbeats", True),
        (DOTS, "A.heartbeats", False),
        (UNDERSCORE, "B.t", False),
        (UNDERSCORE, "B_t", True),
        (IDENTITY, "t", False),
        (IDENTITY, "B.t", False),
        (IDENTITY, "B.A.t", False),
        (IDENTITY, "B.heartbeats", True),
        (IDENTITY, "A.B.heartbeats", True),
        (IDENTITY, "A.heartbeats", False),
        (IdentityReplicationPolicy(source_alias="B"), "t", True),
        (IdentityReplicationPolicy(), "B.t", False),
    ],
)
def test_cycles(policy: ReplicationPolicy, topic: str, cycle: bool) -> None:
    assert is_cycle(policy, topic, target_alias="B") is cycle


@pytest.mark.parametrize("prefix", ["", "org.apache.kafka.connect.mirror."])
def test_java_names_of_built_in_policies_load(prefix: str) -> None:
    default = load_policy(prefix + "DefaultReplicationPolicy", source_alias="A", separator="_", internal_separator=".")
    assert default == MIXED
    assert load_policy(f" {prefix}IdentityReplicationPolicy ", source_alias="A") == IDENTITY


class Upper(DefaultReplicationPolicy):
    """A custom policy by inheritance."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_alias.upper(), topic)


class Bare:
    """Offers nothing that a policy needs."""


class Partial:
    """A custom policy that inherits nothing and takes the alias only; it forgot one method."""

    internal_separator = "."

    def __init__(self, source_alias: str) -> None:
        self.source_alias = source_alias

    def topic_source(self, topic: str) -> str | None:
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return topic

    original_topic = heartbeats_topic = offset_syncs_topic = checkpoints_topic = upstream_topic
    is_heartbeats_topic = is_checkpoints_topic = is_mm2_internal_topic = is_internal_topic = upstream_topic


class Complete(Partial):
    """The same with the method."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return topic


class AnyKeyword(DefaultReplicationPolicy):
    """Takes everything offered."""

    def __init__(self, **offered: str) -> None:
        super().__init__(offered["separator"] + offered["source_alias"], offered["internal_separator"])


class Broken(DefaultReplicationPolicy):
    """Cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("no licence")


@pytest.fixture
def company(monkeypatch: pytest.MonkeyPatch) -> str:
    module = ModuleType("company_policies")
    for custom in (Upper, Bare, Partial, Complete, AnyKeyword, Broken):
        setattr(module, custom.__name__, custom)
    module.__dict__["value"] = 3
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.__name__


def test_custom_policies_load_with_what_they_take(company: str) -> None:
    upper = load_policy(f"{company}:Upper", source_alias="a", separator="-")
    assert upper.format_remote_topic("a", "t") == "A-t"
    complete = load_policy(f"{company}:Complete", source_alias="a")
    assert complete.topic_source("t") == "a"
    assert load_policy(f"{company}:AnyKeyword", source_alias="a", separator="-").format_remote_topic("x", "t") == "x-at"


@pytest.mark.parametrize("name", ["com.cloudera.dim.mirror.MigratingReplicationPolicy", "LegacyReplicationPolicy"])
def test_policies_of_srm_that_keep_names_are_known_by_theirs(name: str) -> None:
    policy = load_policy(name, source_alias="A")
    assert (policy.format_remote_topic("A", "orders"), policy.topic_source("orders")) == ("orders", "A")
    assert policy.format_remote_topic("A", "heartbeats") == "A.heartbeats"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("com.acme.MyPolicy", "your_package.module:YourPolicy, a subclass of srm_spark.policy.Default"),
        ("", "Java class"),
        ("no_such_module_here:Policy", "ModuleNotFoundError"),
        (":Policy", "cannot be imported"),
        ("company_policies:Absent", "AttributeError"),
        ("company_policies:value", "is a int, expected a class"),
        ("company_policies:Bare", "lacks .*format_remote_topic"),
        ("company_policies:Partial", "lacks format_remote_topic;"),
        ("company_policies:Broken", "no licence"),
    ],
)
def test_unusable_classes_are_explained(company: str, name: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        load_policy(name, source_alias="a")


def test_empty_separator_is_refused() -> None:
    with pytest.raises(PluginError, match="separator is empty"):
        load_policy("DefaultReplicationPolicy", separator="")
