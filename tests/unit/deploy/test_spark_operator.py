"""SparkApplications of both operators, held against their resources and against the pods of Kubernetes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from srm_spark.deploy.report import Deployment
from srm_spark.deploy.spark import Spark
from srm_spark.deploy.spark_operator import Operator, Wanted, deploy
from tests.schemas import complaints
from tests.unit.deploy.files import LOGINS, PLAIN, documents, loaded_from, without_secrets

IMAGE = "registry.example/srm-spark:1"


def deployed(folder: Path, operator: Operator, text: str = LOGINS, **wanted: Any) -> Deployment:
    return deploy(loaded_from(folder, text), Wanted(operator, IMAGE, **wanted))


def resources(deployment: Deployment) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ConfigMap and the spec of the SparkApplication."""
    found = {document["kind"]: document for _, document in documents(deployment)}
    return found["ConfigMap"], found["SparkApplication"]["spec"]


def pods(operator: Operator, spec: dict[str, Any]) -> list[dict[str, Any]]:
    """What driver and executors become, as far as the resource says it, as pods."""
    if operator is Operator.APACHE:
        return [spec[one]["podTemplateSpec"]["spec"] for one in ("driverSpec", "executorSpec")]
    return [
        {
            "containers": [
                {"name": one, **{key: spec[one][key] for key in ("securityContext", "volumeMounts")}},
            ],
            "securityContext": spec[one]["podSecurityContext"],
            "volumes": spec["volumes"],
        }
        for one in ("driver", "executor")
    ]


@pytest.mark.parametrize("text", [PLAIN, LOGINS])
@pytest.mark.parametrize("operator", Operator)
def test_each_file_passes_the_schema_of_its_kind(tmp_path: Path, operator: Operator, text: str) -> None:
    deployment = deployed(tmp_path, operator, text)
    for _, document in documents(deployment):
        name = "kubernetes" if document["kind"] == "ConfigMap" else f"{operator.value}-spark-operator"
        assert complaints(name, document["kind"], document) == []
    for pod in pods(operator, resources(deployment)[1]):
        assert complaints("kubernetes", "Pod", {"apiVersion": "v1", "kind": "Pod", "spec": pod}) == []


@pytest.mark.parametrize("operator", Operator)
def test_driver_and_executors_find_the_configuration_and_what_it_refers_to(tmp_path: Path, operator: Operator) -> None:
    deployment = deployed(tmp_path, operator)
    held, spec = resources(deployment)
    for pod in pods(operator, spec):
        mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert set(mounts) == set(volumes) == {"config", "secrets"}
        assert volumes["config"]["configMap"]["name"] == held["metadata"]["name"]
        assert f"{mounts['secrets']}/trust.p12\n" in held["data"]["srm.properties"]
        [source] = volumes["secrets"]["projected"]["sources"]
        assert [item["key"] for item in source["secret"]["items"]] == [need.name for need in deployment.needs]


@pytest.mark.parametrize("operator", Operator)
def test_what_runs_lies_in_the_configmap(tmp_path: Path, operator: Operator) -> None:
    held, spec = resources(deployed(tmp_path, operator))
    is_apache = operator is Operator.APACHE
    job, arguments = (
        (spec["pyFiles"], spec["driverArgs"]) if is_apache else (spec["mainApplicationFile"], spec["arguments"])
    )
    assert job == "local:///etc/srm-spark/config/srm_driver.py"
    assert arguments == ["--config", "/etc/srm-spark/config/srm.properties"]
    assert set(held["data"]) == {"srm_driver.py", "srm.properties"}
    compile(held["data"]["srm_driver.py"], "srm_driver.py", "exec")


@pytest.mark.parametrize("operator", Operator)
def test_the_session_is_as_ever_and_a_driver_that_ends_is_started_anew(tmp_path: Path, operator: Operator) -> None:
    _, spec = resources(deployed(tmp_path, operator, executors=5, executor_memory="3g"))
    assert Spark().session.items() <= spec["sparkConf"].items()
    version = Spark().version
    if operator is Operator.APACHE:
        assert spec["applicationTolerations"]["restartConfig"]["restartPolicy"] == "Always"
        assert spec["runtimeVersions"]["sparkVersion"] == version
        sizes = spec["sparkConf"]["spark.executor.instances"], spec["sparkConf"]["spark.executor.memory"]
        assert spec["sparkConf"]["spark.kubernetes.container.image"] == IMAGE
        assert spec["sparkConf"]["spark.kubernetes.authenticate.driver.serviceAccountName"] == "spark"
    else:
        assert spec["restartPolicy"]["type"] == "Always"
        assert (spec["sparkVersion"], spec["image"]) == (version, IMAGE)
        sizes = str(spec["executor"]["instances"]), spec["executor"]["memory"]
        assert spec["driver"]["serviceAccount"] == "spark-operator-spark"
    assert sizes == ("5", "3g")


@pytest.mark.parametrize("operator", Operator)
def test_no_file_holds_a_secret(tmp_path: Path, operator: Operator) -> None:
    assert without_secrets(deployed(tmp_path, operator).files)


def test_what_kubernetes_or_spark_would_refuse_is_told_at_once() -> None:
    wanted = Wanted(Operator.APACHE, " ", "N", "n_s", "A B", "4Gi", executor_memory="")
    assert [one.location for one in wanted.problems()] == [
        *("--image", "--name", "--namespace", "--service-account", "--driver-memory", "--executor-memory")
    ]
    assert Wanted(Operator.KUBEFLOW, IMAGE).problems() == []
