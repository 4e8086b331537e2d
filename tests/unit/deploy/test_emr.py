"""Requests of EMR and EMR Serverless, held against the models of their interfaces."""

from __future__ import annotations

import json
import shlex
import subprocess
import tarfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from srm_spark.deploy import emr, emr_serverless, yarn
from srm_spark.deploy.report import Deployment
from srm_spark.deploy.s3 import Prefix
from srm_spark.deploy.spark import Spark
from srm_spark.jars.manifest import DRIVERS
from tests.schemas import complaints
from tests.unit.deploy.files import LOGINS, PLAIN, loaded_from, without_secrets

S3 = "s3://bucket/srm"
ROLE = "arn:aws:iam::123456789012:role/srm-spark"


def step(folder: Path, text: str = LOGINS) -> Deployment:
    return emr.deploy(loaded_from(folder, text), emr.Wanted("j-1ABC", S3, yarn.Wanted("east-west", executors=3)))


def job(folder: Path, text: str = LOGINS) -> Deployment:
    return emr_serverless.deploy(loaded_from(folder, text), emr_serverless.Wanted("00f1", ROLE, S3, executors=3))


def request(deployment: Deployment) -> dict[str, Any]:
    [text] = [text for path, text in deployment.files.items() if path.endswith(".json")]
    document: dict[str, Any] = json.loads(text)
    return document


def settings_in(words: Sequence[str]) -> dict[str, str]:
    """Those of `--conf`."""
    given = [word for before, word in pairwise(words) if before == "--conf"]
    return dict(setting.split("=", 1) for setting in given)


@pytest.mark.parametrize("text", [PLAIN, LOGINS])
def test_requests_fit_the_models_of_aws(tmp_path: Path, text: str) -> None:
    assert complaints("emr", "AddJobFlowSteps", request(step(tmp_path, text))) == []
    assert complaints("emr-serverless", "StartJobRun", request(job(tmp_path, text))) == []


def test_a_mistake_would_be_seen(tmp_path: Path) -> None:
    wrong = request(step(tmp_path))
    wrong["Steps"][0]["ActionOnFailure"] = "RETRY"
    del wrong["Steps"][0]["HadoopJarStep"]["Jar"]
    assert len(complaints("emr", "AddJobFlowSteps", wrong)) == 2
    other = request(job(tmp_path))
    other |= {"mode": "LASTING", "applicationId": "UPPER"}
    assert len(complaints("emr-serverless", "StartJobRun", other)) == 2


def test_a_step_submits_to_yarn_what_lies_in_s3(tmp_path: Path) -> None:
    deployment = step(tmp_path)
    [only] = request(deployment)["Steps"]
    words = only["HadoopJarStep"]["Args"]
    at = words.index(f"{S3}/srm_driver.py")
    assert (words[0], words[at + 1 :]) == ("spark-submit", ["--config", "srm.properties"])
    given = dict(zip(words[1:at:2], words[2:at:2], strict=True))
    assert (given["--master"], given["--deploy-mode"], given["--num-executors"]) == ("yarn", "cluster", "3")
    names = [need.name for need in deployment.needs]
    assert given["--files"].split(",") == [f"{S3}/srm.properties", *(f"{S3}/secrets/{name}" for name in names)]
    assert given["--archives"] == f"{S3}/srm-spark-env.tar.gz#environment"
    assert given["--jars"].split(",") == [f"{S3}/jars/{one.file_name}" for one in DRIVERS["4.2"].dependencies]
    assert Spark().session.items() <= settings_in(words).items()
    assert "A.ssl.truststore.location=trust.p12\n" in deployment.files["srm.properties"]


def test_jars_and_settings_are_those_of_the_platforms_spark(tmp_path: Path) -> None:
    spark = Spark("3.5")
    assert (spark.version[:4], spark.scala, spark.jar_set) == ("3.5.", "2.12", "driver-3.5")
    sizes = yarn.Wanted(spark=spark)
    deployment = emr.deploy(loaded_from(tmp_path, PLAIN), emr.Wanted("j-1ABC", S3, sizes))
    [only] = request(deployment)["Steps"]
    words = only["HadoopJarStep"]["Args"]
    assert f"{S3}/jars/spark-sql-kafka-0-10_2.12-{spark.version}.jar" in words[words.index("--jars") + 1].split(",")
    manager = settings_in(words)["spark.sql.streaming.checkpointFileManagerClass"]
    assert manager == "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
    assert any("srm_spark.jars driver-3.5)" in line for line in deployment.steps)


def test_a_job_streams_and_finds_its_configuration_in_an_archive(tmp_path: Path) -> None:
    deployment = job(tmp_path)
    asked = request(deployment)
    assert asked["mode"] == "STREAMING"
    submit = asked["jobDriver"]["sparkSubmit"]
    settings = settings_in(shlex.split(submit["sparkSubmitParameters"]))
    assert Spark().session.items() <= settings.items()
    assert settings["spark.archives"].split(",") == [
        f"{S3}/srm-spark-env.tar.gz#environment",
        f"{S3}/srm-spark-configuration.tar.gz#configuration",
    ]
    assert submit["entryPointArguments"] == ["--config", "configuration/srm.properties"]
    text = deployment.files["srm.properties"]
    assert "A.ssl.truststore.location=configuration/trust.p12\n" in text
    assert "A.ssl.truststore.password=${dir\\:configuration\\:TRUST_OF_A}\n" in text
    assert settings["spark.executor.instances"] == "3"


@pytest.mark.parametrize("text", [PLAIN, LOGINS])
def test_the_step_that_packs_the_archive_packs_all_of_it(tmp_path: Path, text: str) -> None:
    deployment = job(tmp_path, text)
    (tmp_path / "secrets").mkdir()
    names = [need.name for need in deployment.needs]
    for name in names:
        (tmp_path / "secrets" / name).touch()
    [line] = [step for step in deployment.steps if "tar -czf srm-spark-configuration.tar.gz" in step]
    command = line.removeprefix("$ ").replace("{out}", str(tmp_path))
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, timeout=60)
    with tarfile.open(tmp_path / "srm-spark-configuration.tar.gz") as tar:
        packed = {member.name.removeprefix("./") for member in tar if member.isfile()}
    assert packed == {"srm.properties", *names}


@pytest.mark.parametrize("deployed", [step, job])
def test_secrets_are_in_no_file_and_steps_name_them(tmp_path: Path, deployed: Any) -> None:
    deployment = deployed(tmp_path)
    assert without_secrets(deployment.files)
    assert "  secrets/A.sasl.jaas.config" in deployment.steps
    assert not any("secrets" in line for line in deployed(tmp_path, PLAIN).steps)


def test_a_prefix_may_end_with_a_slash() -> None:
    assert Prefix("s3://bucket/srm/").at("x") == Prefix("s3://bucket/srm").at("x") == "s3://bucket/srm/x"


def test_what_aws_would_refuse_is_told_at_once() -> None:
    wanted = emr.Wanted("cluster", "bucket", yarn.Wanted(queue="a b"))
    assert [one.location for one in wanted.problems()] == ["--s3", "--queue", "--cluster-id"]
    assert emr.Wanted("j-1ABC", S3).problems() == []
    serverless = emr_serverless.Wanted("A B", "role", "s3://b,c/x", "n n", "4 GB")
    places = [one.location for one in serverless.problems()]
    assert places == ["--s3", "--name", "--driver-memory", "--application-id", "--role"]
    assert emr_serverless.Wanted("00f1", ROLE, S3).problems() == []
