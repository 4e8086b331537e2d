"""A plain Deployment of Kubernetes, held against the schemas of Kubernetes and Prometheus Operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from srm_spark.deploy.kubernetes import Wanted, deploy
from srm_spark.deploy.report import Deployment
from tests.schemas import complaints
from tests.unit.deploy.files import LOGINS, PLAIN, documents, loaded_from, without_secrets


def deployed(folder: Path, text: str = LOGINS, **wanted: Any) -> Deployment:
    return deploy(loaded_from(folder, text), Wanted("registry.example/srm-spark:1", **wanted))


def by_kind(deployment: Deployment) -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for _, document in documents(deployment)}


@pytest.mark.parametrize("text", [PLAIN, LOGINS])
def test_each_file_passes_the_schema_of_its_kind(tmp_path: Path, text: str) -> None:
    found = by_kind(deployed(tmp_path, text))
    kinds = {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}
    assert set(found) == {*kinds, "ServiceMonitor"}
    assert {kind: complaints("kubernetes", kind, found[kind]) for kind in kinds} == {kind: [] for kind in kinds}
    assert complaints("prometheus-operator", "ServiceMonitor", found["ServiceMonitor"]) == []


def test_a_mistake_would_be_seen(tmp_path: Path) -> None:
    deployment = by_kind(deployed(tmp_path))["Deployment"]
    deployment["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}
    deployment["spec"]["replicas"] = "two"
    assert [text.partition(":")[0] for text in complaints("kubernetes", "Deployment", deployment)] == [
        "$.spec.replicas",
        "$.spec.template.spec.containers[0]",
    ]


def test_no_file_holds_a_secret(tmp_path: Path) -> None:
    assert without_secrets(deployed(tmp_path).files)


def test_everything_that_the_configuration_refers_to_is_mounted_from_the_users_secret(tmp_path: Path) -> None:
    deployment = deployed(tmp_path)
    found = by_kind(deployment)
    pod = found["Deployment"]["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    [source] = volumes["secrets"]["projected"]["sources"]
    assert source["secret"]["name"] == "srm-spark-secrets"
    names = [need.name for need in deployment.needs]
    assert source["secret"]["items"] == [{"key": name, "path": name} for name in names]
    text = found["ConfigMap"]["data"]["srm.properties"]
    assert f"A.ssl.truststore.location={mounts['secrets']}/trust.p12\n" in text
    assert volumes["config"]["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    assert pod["containers"][0]["command"] == ["srm-driver", "--config", f"{mounts['config']}/srm.properties"]
    assert [f"  secrets/{name}" for name in names] == [step for step in deployment.steps if step.startswith("  ")]


def test_a_file_without_secrets_needs_none(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, PLAIN)
    pod = by_kind(deployment)["Deployment"]["spec"]["template"]["spec"]
    assert [volume["name"] for volume in pod["volumes"]] == ["config", "tmp"]
    assert deployment.needs == ()
    assert not any("secret" in step for step in deployment.steps)


@pytest.mark.parametrize(
    ("line", "port"), [("", 9464), ("127.0.0.1:9500", 9500), ("127.0.0.1:0", 9464)], ids=["none", "own", "any"]
)
def test_probes_and_prometheus_reach_the_metrics(tmp_path: Path, line: str, port: int) -> None:
    found = by_kind(deployed(tmp_path, PLAIN + (f"driver.metrics.listener = {line}\n" if line else "")))
    assert f"driver.metrics.listener=0.0.0.0\\:{port}\n" in found["ConfigMap"]["data"]["srm.properties"]
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    [named] = container["ports"]
    assert (named["name"], named["containerPort"]) == ("metrics", port)
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/metrics", "port": "metrics"}
    assert [one["port"] for one in found["Service"]["spec"]["ports"]] == [port]
    [endpoint] = found["ServiceMonitor"]["spec"]["endpoints"]
    assert endpoint["port"] == found["Service"]["spec"]["ports"][0]["name"]


def test_all_resources_find_the_same_pods(tmp_path: Path) -> None:
    found = by_kind(deployed(tmp_path, PLAIN, name="east-west", namespace="kafka"))
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/instance"] == "east-west"
    assert found["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    assert found["Service"]["metadata"]["labels"] == found["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    assert {each["metadata"]["namespace"] for each in found.values()} == {"kafka"}


def test_another_configuration_makes_other_pods(tmp_path: Path) -> None:
    def annotations(text: str) -> Any:
        return by_kind(deployed(tmp_path, text))["Deployment"]["spec"]["template"]["metadata"]["annotations"]

    assert annotations(PLAIN) == annotations(PLAIN)
    assert annotations(PLAIN) != annotations(PLAIN + "A->B.topics.exclude = x\n")


def test_what_kubernetes_would_refuse_is_told_at_once() -> None:
    wanted = Wanted("", "Srm", "n_s", cpu="two", memory="4 Gi", metrics_from="-m")
    assert [one.location for one in wanted.problems()] == [
        *("--image", "--name", "--namespace", "--metrics-from", "--cpu", "--memory")
    ]
    assert Wanted("srm-spark").problems() == []
