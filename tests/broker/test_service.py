"""srm-service as a process of its own, beside a real broker: what drivers wrote is served, until it is told to stop."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from srm_spark.api.users import line_of
from srm_spark.core.metrics import (
    META_TOPIC,
    TopicMeta,
    encode_meta,
    metrics_topic,
)
from srm_spark.core.model import Flow
from srm_spark.testing import KafkaCluster
from srm_spark.testing.ports import free_ports
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_lag_zero, write_config
from tests.broker.told_service import SRM_SERVICE, Service, report, running, steering
from tests.group_io import commit, committed
from tests.kafka_io import Kafka, Record, numbered

LONG = 480.0
"""For Spark to start, and the batch of a minute."""


def _sum(series: Any) -> float:
    return float(sum(part["sum"] for part in series["metrics"]))


def job_of(service: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The process that writes history, which has a JVM of its own."""
    return [
        one
        for one in psutil.Process(service.pid).children()
        if any("java" in child.name() for child in one.children(recursive=True))
    ]


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_history_counts_every_sample_once_when_its_job_is_killed(
    secondary: KafkaCluster, unique: str, tmp_path: Path
) -> None:
    flow, target, topic = Flow(f"a{unique}", f"b{unique}"), Kafka(secondary), f"t-{unique}"
    target.create(metrics_topic(flow))
    port, log = free_ports(1)[0], tmp_path / "service.log"
    keys = {"service.listen": f"127.0.0.1:{port}", "service.history.path": str(tmp_path / "history")}
    clusters = {flow.source: secondary, flow.target: secondary}
    path = write_config(tmp_path / "srm.properties", clusters, [str(flow)], keys)

    def ago(minutes: int) -> None:
        report(target, flow, topic, int(time.time() * 1000) - minutes * 60_000)

    ago(300)
    ago(240)
    ago(0)
    service = Service(port)

    def counted() -> float:
        status, text = service.get(f"/v2/topic-metrics/{flow.source}/{flow.target}/{topic}/record-count?hours=6")
        return _sum(json.loads(text)) if status == 200 else -1.0

    with running(log, "--config", str(path)) as process:
        await_until(lambda: counted() == 180, LONG, log.read_text)
        (job,) = job_of(process)
        job.kill()
        ago(270)  # late
        await_until(lambda: counted() == 240, LONG, log.read_text)
        await_until(lambda: job_of(process), LONG, log.read_text)
        where = f"/v3/flows/{flow.source}/{flow.target}/history/record-rate?topic={topic}&partition=0&hours=6&samples=1"
        (part,) = service.json(where)["parts"]
        assert part["avg"] == 2.0


@pytest.mark.slow
def test_what_drivers_wrote_is_served_until_sigterm(secondary: KafkaCluster, unique: str, tmp_path: Path) -> None:
    flow, target, topic = Flow(f"a{unique}", f"b{unique}"), Kafka(secondary), f"t-{unique}"
    target.create(metrics_topic(flow))
    if META_TOPIC not in target.topics():
        target.create(META_TOPIC, configs={"cleanup.policy": "compact"})
    now = int(time.time() * 1000)
    report(target, flow, topic, now - 60_000)
    report(target, flow, topic, now)
    meta = TopicMeta(flow, topic, f"{flow.source}.{topic}", 1, "first")
    target.write(META_TOPIC, [Record(*encode_meta(meta))])
    target.write(metrics_topic(flow), [Record(b"garbage", b"garbage")])
    port, users = free_ports(1)[0], tmp_path / "users"
    users.write_text(line_of("alice", "secret"))
    keys = {"service.listen": f"127.0.0.1:{port}", "service.users.file": str(users)}
    path = write_config(
        tmp_path / "srm.properties", {flow.source: secondary, flow.target: secondary}, [str(flow)], keys
    )
    text = path.read_text().replace(
        f"{flow.source}.bootstrap.servers = {secondary.bootstrap_servers}",
        f"{flow.source}.bootstrap.servers = 127.0.0.1:1",  # nobody asks the source
    )
    path.write_text(text)
    service, log = Service(port), tmp_path / "service.log"
    with log.open("wb") as written:
        process = subprocess.Popen([str(SRM_SERVICE), "--config", str(path)], stdout=written, stderr=written)
        try:
            await_until(lambda: service.get("/readyz")[0] == 200, SOON, log.read_text)
            assert service.get("/replications", "wrong")[0] == 401
            (found,) = service.json("/replications").values()
            assert (found["name"], found["numTopics"]) == (str(flow), 1)
            assert found["throughputBps"]["avg"] == 200.0
            assert found["replicationLatencyMs"]["avg"] == 6.0
            (one,) = service.json(f"/remote-topics/{flow.source}").values()
            assert (one["upstreamTopic"], one["originalTopic"]) == (topic, "first")
            report(target, flow, topic, int(time.time() * 1000))
            where = f"/v2/topic-metrics/{flow.source}/{flow.target}/{topic}/record-count"
            await_until(
                lambda: sum(part["sum"] for part in service.json(where)["metrics"]) == 180, SOON, "all are read"
            )
            assert f"{flow.source}.{topic}" in service.get(f"/flows/{flow.source}/{flow.target}")[1]
            assert "srm_service_unreadable_records_total 1\n" in service.get("/metrics")[1]
            assert secondary.bootstrap_servers not in service.get("/v3/flows")[1]
            cluster_id = target.admin.list_topics(timeout=10).cluster_id
            assert service.json(f"/v2/cluster-info/{cluster_id}")["alias"] == flow.target
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0, log.read_text()
        finally:
            process.kill()
            process.wait(20)
    assert "Traceback" not in log.read_text()
    assert "secret" not in log.read_text()


@pytest.mark.slow
def test_a_flow_is_steered_and_a_group_fails_over_by_http(pair: Pair, tmp_path: Path) -> None:
    group, topic = f"billing-{pair.unique}", pair.topic()
    pair.source.create(topic)
    pair.source.write(topic, numbered(10))
    commit(pair.source, group, {(topic, 0): 6})
    keys = {**pair.keys, "emit.checkpoints.interval.seconds": "1", "refresh.groups.interval.seconds": "1"}
    await_lag_zero(pair.replicate(keys))
    path, port, audit = steering(pair, keys, tmp_path)
    service, log = Service(port), tmp_path / "service.log"
    at = f"/v3/flows/{pair.alias}/{pair.target_alias}"
    with log.open("wb") as written:
        process = subprocess.Popen([str(SRM_SERVICE), "--config", str(path)], stdout=written, stderr=written)
        try:
            await_until(lambda: service.get("/readyz")[0] == 200, SOON, log.read_text)
            paused = service.post(f"{at}/pause", topic=topic, reason="maintenance")
            assert (paused["is_changed"], paused["taken_by"] is not None) == (True, True), paused
            assert service.post(f"{at}/resume", topic=topic)["taken_by"] is not None
            await_until(
                lambda: service.json(f"{at}/explain/topic?name={topic}")[0]["verdict"] == "flows",
                SOON,
                lambda: str(service.json(f"{at}/explain/topic?name={topic}")),
            )
            other = f"other-{pair.unique}"  # not there: a move would tell of a topic that stops while it drains
            tried = service.post(f"{at}/lists/topics", add_deny=[topic], dry_run=True)
            assert [one["name"] for one in tried["effect"]["stops"]] == [topic], tried
            assert service.post(f"{at}/lists/topics", add=["x"], add_deny=[other])["deny"] == [other]
            rows = service.json(f"{at}/group-positions?search={group}")["positions"]
            assert [(row["on_source"], row["goes_on_at"]) for row in rows] == [(6, 6)], rows
            assert service.json(f"{at}/losses")["total"] == service.json(f"{at}/quarantine")["total"] == 0
            plan = service.post(f"{at}/moves/plan", kind="planned-failover", groups=[group], wait_seconds=60)
            assert plan["refusals"] == []
            begun = service.post(f"{at}/moves", plan=plan["id"], confirm=pair.flow)
            where = f"{at}/moves/{begun['id']}"
            await_until(lambda: service.json(where)["is_over"], SOON, lambda: str(service.json(where)))
            done = service.json(where)
            assert (done["failure"], done["statement"]["unsafe"]) == (None, []), done
            assert committed(pair.target, group, pair.remote())[pair.remote(), 0][0] == 6
            events = service.json(f"{at}/events")["events"]
            assert [one["kind"] for one in events] == ["topics", "resume", "pause"]
            assert {one["who"] for one in events} == {"alice@127.0.0.1"}
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0, log.read_text()
        finally:
            process.kill()
            process.wait(20)
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(one["does"], one["result"]) for one in records] == [
        ("pause", "done"),
        ("resume", "done"),
        ("change lists of topics", "done"),
        ("move groups", "begun"),
        ("planned failover", "done"),
    ]
    assert "Traceback" not in log.read_text()
    assert "secret" not in log.read_text() + audit.read_text()
