"""Every metric that a driver shows: docs/metrics.md has a row of each."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Metric:
    """One of them."""

    name: str
    """As Prometheus keeps it; of a counter with `_total`, of a histogram without its endings."""
    kind: str
    """gauge, counter or histogram."""
    labels: tuple[str, ...]
    unit: str
    means: str


_FLOW, _TOPIC, _PARTITION = ("flow",), ("flow", "topic"), ("flow", "topic", "partition")
STATE = Metric("srm_flow_state", "gauge", ("flow", "state"), "0 or 1", "1 for the state that the flow is in.")
HEALTH = Metric(
    "srm_flow_health",
    "gauge",
    _FLOW,
    "0 to 4",
    "Health of the flow as Cloudera Manager counts it: 0 healthy, 1 unknown, 2 starting, 3 interrupted, 4 failed.",
)
TOPICS = Metric("srm_topics", "gauge", _FLOW, "topics", "Source topics that flow.")
PARTITIONS = Metric("srm_partitions", "gauge", _FLOW, "partitions", "Their partitions.")
LAG = Metric("srm_lag_records", "gauge", _TOPIC, "records", "Source offsets that are not copied yet.")
LAG_SECONDS = Metric(
    "srm_lag_seconds", "gauge", _TOPIC, "seconds", "Most that the oldest record can be old that is not copied yet."
)
AGE = Metric(
    "srm_sample_age_seconds",
    "gauge",
    _FLOW,
    "seconds",
    "Since the source has said where its partitions end, of the one that is longest ago.",
)
RPO_GOAL = Metric(
    "srm_rpo_goal_seconds", "gauge", _FLOW, "seconds", "That srm_lag_seconds should be at most: rpo.goal.seconds."
)
RECORDS = Metric("srm_records_total", "counter", _TOPIC, "records", "Copied since the driver began.")
BYTES = Metric("srm_bytes_total", "counter", _TOPIC, "bytes", "Written to the target since the driver began.")
LATENCY = Metric(
    "srm_replication_latency_seconds",
    "histogram",
    _TOPIC,
    "seconds",
    "From the timestamp of records to their acknowledgement by the target, since the driver began.",
)
CHECKPOINT_LATENCY = Metric(
    "srm_checkpoint_latency_seconds",
    "histogram",
    _FLOW,
    "seconds",
    "From the look at the groups of the source to the acknowledgement of their checkpoints.",
)
GROUP_STATE = Metric(
    "srm_group_state",
    "gauge",
    ("flow", "group", "state"),
    "1",
    "What group offset sync makes of the worst partition of a group.",
)
LOST = Metric("srm_lost_records_total", "counter", _FLOW, "records", "Source offsets that were found to be lost.")
QUARANTINED = Metric("srm_quarantined_topics", "gauge", _FLOW, "topics", "Source topics with records in quarantine.")
PAUSED = Metric("srm_paused_partitions", "gauge", _FLOW, "partitions", "Partitions that stand still.")
AUDITED = Metric(
    "srm_audited_records_total", "counter", _FLOW, "records", "That audits found right, since the flow is audited."
)
DIFFERING = Metric(
    "srm_differing_records",
    "gauge",
    _FLOW,
    "records",
    "That the newest audit found to be other than their copies; not there before an audit has ended, nor where it "
    "found none and the next ones are late.",
)
AUDIT_END = Metric(
    "srm_audit_end_timestamp_seconds",
    "gauge",
    _FLOW,
    "seconds since the epoch",
    "When the newest audit ended; not there before the first.",
)
CERTIFICATE_END = Metric(
    "srm_client_certificate_end_timestamp_seconds",
    "gauge",
    ("flow", "cluster"),
    "seconds since the epoch",
    "When the certificate ends by which the flow logs in to the cluster.",
)
PARTITION_LAG = Metric("srm_partition_lag_records", "gauge", _PARTITION, "records", f"{LAG.means[:-1]}, per partition.")
PARTITION_LAG_SECONDS = Metric(
    "srm_partition_lag_seconds", "gauge", _PARTITION, "seconds", f"{LAG_SECONDS.means[:-1]}, per partition."
)
PARTITION_RECORDS = Metric("srm_partition_records_total", "counter", _PARTITION, "records", RECORDS.means)
PARTITION_BYTES = Metric("srm_partition_bytes_total", "counter", _PARTITION, "bytes", BYTES.means)

OURS = (
    STATE,
    HEALTH,
    TOPICS,
    PARTITIONS,
    LAG,
    LAG_SECONDS,
    RPO_GOAL,
    AGE,
    RECORDS,
    BYTES,
    LATENCY,
    CHECKPOINT_LATENCY,
    GROUP_STATE,
    LOST,
    QUARANTINED,
    PAUSED,
    AUDITED,
    DIFFERING,
    AUDIT_END,
    CERTIFICATE_END,
)
OF_PARTITIONS = (PARTITION_LAG, PARTITION_LAG_SECONDS, PARTITION_RECORDS, PARTITION_BYTES)
"""Shown where `driver.metrics.partitions` is true."""

_SOURCE_LABELS = ("source", "target", "topic", "partition")
_GROUP_LABELS = ("source", "target", "group", "topic", "partition")
SOURCE_STEMS = {
    "record_count": ("records", "Copied since the driver began."),
    "record_rate": ("records per second", "Copied in the newest period."),
    "record_age_ms": ("milliseconds", "Age of the newest record when the target acknowledged it."),
    "record_age_ms_min": ("milliseconds", "Least age in the newest period."),
    "record_age_ms_max": ("milliseconds", "Greatest age in the newest period."),
    "record_age_ms_avg": ("milliseconds", "Mean age in the newest period."),
    "byte_count": ("bytes", "Written to the target since the driver began."),
    "byte_rate": ("bytes per second", "Written to the target in the newest period."),
    "replication_latency_ms": ("milliseconds", "From timestamp to acknowledgement, of the newest record."),
    "replication_latency_ms_min": ("milliseconds", "Least latency in the newest period."),
    "replication_latency_ms_max": ("milliseconds", "Greatest latency in the newest period."),
    "replication_latency_ms_avg": ("milliseconds", "Mean latency in the newest period."),
}
"""What `MirrorSourceMetrics` of MirrorMaker 2 has."""
CHECKPOINT_STEMS = {
    "checkpoint_latency_ms": ("milliseconds", "From the look at the source to the written checkpoint, of the newest."),
    "checkpoint_latency_ms_min": ("milliseconds", "Least in the newest period."),
    "checkpoint_latency_ms_max": ("milliseconds", "Greatest in the newest period."),
    "checkpoint_latency_ms_avg": ("milliseconds", "Mean of the newest period."),
}
"""And `MirrorCheckpointMetrics`."""
_SOURCE_PREFIX = "kafka_connect_mirror_mirrorsourceconnector_"
_CHECKPOINT_PREFIX = "kafka_connect_mirror_mirrorcheckpointconnector_"
_NEW_PREFIX = "kafka_connect_plugins_"
_NEW_LABELS = ("connector", "task")


def _metrics(prefix: str, stems: dict[str, tuple[str, str]], labels: tuple[str, ...]) -> dict[str, Metric]:
    return {stem: Metric(prefix + stem, "gauge", labels, unit, means) for stem, (unit, means) in stems.items()}


def _renamed(metrics: dict[str, Metric]) -> dict[str, Metric]:
    """As KIP-1280 calls them, where the JMX exporter has no rule of its own for them."""
    return {
        stem: replace(metric, name=_NEW_PREFIX + stem, labels=(*_NEW_LABELS, *metric.labels))
        for stem, metric in metrics.items()
    }


SOURCE = _metrics(_SOURCE_PREFIX, SOURCE_STEMS, _SOURCE_LABELS)
CHECKPOINT = _metrics(_CHECKPOINT_PREFIX, CHECKPOINT_STEMS, _GROUP_LABELS)
NEW_SOURCE, NEW_CHECKPOINT = _renamed(SOURCE), _renamed(CHECKPOINT)
CLIENT_LAG = Metric(
    "kafka_consumer_fetch_manager_records_lag",
    "gauge",
    ("clientid", "topic", "partition"),
    "records",
    "Source offsets that are not copied yet; the topic is the source's.",
)
CLIENT_BYTES = Metric(
    "kafka_producer_outgoing_byte_total", "counter", ("clientid",), "bytes", "Written to the target, without requests."
)
CONNECTORS = Metric("kafka_connect_worker_connector_count", "gauge", (), "flows", "Flows that run here.")
TASKS = Metric("kafka_connect_worker_task_count", "gauge", (), "flows", "The same: a flow counts as one task.")
ASSIGNED_CONNECTORS = Metric(
    "kafka_connect_coordinator_assigned_connectors", "gauge", (), "flows", "Flows that this driver owns."
)
ASSIGNED_TASKS = Metric("kafka_connect_coordinator_assigned_tasks", "gauge", (), "flows", "The same.")
LEGACY = (
    *SOURCE.values(),
    *CHECKPOINT.values(),
    CLIENT_LAG,
    CLIENT_BYTES,
    CONNECTORS,
    TASKS,
    ASSIGNED_CONNECTORS,
    ASSIGNED_TASKS,
)
"""As the JMX exporter calls MirrorMaker 2's by Strimzi's example."""
NEW = (*NEW_SOURCE.values(), *NEW_CHECKPOINT.values())
"""Shown where `metric.names.formats` names `new`."""
