"""What remote topics get of the configs of their source topics, and what of their own they keep."""

from __future__ import annotations

import logging

import pytest

from srm_spark.core.cluster import ConfigChange, TopicConfig
from srm_spark.core.config_classes import ConfigClass
from srm_spark.core.losing_configs import losing_configs
from srm_spark.core.made_here import MadeHere
from srm_spark.core.topic_configs import compare_configs, configs_key, configs_value, decode_configs
from srm_spark.flow.topics.offset_map import OffsetMaps
from srm_spark.flow.topics.topic_configs import TopicConfigs
from tests.unit.config_values import config_of, default, own
from tests.unit.memory_flow import MemoryFlow, flow_settings

DAY, WEEK = "86400000", "604800000"


def usually(_: str) -> ConfigClass:
    return ConfigClass.USUALLY


def never(_: str) -> ConfigClass:
    return ConfigClass.NEVER


@pytest.mark.parametrize(
    ("source", "target", "change"),
    [
        (own(DAY), default(WEEK), DAY),
        (own(DAY), own(WEEK), DAY),
        (own(DAY), own(DAY), ""),
        (own(WEEK), default(WEEK), WEEK),  # equal by chance, until the cluster's default is another one
        (config_of(DAY), default(WEEK), DAY),  # a default of all brokers that somebody set while they ran
        (own(DAY, is_sensitive=True), default(WEEK), ""),
        (own(DAY, is_read_only=True), default(WEEK), ""),
        (config_of(DAY, is_static=True), own(WEEK), ""),
        (default(DAY), default(WEEK), ""),
        (own(DAY), None, DAY),
        (own(None), own(WEEK), ""),
    ],
)
def test_what_the_source_sets_the_remote_topic_gets(
    source: TopicConfig, target: TopicConfig | None, change: str
) -> None:
    there = {} if target is None else {"retention.ms": target}
    found = compare_configs({"retention.ms": source}, there, usually, copies_defaults=False, ours={}, resets=False)
    assert found.changes == ((ConfigChange("retention.ms", change),) if change else ())


@pytest.mark.parametrize(
    ("ours", "resets", "is_reset"),
    [
        ({}, False, False),
        ({"retention.ms": DAY}, False, True),
        ({"retention.ms": WEEK}, False, False),
        ({}, True, True),
    ],
)
def test_only_what_came_from_the_source_goes_when_it_goes_there(
    ours: dict[str, str], resets: bool, is_reset: bool
) -> None:
    found = compare_configs(
        {"retention.ms": default(WEEK)},
        {"retention.ms": own(DAY)},
        usually,
        copies_defaults=False,
        ours=ours,
        resets=resets,
    )
    assert found.changes == ((ConfigChange("retention.ms", None),) if is_reset else ())
    assert found.kept == ({} if is_reset else {"retention.ms": DAY})
    assert found.ours == {}


def test_the_source_s_defaults_where_they_are_wanted() -> None:
    source, target = {"retention.ms": default(WEEK)}, {"retention.ms": default(DAY)}
    found = compare_configs(source, target, usually, copies_defaults=True, ours={}, resets=False)
    assert found.changes == (ConfigChange("retention.ms", WEEK),)


def test_what_the_filter_leaves_out_is_left_alone() -> None:
    source, target = {"retention.ms": own(WEEK)}, {"retention.ms": own(DAY)}
    found = compare_configs(source, target, never, copies_defaults=False, ours={}, resets=True)
    assert (found.changes, found.kept, found.ours) == ((), {}, {})


def test_what_is_recorded_is_read_back() -> None:
    key, value = configs_key("A.ü"), configs_value({"b": "2", "a": "1"})
    assert (key, value) == ('["configs","A.ü"]'.encode(), b'{"v":1,"set":{"a":"1","b":"2"}}')
    assert decode_configs(value) == {"a": "1", "b": "2"}
    assert decode_configs(b'{"v":2,"set":{}}') is None
    assert decode_configs(None) is None
    made = MadeHere()
    assert made.take(key, value)
    assert made.configs == {"A.ü": {"a": "1", "b": "2"}}
    assert not MadeHere().take(b'["loss","t",0]', value)
    assert not MadeHere().take(b"\xff", value)


class Synced:
    """A flow in memory that has copied a topic with configs of its own, and what keeps these."""

    def __init__(self, **keys: str) -> None:
        self.flow = MemoryFlow(flow_settings({name.replace("_", "."): value for name, value in keys.items()}))
        self.flow.source.held["t"].configs |= {"retention.ms": DAY, "min.insync.replicas": "2"}
        self.flow.write(b"a")
        self.flow.run()
        self.begin()

    def begin(self) -> None:
        """As after a restart."""
        settings, target = self.flow.settings, self.flow.target
        maps = OffsetMaps(target, settings.map_topic, "test", RuntimeError)  # type: ignore[arg-type]
        self.configs = TopicConfigs(self.flow.clusters, maps, lambda: {"t": "A.t"})

    @property
    def source(self) -> dict[str, str]:
        return self.flow.source.held["t"].configs

    @property
    def remote(self) -> dict[str, str]:
        return self.flow.target.held["A.t"].configs


def test_a_change_on_the_source_arrives_and_goes_again() -> None:
    synced = Synced()
    assert synced.remote == {"retention.ms": DAY}, "as it was made"
    synced.source["retention.ms"] = WEEK
    synced.source["segment.bytes"] = "1000000"
    synced.configs.look()
    assert synced.remote == {"retention.ms": WEEK, "segment.bytes": "1000000"}
    synced.begin()
    del synced.source["retention.ms"]
    synced.configs.look()
    assert synced.remote == {"segment.bytes": "1000000"}, "a restart knows what came from the source"


def test_what_was_set_there_by_hand_is_kept_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    synced = Synced()
    synced.remote["segment.bytes"] = "7"
    synced.configs.look()
    synced.configs.look()
    assert synced.remote == {"retention.ms": DAY, "segment.bytes": "7"}
    assert sum("keeps segment.bytes=7" in record.message for record in caplog.records) == 1


def test_or_taken_back_as_mirror_maker_does() -> None:
    synced = Synced(target_override_policy="reset")
    synced.remote["segment.bytes"] = "7"
    synced.configs.look()
    assert synced.remote == {"retention.ms": DAY}


def test_a_refusal_is_told_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced()
    synced.source["retention.ms"] = WEEK
    synced.flow.target.forbidden["A.t"] = "not allowed"
    synced.configs.look()
    synced.configs.look()
    assert [record.message for record in caplog.records if "cannot be changed" in record.message] == [
        "flow=A->B the configs of A.t on B cannot be changed: not allowed"
    ]
    del synced.flow.target.forbidden["A.t"]
    synced.configs.look()
    assert synced.remote["retention.ms"] == WEEK


def test_a_cluster_that_is_away_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced()
    synced.flow.source.down = "away"
    synced.configs.look()
    synced.configs.look()
    assert sum("topic configs are not compared" in record.message for record in caplog.records) == 1


def test_nothing_is_written_where_nothing_has_changed() -> None:
    synced = Synced()
    synced.configs.look()
    end = synced.flow.target.held[synced.flow.settings.map_topic].partitions[0].end
    synced.configs.look()
    assert synced.flow.target.held[synced.flow.settings.map_topic].partitions[0].end == end


def test_what_loses_copies_is_warned_of_with_its_numbers(caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced(config_properties_exclude="retention\\.ms")
    synced.remote["retention.ms"] = "1000"
    synced.configs.look()
    synced.configs.look()
    warned = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == [f"flow=A->B on B: retention.ms=1000 and not {DAY}: copies go earlier (A.t)"]


def test_what_is_put_right_now_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    synced = Synced()
    synced.remote["retention.ms"] = "1000"
    synced.configs.look()
    assert synced.remote["retention.ms"] == DAY
    assert not [record.message for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize(
    ("key", "here", "there", "loses"),
    [
        ("retention.ms", WEEK, DAY, True),
        ("retention.ms", DAY, WEEK, False),
        ("retention.ms", "-1", WEEK, True),
        ("retention.ms", WEEK, "-1", False),
        ("retention.ms", "-1", "-1", False),
        ("retention.bytes", "-1", "1000000", True),
        ("max.message.bytes", "2000000", "1048588", True),
        ("max.message.bytes", "1048588", "2000000", False),
        ("cleanup.policy", "delete", "compact", True),
        ("cleanup.policy", "delete", "compact,delete", True),
        ("cleanup.policy", "compact", "compact, delete", True),
        ("cleanup.policy", "compact,delete", "delete", False),
        ("cleanup.policy", "compact", "", False),
        ("message.timestamp.type", "CreateTime", "LogAppendTime", True),
        ("message.timestamp.type", "LogAppendTime", "CreateTime", False),
        ("segment.bytes", "1000", "10", False),
    ],
)
def test_which_differences_lose(key: str, here: str, there: str, *, loses: bool) -> None:
    assert [found.key for found in losing_configs({key: here}, {key: there})] == [key] * loses


def test_a_remote_topic_that_is_only_compacted_keeps_what_is_old() -> None:
    here, there = (
        {"retention.ms": WEEK, "cleanup.policy": "compact"},
        {"retention.ms": DAY, "cleanup.policy": "compact"},
    )
    assert losing_configs(here, there) == ()
