"""Principals by the rules of Kafka's `ssl.principal.mapping.rules`, and where a list of rules cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.config.load import load_settings
from srm_spark.core.acls import GROUP, Acl, AclRules, NotCopied, judge_acls
from srm_spark.core.principal_rules import RuleError, read_rules
from srm_spark.errors import ConfigError
from tests.unit.memory_flow import FILE, flow_settings

KEY = "sync.topic.acls.principal.mapping.rules"


@pytest.mark.parametrize(
    ("rules", "name", "other"),
    [
        ("", "ann", "ann"),
        ("DEFAULT", "ann", "ann"),
        ("RULE:a.*/x/", "ann", "x"),
        ("RULE:a.*/x/", "bob", None),
        ("RULE:a.*/x/, DEFAULT", "bob", "bob"),
        ("RULE:nn/x/,DEFAULT", "ann", "ann"),  # the whole name
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=ann,OU=ServiceUsers,O=x", "ann"),
        ("RULE:^CN=(.*?),OU=(.*?)$/$1@$2/L, RULE:.*/all/U", "CN=Ann,OU=IT", "ann@it"),
        ("RULE:^CN=(.*?),OU=(.*?)$/$1@$2/L, RULE:.*/all/U", "Ann", "ALL"),
        (r"RULE:(.*)\/(.*)/$2\/$1/", "a/b", "b/a"),
        ("RULE:(a)(b)?/$1$2$3/", "a", "a$3"),
        ("RULE:(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)/$10$11/", "abcdefghij", "ja1"),
        (r"RULE:.*/\$1,\\/", "ann", "$1,\\"),
        ("  RULE:a{1,3}nn//\n, DEFAULT ", "aann", None),  # nobody is called so
        ("RULE:^CN=([^.,]+).*$/$1/L, DEFAULT", "CN=*.example.com,OU=x", None),  # one, and not everybody
    ],
)
def test_the_first_rule_that_matches_the_whole_name_decides(rules: str, name: str, other: str | None) -> None:
    found = read_rules(rules).apply(f"User:{name}")
    assert found == (None if other is None else f"User:{other}")


@pytest.mark.parametrize("principal", ["User:*", "Group:g", "ann"])
def test_everybody_and_what_is_no_user_is_the_same(principal: str) -> None:
    assert read_rules("RULE:a/b/").apply(principal) == principal


@pytest.mark.parametrize(
    ("rules", "position"),
    [
        ("User:a=User:b", 1),
        (" default", 2),
        ("RULE:a/b", 1),
        ("RULE:a/b/X", 1),
        ("RULE:a/b/,", 11),
        ("DEFAULT,,DEFAULT", 9),
        ("RULE:a/b/LU", 1),
        ("DEFAULT, RULE:a(/b/", 15),
        ("DEFAULT DEFAULT", 1),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(rules: str, position: int) -> None:
    with pytest.raises(RuleError, match=f"^character {position}: "):
        read_rules(rules)


@given(st.text() | st.lists(st.sampled_from(["RULE:", "a", "/", ",", "L", "DEFAULT", "\\", " ", "$1"])).map("".join))
def test_any_text_is_rules_or_an_error(text: str) -> None:
    try:
        rules = read_rules(text)
    except RuleError:
        return
    rules.apply("User:ann")


def test_the_key_is_checked_when_it_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "srm.properties"
    file.write_text(f"{FILE}{KEY} = DEFAULT,x\n")
    with pytest.raises(ConfigError, match=rf"srm.properties:13: {KEY}: got 'DEFAULT,x': character 9: "):
        load_settings([file])
    assert flow_settings({KEY: "RULE:a/b/"}).acls.principals.apply("User:a") == "User:b"


def test_copies_are_for_who_is_meant_on_the_target() -> None:
    reads = Acl("t", "LITERAL", "User:CN=ann", "*", "READ", "ALLOW")
    of_group, other = reads._replace(name="g", kind=GROUP), reads._replace(principal="User:bob")
    rules = AclRules(
        lambda _: True,
        lambda topic: f"A.{topic}",
        takes_group=lambda _: True,
        principal=read_rules("RULE:CN=(.*)/$1/").apply,
    )
    assert judge_acls([reads, of_group, other], rules) == {
        reads: reads._replace(name="A.t", principal="User:ann"),
        of_group: of_group._replace(principal="User:ann"),
        other: NotCopied.PRINCIPAL,
    }


@pytest.mark.parametrize(
    ("name", "pattern", "kind", "why"),
    [
        ("t", "LITERAL", "TOPIC", NotCopied.DENIED),
        ("*", "LITERAL", "TOPIC", NotCopied.DENIED),
        ("", "PREFIXED", "TOPIC", NotCopied.DENIED),
        ("other", "LITERAL", "TOPIC", NotCopied.PRINCIPAL),
        ("other", "PREFIXED", "TOPIC", NotCopied.PRINCIPAL),
        ("t", "LITERAL", GROUP, NotCopied.PRINCIPAL),
    ],
)
def test_who_is_denied_what_everybody_may_and_has_no_name_there_is_told(
    name: str, pattern: str, kind: str, why: NotCopied
) -> None:
    everybody = Acl("t", "LITERAL", "User:*", "*", "READ", "ALLOW")
    denied = Acl(name, pattern, "User:CN=*", "*", "ALL", "DENY", kind)
    rules = AclRules(
        lambda _: True,
        str,
        lambda prefix: f"A.{prefix}",
        takes_group=lambda _: True,
        principal=read_rules("RULE:CN=(.*)/$1/").apply,
    )
    assert judge_acls([everybody, denied], rules) == {everybody: everybody, denied: why}
    assert judge_acls([denied], rules) == {denied: NotCopied.PRINCIPAL}


@pytest.mark.parametrize(("key", "value"), [(KEY, "RULE:a/b/"), ("sync.topic.acls.write.policy", "failover")])
def test_a_key_about_acls_that_nobody_copies_is_told(key: str, value: str, tmp_path: Path) -> None:
    file = tmp_path / "srm.properties"
    file.write_text(f"{FILE}{key} = {value}\nsync.topic.acls.enabled = false\n")
    (told,) = [line for line in load_settings([file]).warnings if "has no effect" in line]
    assert f"srm.properties:13: {key}: has no effect: no ACLs of A->B are copied" in told
