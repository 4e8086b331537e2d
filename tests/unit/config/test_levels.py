"""The more specific level wins, whatever the file's order."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from srm_spark.config import levels
from srm_spark.config.levels import Layered, Level
from srm_spark.config.schema import Dialect
from srm_spark.config.source import Entry
from srm_spark.config.written import Where, take_apart
from srm_spark.core.model import Flow

FLOW = Flow("A", "B")
SRM, MM2 = Dialect.SRM, Dialect.MM2

WORKER_PREFIXES = {
    "": Level.GLOBAL,
    "workers.": Level.ALL_WORKERS,
    "B.": Level.CLUSTER,
    "A->B.worker.": Level.REPLICATION,
}
CONSUMER_PREFIXES = {
    "connectors.consumer.": Level.ALL_CONNECTORS,
    "A.consumer.": Level.CLUSTER,
    "A->B.consumer.": Level.REPLICATION,
}
CONNECTOR_PREFIXES = {"": Level.GLOBAL, "connectors.": Level.ALL_CONNECTORS, "A->B.": Level.REPLICATION}
PRODUCER_PREFIXES = {
    "connectors.producer.override.": Level.ALL_CONNECTORS,
    "B.producer.": Level.CLUSTER,
    "A->B.producer.override.": Level.REPLICATION,
}


def _entries(keys: list[str]) -> dict[str, Entry]:
    return {key: Entry(key, f"value of {key}", f"f:{line}") for line, key in enumerate(keys)}


def _strongest(chosen: list[str], ranks: Mapping[str, Level], name: str) -> str | None:
    return f"value of {max(chosen, key=lambda prefix: ranks[prefix])}{name}" if chosen else None


def _some_of(prefixes: Mapping[str, Level]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(sorted(prefixes)), unique=True)


@given(_some_of(WORKER_PREFIXES))
def test_worker_properties_follow_srms_five_levels(chosen: list[str]) -> None:
    name = "offset.storage.partitions"
    worker = levels.worker_props(_entries([prefix + name for prefix in chosen]), FLOW, SRM)
    assert worker.value(name) == _strongest(chosen, WORKER_PREFIXES, name)


@given(_some_of(CONNECTOR_PREFIXES))
def test_connector_properties_follow_srms_levels(chosen: list[str]) -> None:
    name = "offset.lag.max"
    connector = levels.connector_props(_entries([prefix + name for prefix in chosen]), FLOW, SRM)
    assert connector.value(name) == _strongest(chosen, CONNECTOR_PREFIXES, name)


@given(_some_of(CONSUMER_PREFIXES))
def test_consumer_properties_follow_srms_levels(chosen: list[str]) -> None:
    name = "fetch.min.bytes"
    connector = levels.connector_props(_entries([prefix + name for prefix in chosen]), FLOW, SRM)
    consumer = levels.client_props(connector, "source", "consumer", SRM)
    assert consumer.value(name) == _strongest(chosen, CONSUMER_PREFIXES, name)


@given(_some_of(PRODUCER_PREFIXES))
def test_record_producer_properties_follow_srms_levels(chosen: list[str]) -> None:
    entries = _entries([f"{prefix}linger.ms" for prefix in chosen])
    connector, worker = levels.connector_props(entries, FLOW, SRM), levels.worker_props(entries, FLOW, SRM)
    producer = levels.record_producer_props(worker, connector, SRM)
    assert producer.value("linger.ms") == _strongest(chosen, PRODUCER_PREFIXES, "linger.ms")


@given(
    st.permutations(
        ["offset.storage.partitions", "B.offset.storage.partitions", "A->B.worker.offset.storage.partitions"]
    )
)
def test_in_mm2_the_top_level_of_a_worker_property_wins(order: list[str]) -> None:
    worker = levels.worker_props(_entries(order), FLOW, MM2)
    assert worker.value("offset.storage.partitions") == "value of offset.storage.partitions"


def test_in_mm2_the_clusters_consumer_beats_the_flows() -> None:
    entries = _entries(["A->B.consumer.fetch.min.bytes", "A.consumer.fetch.min.bytes"])
    for dialect, winner in ((MM2, "A.consumer."), (SRM, "A->B.consumer.")):
        connector = levels.connector_props(entries, FLOW, dialect)
        consumer = levels.client_props(connector, "source", "consumer", dialect)
        assert consumer.value("fetch.min.bytes") == f"value of {winner}fetch.min.bytes"
        assert len(consumer.stack("fetch.min.bytes")) == 2


def test_security_reaches_all_clients_and_the_clusters_own_wins() -> None:
    entries = _entries(["ssl.truststore.location", "A.ssl.truststore.location", "A.consumer.ssl.truststore.location"])
    props = levels.cluster_props(entries, "A")
    assert props.value("admin.ssl.truststore.location") == "value of A.ssl.truststore.location"
    assert props.value("consumer.ssl.truststore.location") == "value of A.consumer.ssl.truststore.location"
    assert (
        levels.cluster_props(entries, "B").value("producer.ssl.truststore.location")
        == "value of ssl.truststore.location"
    )


def test_the_losers_are_kept_in_order() -> None:
    layered = Layered()
    settings = [levels.Setting(text, Level.GLOBAL, "k", "p") for text in "abc"]
    layered.put("k", settings[1])
    layered.put("k", settings[2])
    layered.put_if_absent("k", settings[0])
    assert [setting.value for setting in layered.stack("k")] == ["a", "b", "c"]
    assert layered.value("k") == "c"


@given(st.text(max_size=30))
def test_any_key_can_be_taken_apart(key: str) -> None:
    written = take_apart(key, ["A", "B", "A->B"])
    assert written.where in Where
    assert key.endswith(written.rest)


def test_keys_are_taken_apart_by_the_longest_alias() -> None:
    aliases = ["A", "A.B", "C"]
    assert take_apart("A.B.x", aliases).alias == "A.B"
    assert take_apart("A.B->C.x.y", aliases).flow == Flow("A.B", "C")
    assert take_apart("workers.x", aliases).where is Where.WORKERS
    assert take_apart("A->D.x", aliases).where is Where.UNKNOWN_FLOW
