"""A job of YARN: the script is run, with a spark-submit that only says what it was given."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from srm_spark.deploy.spark import Spark
from srm_spark.deploy.writing import write
from srm_spark.deploy.yarn import Wanted, deploy
from tests.unit.deploy.files import LOGINS, PLAIN, loaded_from, without_secrets

_TAKEN = ("--name", "--master", "--deploy-mode", "--queue", "--driver-memory", "--num-executors", "--executor-cores")
_SUBMIT_OPTIONS = {*_TAKEN, "--executor-memory", "--conf", "--archives", "--jars", "--files", "--principal"}
"""Those of spark-submit's own that the script may use."""


def submitted(folder: Path, text: str, more: Sequence[str] = (), **environment: str) -> list[str]:
    """The words that spark-submit gets."""
    write(deploy(loaded_from(folder, text), Wanted("east-west", executors=3)), folder / "a folder")
    submit = folder / "spark" / "bin" / "spark-submit"
    submit.parent.mkdir(parents=True)
    submit.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    submit.chmod(0o755)
    known = {"SPARK_HOME": str(folder / "spark"), "SRM_ENVIRONMENT": "env.tar.gz", "SRM_JARS": "a.jar,b.jar"}
    return run(folder / "a folder" / "submit.sh", more, {**known, **environment}).stdout.splitlines()


def run(script: Path, more: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(script), *more],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_spark_submit_gets_the_job_its_configuration_and_what_that_needs(tmp_path: Path) -> None:
    words = submitted(tmp_path, LOGINS, SRM_SECRETS="my secrets")
    at = words.index(f"{tmp_path}/a folder/srm_driver.py")
    assert words[at + 1 :] == ["--config", "srm.properties"]
    options = list(zip(words[:at:2], words[1:at:2], strict=True))
    assert {option for option, _ in options} <= _SUBMIT_OPTIONS
    given = dict(options)
    assert (given["--master"], given["--deploy-mode"], given["--name"]) == ("yarn", "cluster", "east-west")
    assert (given["--num-executors"], given["--jars"]) == ("3", "a.jar,b.jar")
    assert given["--archives"] == "env.tar.gz#environment"
    files = given["--files"].split(",")
    assert files[0] == f"{tmp_path}/a folder/srm.properties"
    names = ["A.sasl.jaas.config", "trust.p12", "TRUST_OF_A", "2-trust.p12", "B.ssl.truststore.password", "keys.p12"]
    assert files[1:] == [f"my secrets/{name}" for name in [*names, "keys"]]
    settings = dict(value.split("=", 1) for option, value in options if option == "--conf")
    assert Spark().session.items() <= settings.items()
    assert settings["spark.pyspark.python"] == "./environment/bin/python"
    assert int(settings["spark.yarn.maxAppAttempts"]) > 1


def test_options_of_the_user_come_last(tmp_path: Path) -> None:
    words = submitted(tmp_path, PLAIN, ["--principal", "a user", "--conf", "spark.ui.enabled=true"])
    at = words.index("--principal")
    assert words[at : at + 4] == ["--principal", "a user", "--conf", "spark.ui.enabled=true"]
    assert words[at + 4].endswith("srm_driver.py")


@pytest.mark.parametrize("missing", ["SPARK_HOME", "SRM_ENVIRONMENT", "SRM_SECRETS"])
def test_what_is_not_there_is_told(tmp_path: Path, missing: str) -> None:
    write(deploy(loaded_from(tmp_path), Wanted()), tmp_path / "out")
    known = {"SPARK_HOME": "/nowhere", "SRM_ENVIRONMENT": "x", "SRM_SECRETS": "y", "SRM_JARS": "z"}
    done = run(tmp_path / "out" / "submit.sh", (), {key: value for key, value in known.items() if key != missing})
    assert done.returncode != 0
    assert missing in done.stderr


def test_no_file_holds_a_secret(tmp_path: Path) -> None:
    assert without_secrets(deploy(loaded_from(tmp_path), Wanted()).files)


def test_what_spark_submit_would_refuse_is_told_at_once() -> None:
    wanted = Wanted("a name", "q;rm", "4 GB", executor_memory="lots")
    assert [one.location for one in wanted.problems()] == [
        *("--name", "--queue", "--driver-memory", "--executor-memory")
    ]
    assert Wanted().problems() == []
