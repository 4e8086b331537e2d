"""SRM's REST API as its clients know it, and our own, over boards in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import Histogram, PartitionSample
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.series import Metric
from tests.unit.api.boards import AB, BA, CB, EVERY, NOW, Filled, three_flows
from tests.unit.api.logins import JSON

SWAGGER = json.loads((Path(__file__).parent / "srm-v1-swagger.json").read_text())
"""What the Swagger document of SRM says: paths with their parameters, and the types of the objects."""


@pytest.fixture(scope="module")
def filled() -> Filled:
    return three_flows()


@pytest.fixture(scope="module")
def client(filled: Filled) -> Iterator[TestClient]:
    with TestClient(make_app(filled.board), base_url="http://localhost") as client:
        yield client


def ok(client: TestClient, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def problem(client: TestClient, path: str, status: int) -> str:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    document = answer.json()
    assert document["status"] == status
    return str(document["detail"])


_ADDRESSES = {
    "/replications": "/replications",
    "/remote-topics/{source}": "/remote-topics/A",
    "/topic-metrics/{topic}/{metric}": "/topic-metrics/A.orders/byte-rate",
    "/cluster-metrics/{cluster}/{metric}": "/cluster-metrics/A/replication-latency-ms",
    "/topic-metrics-local/{topic}/{metric}": "/topic-metrics-local/A.orders/byte-rate",
    "/cluster-metrics-local/{cluster}/{metric}": "/cluster-metrics-local/A/checkpoint-latency-ms",
}


@pytest.mark.parametrize("path", SWAGGER["paths"])
def test_v1_answers_as_srms_swagger_says(client: TestClient, path: str) -> None:
    described = client.get("/openapi.json").json()["paths"][path]["get"]
    of_srm = SWAGGER["paths"][path]
    assert described["operationId"] == of_srm["operationId"]
    assert {one["name"] for one in described["parameters"]} == set(of_srm["parameters"])
    schema: dict[str, Any] = {"$ref": f"#/definitions/{of_srm['returns']}"}
    if of_srm["is_map"]:
        schema = {"type": "object", "additionalProperties": schema, "minProperties": 1}
    document = ok(client, _ADDRESSES[path] + "?minutes=30")
    jsonschema.validate(document, {**schema, "definitions": SWAGGER["definitions"]})


def test_a_flow_of_v1(client: TestClient) -> None:
    flow = ok(client, "/replications?source=A&minutes=30")["A->B"]
    assert (flow["status"], flow["numTopics"], flow["numConsumerGroups"]) == ("ACTIVE", 2, 1)
    throughput = flow["throughputBps"]
    assert (throughput["min"], throughput["avg"], throughput["max"]) == (600.0, 600.0, 600.0)  # 18,000 B in 30 s
    assert throughput["latestTimestamp"] == NOW
    latency = flow["replicationLatencyMs"]
    assert (latency["min"], latency["max"], latency["avg"]) == (5.0, 30.0, 12.5)
    assert flow["checkpointLatencyMs"]["avg"] == 100.0


def test_sources_can_be_repeated_and_must_exist(client: TestClient) -> None:
    assert list(ok(client, "/replications?source=A&source=C")) == ["A->B", "C->B"]
    assert "A, B, C" in problem(client, "/replications?source=X", 404)


def test_unknown_is_null_and_never_nought(client: TestClient) -> None:
    flow = ok(client, "/replications")["C->B"]
    assert flow["status"] == "INACTIVE"
    assert (flow["numTopics"], flow["numConsumerGroups"]) == (None, None)
    names = ("min", "max", "sum", "avg", "latestTimestamp", "latestValue")
    assert {flow["throughputBps"][name] for name in names} == {None}
    topic = ok(client, "/remote-topics/C")["C.orders"]
    assert topic["replicationLatencyMs"]["avg"] is None
    series = ok(client, "/topic-metrics/C.orders/byte-rate")
    assert series["errors"] == ["C->B: its driver is silent"]
    assert series["metrics"][-1]["avg"] == 300.0  # of before, with its time
    assert series["metrics"][-1]["latestTimestamp"] < NOW - 600_000


def test_topics_of_a_source_by_their_remote_names(client: TestClient) -> None:
    topics = ok(client, "/remote-topics/A")
    assert sorted(topics) == ["A.orders", "A.payments"]
    orders = topics["A.orders"]
    assert (orders["upstreamTopic"], orders["originalTopic"], orders["numPartitions"]) == ("orders", "orders", 2)
    assert orders["numConsumerGroups"] == 1
    assert orders["checkpointLatencyMs"]["groups"] == ["billing"]


@pytest.mark.parametrize("metric", [one.value for one in Metric])
def test_every_metric_can_be_asked_for(client: TestClient, metric: str) -> None:
    series = ok(client, f"/cluster-metrics/A/{metric}?minutes=30")
    assert series["metrics"]
    assert {one["name"] for one in series["metrics"]} == {metric}


def test_samples_and_ranges(client: TestClient) -> None:
    assert len(ok(client, "/topic-metrics/A.orders/byte-rate?samples=5")["metrics"]) <= 5
    whole = ok(client, "/topic-metrics/A.orders/byte-rate")
    assert whole["range"]["end"] - whole["range"]["start"] == 7_200_001
    both = ok(client, "/topic-metrics/A.orders/byte-rate?minutes=30&hours=1")["range"]
    assert both["end"] - both["start"] == 90 * 60_000 + 1
    part = ok(client, f"/topic-metrics/A.orders/record-count?from={NOW - 120_000}&to={NOW}")
    assert sum(one["sum"] for one in part["metrics"]) == 4 * 90
    assert part["range"]["midpoint"] == NOW - 60_000


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("minutes=5&from=1", "either minutes and hours, or from and to"),
        ("from=20&to=10", "from 20 is later than to 10"),
        ("minutes=0", "minutes"),
        ("hours=x", "hours"),
        ("to=99999999999999999", "to"),
    ],
)
def test_bad_ranges_are_told(client: TestClient, query: str, says: str) -> None:
    for path in ("/replications", "/cluster-metrics/A/byte-rate", "/v3/flows"):
        assert says in problem(client, f"{path}?{query}", 400)


def test_what_is_not_there_is_told_with_what_is(client: TestClient) -> None:
    assert "byte-rate" in problem(client, "/cluster-metrics/A/speed", 404)
    assert "A.payments" in problem(client, "/topic-metrics/orders/byte-rate", 404)
    assert "A->B" in problem(client, "/v3/flows/A/C", 404)
    assert "payments" in problem(client, "/v2/topic-metrics/A/B/A.orders/byte-rate", 404)
    assert "B" in problem(client, "/v2/topic-metrics/X/A.orders/byte-rate", 404)
    problem(client, "/v3/flows/A/B/partitions?topic=no", 404)
    problem(client, "/nothing", 404)
    assert client.post("/v3/flows", headers=JSON).status_code == 405


def test_both_forms_of_v2(client: TestClient) -> None:
    upstream = ok(client, "/v2/topic-metrics/A/B/orders/byte-rate")
    downstream = ok(client, "/v2/topic-metrics/B/A.orders/byte-rate")
    assert upstream["metrics"] != []
    assert [one["avg"] for one in upstream["metrics"]] == [one["avg"] for one in downstream["metrics"]]


def test_v2_is_right_where_topics_keep_their_names() -> None:
    filled = Filled(flows=(AB, CB))
    for flow, size in ((AB, 300), (CB, 600)):
        filled.report(flow, NOW)
        partition = TopicPartition("same", 0)
        filled.take(PartitionSample(flow, NOW, float(EVERY), partition, "same", 1, size, Histogram.of([float(size)])))
    filled.live()
    with TestClient(make_app(filled.board)) as client:
        (rate,) = ok(client, "/v2/topic-metrics/B/same/byte-rate")["metrics"]
        assert rate["avg"] == 30.0
        (latency,) = ok(client, "/v2/topic-metrics/B/same/replication-latency-ms")["metrics"]
        assert (latency["min"], latency["max"], latency["samples"]) == (300.0, 600.0, 2)
        (one,) = ok(client, "/v2/topic-metrics/A/B/same/byte-rate")["metrics"]
        assert one["avg"] == 10.0


def test_v1_declines_where_targets_would_be_mixed() -> None:
    filled = Filled(flows=(AB, Flow("A", "C")))
    for flow in filled.board.flows:
        filled.report(flow, NOW)
    filled.live()
    with TestClient(make_app(filled.board)) as client:
        assert sorted(ok(client, "/replications")) == ["A->B", "A->C"]
        for path in ("/remote-topics/A", "/topic-metrics/A.orders/byte-rate", "/cluster-metrics/A/byte-rate"):
            problem(client, path, 409)
        assert ok(client, "/v2/topic-metrics/C/A.orders/byte-rate")["metrics"]


def test_cluster_ids(filled: Filled, client: TestClient) -> None:
    problem(client, "/v2/cluster-info/abc", 404)
    filled.board.targets["B"].cluster_id = "abc"
    assert ok(client, "/v2/cluster-info/abc") == {"alias": "B", "kafkaClusterId": "abc"}


def test_smm(client: TestClient) -> None:
    base = "/api/v1/admin/replication-stats"
    assert ok(client, f"{base}/is-configured") is True
    entries = ok(client, f"{base}?duration=LAST_THIRTY_MINUTES")["clusterReplicationStatsEntryMap"]
    assert entries["A->B"]["throughputBpsMetric"] == {"min": 600.0, "avg": 600.0, "max": 600.0}
    assert (entries["B->A"]["status"], entries["C->B"]["numTopics"]) == ("WARNING", None)
    topics = ok(client, f"{base}/A/topics")
    assert topics["replicationStatsByTopic"]["A.orders"]["sourceTopic"] == "orders"
    assert set(topics["throughputTimelineMetrics"].values()) == {600.0}
    line = ok(client, f"{base}/topics/A.orders")["throughputTimelineMetrics"]
    assert set(line.values()) == {300.0}
    problem(client, f"{base}?duration=LAST_YEAR", 400)


def test_our_own_flows(client: TestClient) -> None:
    document = ok(client, "/v3/flows?minutes=30")
    found = {one["flow"]: one for one in document["flows"]}
    assert (found["A->B"]["status"], found["A->B"]["state"], found["A->B"]["why"]) == ("ACTIVE", "running", [])
    assert found["A->B"]["lag"] == {"records": 7, "seconds": 1.5}
    assert found["A->B"]["figures"]["records_per_second"]["avg"] == 6.0
    assert found["B->A"]["why"] == ["1 partition paused: orders-1"]
    silent = found["C->B"]
    assert (silent["state"], silent["lag"]) == (None, {"records": None, "seconds": None})
    assert silent["unknown_since"] == "2025-11-24T15:49:45+00:00"
    assert ok(client, "/v3/flows/B/A")["status"] == "WARNING"


def test_pages_of_topics_partitions_and_groups(client: TestClient) -> None:
    topics = ok(client, "/v3/flows/A/B/topics?limit=1&offset=1")
    assert (topics["total"], [one["source_topic"] for one in topics["topics"]]) == (2, ["payments"])
    assert [one["source_topic"] for one in ok(client, "/v3/flows/A/B/topics?search=order")["topics"]] == ["orders"]
    by_lag = ok(client, "/v3/flows/A/B/topics?sort=lag")["topics"]
    assert [one["lag"]["records"] for one in by_lag] == [2, 1]
    partitions = ok(client, "/v3/flows/B/A/partitions?topic=orders")["partitions"]
    assert [(one["partition"], one["state"], one["reason"]) for one in partitions] == [
        (0, "running", None),
        (1, "paused", "write-refused"),
    ]
    assert [one["group"] for one in ok(client, "/v3/flows/A/B/groups")["groups"]] == ["billing"]
    silent = ok(client, "/v3/flows/C/B/partitions")["partitions"]
    assert {one["lag"]["records"] for one in silent} == {None}
    assert {one["state"] for one in silent} == {None}


def test_readiness_says_why_not() -> None:
    filled = Filled(flows=(AB, BA))
    with TestClient(make_app(filled.board)) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        first = client.get("/readyz")
        assert (first.status_code, first.json()["ready"]) == (503, False)
        filled.live()
        assert client.get("/readyz").status_code == 200
        filled.board.lost("B", "nobody answers at secret-host:9092")
        away = client.get("/readyz")
        assert away.json() == {"ready": False, "why_not": ["cluster B is not read"]}
        assert ok(client, "/v3/flows/A/B")["why"] == ["nobody answers at secret-host:9092"]


def test_prometheus(client: TestClient) -> None:
    lines = client.get("/metrics").text.splitlines()
    assert 'srm_flow_health{flow="A->B"} 0' in lines
    assert 'srm_flow_health{flow="C->B"} 1' in lines
    assert 'srm_flow_status{flow="B->A",status="WARNING"} 1' in lines
    assert 'srm_flow_lag_records{flow="A->B"} 7' in lines
    assert not any(line.startswith('srm_flow_lag_records{flow="C->B"}') for line in lines)
    assert 'srm_service_target_up{target="B"} 1' in lines


def test_a_flow_that_failed_keeps_its_reason() -> None:
    filled = Filled(flows=(AB,))
    filled.report(AB, NOW, FlowState.FAILED, sentence="gave up after 3 tries")
    filled.live()
    with TestClient(make_app(filled.board)) as client:
        flow = ok(client, "/v3/flows/A/B")
    assert (flow["status"], flow["why"], flow["topics"]) == ("INACTIVE", ["failed: gave up after 3 tries"], None)
