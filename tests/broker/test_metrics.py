"""Metrics of a real driver: samples in Kafka whose sums are what was copied, and what Prometheus is shown."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.config.settings import ExportSettings, Timings
from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import (
    META_TOPIC,
    FlowSample,
    PartitionSample,
    Sample,
    TopicMeta,
    decode,
    decode_meta,
    decode_meta_key,
    metrics_topic,
)
from srm_spark.core.model import Flow
from srm_spark.errors import SetupError
from srm_spark.export.server import MetricsServer
from srm_spark.testing import KafkaCluster, LocalKafka
from srm_spark.testing.ports import free_ports
from tests.awaiting import await_until
from tests.broker.conftest import Start
from tests.broker.mirror import SOON, write_config
from tests.kafka_io import Kafka, numbered


@pytest.fixture
def timings() -> Timings:
    return Timings(lag_seconds=1.0, silent_seconds=2.0)


class Told:
    """What the driver of one flow tells."""

    def __init__(self, target: Kafka, flow: Flow, port: int) -> None:
        self._target, self._flow, self._port = target, flow, port

    def samples(self) -> list[Sample]:
        topic = metrics_topic(self._flow)
        if topic not in self._target.topics():
            return []
        (log,) = self._target.read(topic).values()
        read = [decode(one.record.key, one.record.value) for one in log]
        assert None not in read
        return [one for one in read if one is not None]

    def partitions(self) -> list[PartitionSample]:
        return [one for one in self.samples() if isinstance(one, PartitionSample)]

    def copied(self, topic: str) -> int:
        return sum(one.records for one in self.partitions() if one.partition.topic == topic)

    def newest(self) -> FlowSample:
        return [one for one in self.samples() if isinstance(one, FlowSample)][-1]

    def meta(self) -> dict[str, TopicMeta]:
        said: dict[str, TopicMeta | None] = {}
        for stored in self._target.read(META_TOPIC)[0]:
            record = stored.record
            about = decode_meta_key(record.key)
            if about is not None and about[0] == self._flow:
                said[about[1]] = decode_meta(record.key, record.value)
        return {topic: meta for topic, meta in said.items() if meta is not None}

    def shown(self) -> dict[str, float]:
        """As a scrape has it."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
            lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.mark.slow
def test_what_a_driver_tells_of_a_flow_until_its_source_is_gone(
    local_kafka: Callable[..., LocalKafka], secondary: KafkaCluster, unique: str, tmp_path: Path, start: Start
) -> None:
    own, (port,) = local_kafka("measured"), free_ports(1)
    source, target = Kafka(own), Kafka(secondary)
    clusters: dict[str, KafkaCluster] = {f"a{unique}": own, f"b{unique}": secondary}
    flow = Flow(*clusters)
    kept, denied = f"kept-{unique}", f"denied-{unique}"
    keys = {"topics": f".*-{unique}", "metrics.period": "1", "driver.metrics.listener": f"127.0.0.1:{port}"}
    keys |= {"driver.metrics.partitions": "true", "admin.timeout.ms": "5000"}
    for topic in (kept, denied):
        source.create(topic, 2)
        source.write(topic, numbered(50, 2))
    driver = start(clusters, [str(flow)], keys)
    told = Told(target, flow, port)

    await_until(lambda: told.copied(kept) == 50, SOON, lambda: f"50 records: {told.partitions()[-4:]}")
    source.write(kept, numbered(30, 2))
    await_until(lambda: told.copied(kept) == 80, SOON, lambda: f"80 records: {told.partitions()[-4:]}")
    await_until(lambda: told.newest().lag_records == 0, SOON, lambda: f"nothing left: {told.newest()}")
    latencies = [one.latency for one in told.partitions() if one.records and one.partition.topic == kept]
    assert sum(one.count for one in latencies) == 80
    assert all(one.least is not None and 0 <= one.least < 60_000 for one in latencies)
    newest = told.partitions()[-1]
    assert (newest.lag_records, newest.lag_seconds, newest.state) == (0, 0, "running")
    remote = {topic: TopicMeta(flow, topic, f"{flow.source}.{topic}", 2, topic) for topic in (kept, denied)}
    await_until(lambda: told.meta() == remote, SOON, lambda: f"both topics: {told.meta()}")

    shown = told.shown()
    assert shown[f'srm_records_total{{flow="{flow}",topic="{kept}"}}'] == 80
    assert shown[f'srm_lag_records{{flow="{flow}",topic="{kept}"}}'] == 0
    assert shown[f'srm_flow_state{{flow="{flow}",state="running"}}'] == 1
    count = "kafka_connect_mirror_mirrorsourceconnector_record_count"
    labels = f'source="{flow.source}",target="{flow.target}",topic="{flow.source}.{kept}"'
    assert sum(shown[f'{count}{{partition="{number}",{labels}}}'] for number in (0, 1)) == 80

    path = write_config(tmp_path / "control.properties", clusters, [str(flow)], keys)
    line = ["topics", "--config", str(path), "--source", flow.source, "--target", flow.target, "--add-denylist", denied]
    answer = CliRunner().invoke(main, line)
    assert answer.exit_code == 0, answer.output
    await_until(lambda: told.meta() == {kept: remote[kept]}, SOON, lambda: f"without {denied}: {told.meta()}")

    own.kill()
    await_until(lambda: told.newest().state is not FlowState.RUNNING, SOON, lambda: f"it is noticed: {told.newest()}")
    assert (told.newest().lag_records, told.newest().lag_seconds) == (None, None)
    last = {one.partition: one for one in told.partitions()}
    unknown = [one for one in last.values() if one.partition.topic == kept]
    assert [(one.lag_records, one.lag_seconds, one.state) for one in unknown] == [(None, None, "unknown")] * 2
    assert all(one.checked_at is not None and one.checked_at < one.at for one in unknown)
    health = f'srm_flow_health{{flow="{flow}"}}'
    await_until(lambda: told.shown()[health] == 3, SOON, lambda: f"interrupted: {told.shown()[health]}")
    shown = told.shown()
    assert not [name for name in shown if "_lag" in name]
    assert shown[f'srm_sample_age_seconds{{flow="{flow}"}}'] > 0

    driver.stop()
    assert (told.newest().state, told.newest().is_last) == (FlowState.STOPPED, True)
    assert told.copied(kept) == 80, "each record is told once"


def test_an_address_at_which_nothing_can_listen_is_told_with_what_to_do() -> None:
    server = MetricsServer(ExportSettings("127.0.0.1", 0), list)
    try:
        with pytest.raises(SetupError, match=r"driver\.metrics\.listener.*write an address"):
            MetricsServer(ExportSettings("127.0.0.1", server.port), list)
    finally:
        server.close()
