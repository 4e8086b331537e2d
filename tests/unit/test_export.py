"""What a driver shows to Prometheus: by our names, and by those of MirrorMaker 2 that dashboards and alerts know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from srm_spark.config.settings import MetricNames
from srm_spark.core.audit import Audit
from srm_spark.core.checkpoints import Translation, TranslationStatus
from srm_spark.core.cluster import Committed
from srm_spark.core.driver_status import HEALTH_CODES, FlowState
from srm_spark.core.metrics import BOUNDS_MS
from srm_spark.core.model import Checkpoint, Flow, TopicPartition
from srm_spark.core.tallies import Tally
from srm_spark.export import names
from srm_spark.export.collecting import FlowCollector
from srm_spark.export.figures import FlowFigures
from srm_spark.failure import FailureKind
from srm_spark.flow.groups.consumer_groups import ConsumersReport
from srm_spark.flow.groups.positions import GroupPosition, Positions
from srm_spark.flow.groups.sync import Synced, SyncState
from srm_spark.flow.meter import Look, Meter, Period
from srm_spark.flow.status import FlowStatus
from tests.unit.config.identities import CLIENT
from tests.unit.memory_flow import flow_settings

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
DASHBOARD = json.loads((Path(__file__).parent / "dashboards" / "strimzi-mirror-maker-2.json").read_text())
FLOW = Flow("A", "B")
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Series:
    """As Prometheus has it."""

    name: str
    labels: Mapping[str, str]
    value: float


def tally(records: int, ms: float | None = None, size: int = 0) -> Tally:
    made = Tally(records, size)
    if ms is not None:
        made.latency(ms, records)
    return made


def _consumers() -> ConsumersReport:
    there = Translation(TranslationStatus.EXACT, 1, 1)
    positions = [GroupPosition("g", T0, TopicPartition("A.t", n), Committed(1), there, 5) for n in (0, 1)]
    synced = (Synced(positions[0], SyncState.SYNCED), Synced(positions[1], SyncState.AHEAD))
    return ConsumersReport(Positions(tuple(positions), {"refused": "no"}), synced)


def figures(
    state: FlowState = FlowState.RUNNING,
    *,
    partitions: bool = False,
    lag: Mapping[TopicPartition, int] | None = None,
    formats: Sequence[MetricNames] = (MetricNames.LEGACY,),
    keys: Mapping[str, str] | None = None,
) -> FlowFigures:
    """A flow that copied 10 records in 5 s, 1,000 bytes and 40 ms late; two checkpoints of one group."""
    clock = Clock()
    meter = Meter(keeps_partitions=True, wall=clock, clock=clock)
    meter.copied({T0: tally(10, 40.0, 1_000)})
    meter.checkpointed([Checkpoint("g", TopicPartition("A.t", n), 1, 1) for n in (0, 1)], 7.0)
    meter.looked(Look({"t": 2}, {"t": "A.t"}, {T0: 0, T1: 3} if lag is None else lag, {T1: FailureKind.TOO_LARGE}))
    clock.now += 5
    settings = flow_settings({"rpo.goal.seconds": "60", **(keys or {})})
    settings = replace(settings, metrics=replace(settings.metrics, names=tuple(formats)))
    status = FlowStatus(FLOW, state, topics=1, partitions=2, lost_records=4, parked={"x": "1"}, consumers=_consumers())
    status = replace(status, audit=Audit(60.0, 0, ended=990_000, records=12, differences=2))
    return FlowFigures(settings, status, meter.view(), meter.take(), int(clock.now * 1000) + 2_000, partitions)


def shown(*flows: FlowFigures) -> list[Series]:
    """As Prometheus reads it."""
    registry = CollectorRegistry()
    registry.register(FlowCollector(lambda: flows))
    text = generate_latest(registry).decode()
    return [
        Series(sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def values(series: Sequence[Series], name: str, **labels: str) -> list[float]:
    """Of all series of that name with these labels."""
    return [one.value for one in series if one.name == name and labels.items() <= one.labels.items()]


def test_a_flow_that_runs_by_our_names() -> None:
    found = shown(figures())
    assert values(found, "srm_flow_state", flow="A->B", state="running") == [1]
    assert sum(values(found, "srm_flow_state")) == 1
    assert values(found, "srm_flow_health") == [0]
    assert values(found, "srm_lag_records", topic="t") == [3]
    assert not values(found, "srm_lag_seconds"), "of one of them nothing is known"
    assert values(found, "srm_sample_age_seconds") == [7]
    assert values(found, "srm_records_total", topic="t") == [10]
    assert values(found, "srm_bytes_total", topic="t") == [1_000]
    assert values(found, "srm_replication_latency_seconds_count", topic="t") == [10]
    assert values(found, "srm_replication_latency_seconds_sum", topic="t") == [pytest.approx(0.4)]
    assert values(found, "srm_replication_latency_seconds_bucket", topic="t", le="0.02") == [0]
    assert values(found, "srm_replication_latency_seconds_bucket", topic="t", le="0.05") == [10]
    assert values(found, "srm_replication_latency_seconds_bucket", topic="t", le="+Inf") == [10]
    assert values(found, "srm_checkpoint_latency_seconds_count") == [2]
    assert values(found, "srm_lost_records_total") == [4]
    assert values(found, "srm_quarantined_topics") == [1]
    assert values(found, "srm_rpo_goal_seconds") == [60]
    assert values(found, "srm_audited_records_total") == [12]
    assert values(found, "srm_differing_records") == [2]
    assert values(found, "srm_audit_end_timestamp_seconds") == [990]
    assert values(found, "srm_paused_partitions") == [1]
    groups = {(one.labels["group"], one.labels["state"]) for one in found if one.name == "srm_group_state"}
    assert groups == {("g", "ahead"), ("refused", "unknown")}


def login_by_certificate(folder: Path) -> dict[str, str]:
    (folder / "me.pem").write_text(CLIENT.key_pem + CLIENT.pem)
    return {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / "me.pem")}


def test_when_certificates_end_is_shown_where_a_flow_logs_in_by_one(tmp_path: Path) -> None:
    found = shown(figures(keys={f"A.{name}": value for name, value in login_by_certificate(tmp_path).items()}))
    name, end = "srm_client_certificate_end_timestamp_seconds", CLIENT.certificate.not_valid_after_utc.timestamp()
    assert values(found, name, flow="A->B", cluster="A") == [end]
    assert not values(found, name, cluster="B")


def test_the_buckets_are_those_of_samples() -> None:
    (one,) = [tally for place, tally in figures().topic_totals()]
    assert len(one.histogram.counts) == len(BOUNDS_MS) + 1
    edges = {s.labels["le"] for s in shown(figures()) if s.name == "srm_replication_latency_seconds_bucket"}
    assert {float(edge) for edge in edges if edge != "+Inf"} == {bound / 1000 for bound in BOUNDS_MS}


@pytest.mark.parametrize("state", [state for state in FlowState if state is not FlowState.RUNNING])
def test_of_a_flow_that_does_not_run_nothing_is_shown_that_was_true_before(state: FlowState) -> None:
    found = shown(figures(state, partitions=True))
    assert values(found, "srm_flow_health") == [HEALTH_CODES[state]]
    assert values(found, "srm_sample_age_seconds") == [7], "how long ago the source answered is known"
    gone = ("audit", "differing", "lag", "latency_ms", "age_ms", "rate", "group", "paused", "quarantined", "srm_topics")
    assert not [one.name for one in found if any(part in one.name for part in gone)]
    assert values(found, "srm_records_total") == [10], "a total stays true"


@pytest.mark.parametrize("lag", [{T0: 0}, {T0: 0, T1: -5}, {}])
def test_what_is_not_known_of_one_partition_is_not_known_of_its_topic(lag: Mapping[TopicPartition, int]) -> None:
    found = shown(figures(lag=lag, partitions=True))
    assert not values(found, "srm_lag_records")
    assert not values(found, "srm_lag_seconds")
    assert values(found, "srm_partition_lag_records", partition="0") == [0.0] * (T0 in lag)
    assert not values(found, "srm_partition_lag_records", partition="1")


def test_of_a_period_that_is_long_over_nothing_is_shown() -> None:
    one = figures()
    old = replace(one, now=one.now + 3 * 30_000)
    assert values(shown(one), "kafka_connect_mirror_mirrorsourceconnector_record_rate") == [2]
    assert not values(shown(old), "kafka_connect_mirror_mirrorsourceconnector_record_rate")
    assert not values(shown(replace(one, period=None)), "kafka_connect_mirror_mirrorsourceconnector_record_rate")
    empty = Period(one.now, 5.0)
    assert values(shown(replace(one, period=empty)), "kafka_connect_mirror_mirrorsourceconnector_record_rate") == [0]
    assert not values(shown(replace(one, period=empty)), "kafka_connect_mirror_mirrorsourceconnector_record_age_ms_avg")


def test_partitions_are_shown_only_where_they_are_wanted_and_never_beside_their_sum() -> None:
    rate = "kafka_connect_mirror_mirrorsourceconnector_byte_rate"
    whole, each = shown(figures()), shown(figures(partitions=True))
    assert {one.labels["partition"] for one in whole if "partition" in one.labels} == {"all"}
    assert {one.labels["partition"] for one in each if "partition" in one.labels} == {"0", "1"}
    assert sum(values(whole, rate)) == sum(values(each, rate)) == 200
    assert values(each, "srm_partition_records_total", partition="0") == [10]
    assert not [one for one in whole if one.name.startswith("srm_partition_")]


def test_the_names_of_kip_1280_beside_the_former_ones_or_instead() -> None:
    labels = {"connector": "MirrorSourceConnector", "task": "0", "source": "A", "target": "B", "topic": "A.t"}
    legacy, new = "kafka_connect_mirror_mirrorsourceconnector_record_count", "kafka_connect_plugins_record_count"
    for formats in ((MetricNames.LEGACY,), (MetricNames.NEW,), tuple(MetricNames)):
        found = shown(figures(partitions=True, formats=formats))
        assert values(found, legacy, source="A", target="B") == [10] * (MetricNames.LEGACY in formats)
        assert values(found, new, **labels) == [10] * (MetricNames.NEW in formats)
        checkpoints = values(found, "kafka_connect_plugins_checkpoint_latency_ms", group="g", topic="A.t")
        assert checkpoints == [7, 7] * (MetricNames.NEW in formats)


NOT_SHOWN = {
    "Incoming Bytes per Second": "what is read from the source is not counted",
    "Source Connector - Producer Available Buffer": "no producer of the client library moves the records",
    "Source Connector - Average Offset Commit Time": "there are no tasks of Connect that commit",
    "Source Connector - Connect Outstanding Messages Queue": "there is no queue between consumer and producer",
    "Rebalancing": "there is no group of workers",
    "CPU Usage": "the container's, by cAdvisor",
    "JVM Memory": "the driver is a process of Python",
    "Time Spent in GC": "the same",
    "JVM Thread Count": "the same",
}
"""Panels of Strimzi's dashboard that stay empty."""
OF_TARGETS = {"strimzi_io_kind": "KafkaMirrorMaker2", "strimzi_io_cluster": "mine", "namespace": "ours"}
"""Labels that Prometheus puts to all that it takes from one target, as docs/metrics.md says."""
_SELECTOR = re.compile(r"\b([a-z]\w*)\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)(=~|=)"((?:\\.|[^"\\])*)"')
_GROUPED = re.compile(r"by \(([^)]*)\)")


def selected(found: Sequence[Series], expression: str) -> Iterator[list[Series]]:
    """The series that each selector of an expression takes."""
    expression = expression.replace("$strimzi_mirror_maker_cluster_name", "mine").replace(
        "$kubernetes_namespace", "ours"
    )
    for name, matchers in _SELECTOR.findall(expression):
        tests = [(label, how, json.loads(f'"{value}"')) for label, how, value in _MATCHER.findall(matchers)]
        yield [
            one
            for one in found
            if one.name == name
            and all(
                re.fullmatch(value, labels_of(one).get(label, ""))
                if how == "=~"
                else labels_of(one).get(label, "") == value
                for label, how, value in tests
            )
        ]


def labels_of(one: Series) -> dict[str, str]:
    return {**OF_TARGETS, **one.labels}


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=[panel["title"] for panel in DASHBOARD["panels"]])
def test_each_panel_of_the_public_dashboard_shows_a_flow(panel: dict[str, object]) -> None:
    found = shown(figures(partitions=True))
    for target in panel["targets"]:  # type: ignore[attr-defined]  # it is JSON
        for series in selected(found, target["expr"]):
            assert bool(series) == (panel["title"] not in NOT_SHOWN), target["expr"]
            wanted = {label.strip() for label in ",".join(_GROUPED.findall(target["expr"])).split(",")} - {""}
            wanted -= {"kubernetes_pod_name", "pod"}
            assert all(wanted <= one.labels.keys() for one in series), (wanted, series)


def test_the_variables_of_the_public_dashboard_are_found() -> None:
    found = shown(figures())
    for variable in DASHBOARD["variables"].values():
        (series,) = selected(found, variable["query"])
        assert series, variable


def test_the_page_names_the_panels_that_stay_empty() -> None:
    assert {panel["title"] for panel in DASHBOARD["panels"]} > NOT_SHOWN.keys()
    page = PAGE.read_text()
    assert not [title for title in NOT_SHOWN if title not in page]


def test_the_page_has_a_row_of_each_metric_and_no_other() -> None:
    rows = [
        tuple(cell.strip().strip("`") for cell in line.strip("|\n ").split("|"))
        for line in PAGE.read_text().splitlines()
        if line.startswith(("| `srm_", "| `kafka_"))
    ]
    metrics = (*names.OURS, *names.OF_PARTITIONS, *names.LEGACY, *names.NEW)
    written = [(m.name, m.kind, ", ".join(m.labels), m.unit, m.means) for m in metrics]
    assert [tuple(cell.replace("`", "") for cell in row) for row in rows] == written


def test_everything_that_is_shown_has_a_row_and_every_row_is_shown(tmp_path: Path) -> None:
    keys = {f"A.{name}": value for name, value in login_by_certificate(tmp_path).items()}
    found = shown(figures(partitions=True, lag={T0: 0, T1: 0}, formats=tuple(MetricNames), keys=keys))
    known = {m.name: m for m in (*names.OURS, *names.OF_PARTITIONS, *names.LEGACY, *names.NEW)}
    endings = ("_bucket", "_sum", "_count", "_created")
    bases = {
        name: {name, *(name + ending for ending in endings)} if m.kind == "histogram" else {name}
        for name, m in known.items()
    }
    for one in found:
        (base,) = [name for name, spelled in bases.items() if one.name in spelled]
        assert one.labels.keys() - {"le"} == set(known[base].labels), one
    assert {base for base, spelled in bases.items() if any(one.name in spelled for one in found)} == known.keys()
