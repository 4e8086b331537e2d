"""A bundle of Databricks, held against the fields of bundles and jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from srm_spark.deploy.configuration import variable_of
from srm_spark.deploy.databricks import Wanted, deploy, problems_of
from srm_spark.deploy.report import Deployment
from tests.schemas import complaints
from tests.unit.deploy.files import LOGINS, PLAIN, loaded_from, without_secrets

VOLUME = "/Volumes/main/kafka/stores"


def deployed(folder: Path, text: str = LOGINS) -> Deployment:
    return deploy(loaded_from(folder, text), Wanted("18.2.x-scala2.13", "i3.xlarge", "east-west", 3, "own", VOLUME))


def bundle(deployment: Deployment) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(deployment.files["databricks.yml"])
    return document


def job(deployment: Deployment) -> dict[str, Any]:
    [found] = bundle(deployment)["resources"]["jobs"].values()
    return dict(found)


def test_the_bundle_has_fields_of_bundles_only(tmp_path: Path) -> None:
    for text in (PLAIN, LOGINS):
        assert complaints("databricks", "bundle", bundle(deployed(tmp_path, text))) == []


def test_the_job_runs_for_ever_and_once(tmp_path: Path) -> None:
    found = job(deployed(tmp_path))
    assert found["continuous"] == {"pause_status": "UNPAUSED"}
    assert found["max_concurrent_runs"] == 1
    [task] = found["tasks"]
    assert task["spark_python_task"] == {
        "python_file": "./srm_driver.py",
        "parameters": ["--config", "${workspace.file_path}/srm.properties"],
    }
    [cluster] = found["job_clusters"]
    assert task["job_cluster_key"] == cluster["job_cluster_key"]
    assert cluster["new_cluster"]["data_security_mode"] == "SINGLE_USER"
    assert cluster["new_cluster"]["spark_conf"]["spark.speculation"] == "false"
    assert (cluster["new_cluster"]["num_workers"], cluster["new_cluster"]["node_type_id"]) == (3, "i3.xlarge")


def test_secrets_come_from_the_scope_and_stores_from_the_volume(tmp_path: Path) -> None:
    deployment = deployed(tmp_path)
    variables = job(deployment)["job_clusters"][0]["new_cluster"]["spark_env_vars"]
    text = deployment.files["srm.properties"]
    assert variables["SRM_A_SASL_JAAS_CONFIG"] == "{{secrets/own/A.sasl.jaas.config}}"
    assert "A.sasl.jaas.config=${env\\:SRM_A_SASL_JAAS_CONFIG}\n" in text
    assert f"A.ssl.truststore.location={VOLUME}/trust.p12\n" in text
    assert {variable for variable in variables if f"${{env\\:{variable}}}" in text} == set(variables)
    assert "$ databricks secrets put-secret own A.sasl.jaas.config" in deployment.steps
    assert f"$ databricks fs cp trust.p12 dbfs:{VOLUME}/trust.p12" in deployment.steps
    assert without_secrets(deployment.files)


def test_a_file_without_secrets_needs_no_scope(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, PLAIN)
    assert "spark_env_vars" not in job(deployment)["job_clusters"][0]["new_cluster"]
    assert not any("secrets" in step for step in deployment.steps)


def test_names_of_variables_do_not_meet(tmp_path: Path) -> None:
    text = PLAIN + "A.b.password = ${env:A.B}\nB.b.password = ${env:A_B}\nB.c.password = ${env:a-b}\n"
    names = [variable_of(need.name) for need in deployed(tmp_path, text).needs]
    assert len(names) == len(set(names)) == 3


def test_stores_without_a_volume_are_told(tmp_path: Path) -> None:
    [problem] = problems_of(loaded_from(tmp_path), Wanted("18.2.x-scala2.13", "i3.xlarge"))
    assert problem.location == "--volume"
    assert "/nowhere/a/trust.p12" in problem.message
    assert problems_of(loaded_from(tmp_path, PLAIN), Wanted("18.2.x-scala2.13", "i3.xlarge")) == []


def test_what_databricks_would_refuse_is_told_at_once() -> None:
    wanted = Wanted("", "i3 x", "a b", scope="s/s", volume="/Volumes/main")
    assert [one.location for one in wanted.problems()] == ["--runtime", "--node-type", "--name", "--scope", "--volume"]
    assert Wanted("18.2.x-scala2.13", "i3.xlarge", volume=VOLUME).problems() == []
