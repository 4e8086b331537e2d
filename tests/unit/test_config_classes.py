"""Which class a property of topics is of, by which key, and what becomes of it then."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.config.load import load_settings
from srm_spark.core.cluster import ConfigChange
from srm_spark.core.config_classes import Classified, ConfigClass, ConfigClasses
from srm_spark.core.filters import NameFilter
from srm_spark.core.topic_configs import compare_configs
from srm_spark.errors import ConfigError
from tests.unit.config_values import config_of, default, own
from tests.unit.memory_flow import FILE, flow_settings

ALWAYS, USUALLY, NEVER = ConfigClass.ALWAYS, ConfigClass.USUALLY, ConfigClass.NEVER
EXCLUDE = "config.properties.exclude"


class OnlyRetention(NameFilter):
    """Of a user's own."""

    def matches(self, name: str) -> bool:
        return name.startswith("retention")


@pytest.mark.parametrize(
    ("name", "keys", "found"),
    [
        ("retention.ms", {}, Classified(USUALLY, EXCLUDE)),
        ("min.insync.replicas", {}, Classified(NEVER, EXCLUDE, "min.insync.replicas")),
        ("retention.ms", {EXCLUDE: "retention.*"}, Classified(NEVER, EXCLUDE, "retention.*")),
        ("min.insync.replicas", {USUALLY.key: "min.*"}, Classified(USUALLY, USUALLY.key, "min.*")),
        ("message.timestamp.type", {ALWAYS.key: "message.*"}, Classified(ALWAYS, ALWAYS.key, "message.*")),
        ("retention.ms", {NEVER.key: "x, retention.ms"}, Classified(NEVER, NEVER.key, "retention.ms")),
        ("x", {ALWAYS.key: ".*", USUALLY.key: ".*"}, Classified(ALWAYS, ALWAYS.key, ".*")),
        ("x", {NEVER.key: ".*", ALWAYS.key: ".*"}, Classified(NEVER, NEVER.key, ".*")),
    ],
)
def test_the_first_key_that_names_a_property_decides(name: str, keys: dict[str, str], found: Classified) -> None:
    assert flow_settings(keys).topics.config_classes().classify(name) == found


def test_the_keys_go_before_a_filter_class() -> None:
    path = f"{__name__}:OnlyRetention"
    classes = ConfigClasses((), path, {USUALLY: ("segment.*",), NEVER: ("retention.bytes",)})
    assert classes.of("segment.ms") is USUALLY
    assert classes.of("retention.bytes") is NEVER
    assert classes.classify("retention.ms") == Classified(USUALLY, "config.property.filter.class")
    assert classes.classify("flush.ms") == Classified(NEVER, "config.property.filter.class")


@pytest.mark.parametrize("one", ConfigClass)
def test_a_pattern_that_does_not_compile_is_refused_with_its_key(one: ConfigClass, tmp_path: Path) -> None:
    file = tmp_path / "srm.properties"
    file.write_text(f"{FILE}{one.key} = a, b[\n")
    with pytest.raises(ConfigError, match=rf"srm.properties:13[^\n]*{one.key}"):
        load_settings([file])


@pytest.mark.parametrize(
    ("source", "change"),
    [
        (own("1"), "1"),
        (default("1"), "1"),
        (config_of("1", is_static=True), "1"),
        (own("1", is_sensitive=True), ""),
        (own("1", is_read_only=True), ""),
        (default(None), ""),
    ],
)
def test_what_is_always_copied_is_what_is_in_force(source: object, change: str) -> None:
    found = compare_configs(
        {"max.message.bytes": source},  # type: ignore[dict-item]
        {"max.message.bytes": own("2")},
        lambda _: ALWAYS,
        copies_defaults=False,
        ours={},
        resets=False,
    )
    assert found.changes == ((ConfigChange("max.message.bytes", change),) if change else ())
    assert found.ours == ({"max.message.bytes": change} if change else {})


@pytest.mark.parametrize("prunes", [False, True])
def test_what_is_taken_no_more_is_known_as_ours_until_it_is_pruned(*, prunes: bool) -> None:
    """By another class, by a version of brokers that knows it no more, and by the brokers' own file."""
    source = {"a": own("1"), "c": config_of("3", is_static=True), "d": own("1"), "e": own("1")}
    target = {key: own("1") for key in "abcd"} | {"e": default("1")}
    classes = ConfigClasses(moved={NEVER: ("[ade]",)})
    ours = dict.fromkeys("abce", "1")
    found = compare_configs(source, target, classes.of, copies_defaults=False, ours=ours, resets=True, prunes=prunes)
    assert found.stale == {"a": "1", "b": "1", "c": "1"}, "nobody knows who made d, and e is gone"
    assert found.ours == ({} if prunes else found.stale)
    assert set(found.changes) == ({ConfigChange(key, None) for key in "abc"} if prunes else set())
