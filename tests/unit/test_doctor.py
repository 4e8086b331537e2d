"""The parts of the doctor that need no cluster, and the shape of `srm-driver`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError

from srm_spark.cli.driver import run
from srm_spark.config import load_settings
from srm_spark.config.load import load
from srm_spark.doctor import Health, examine, machine, read_configuration
from srm_spark.doctor.clusters import factors_of
from srm_spark.doctor.machine import check_jars, check_java, check_python, check_scala, check_spark
from srm_spark.jars.cache import CACHE_VARIABLE
from srm_spark.kafka.access import Trouble, trouble_of
from srm_spark.statements import make_keys
from tests.unit.memory_flow import FILE


def test_an_old_python_is_refused_with_the_remedy() -> None:
    finding = check_python((3, 9, 2))
    assert finding.health is Health.FAILED
    assert finding.found == "3.9.2, expected 3.10 or newer"
    assert "PYTHON=" in finding.remedy


def test_a_spark_home_of_another_spark_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert (check_spark().health, check_spark().remedy) == (Health.FAILED, "unset SPARK_HOME")
    assert check_scala().health is Health.OK
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").rename(tmp_path / "jars" / "spark-core_2.13-3.5.1.jar")
    assert (check_scala().health, check_scala().found) == (
        Health.FAILED,
        "jars for Scala 2.12, but Spark 3.5.1 is built with 2.13",
    )


def test_spark_3_5_cannot_be_imported_by_python_3_12(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "package_version", lambda _: "3.5.7")
    assert check_spark((3, 12, 0)).found == "3.5.7 imports what Python 3.12 lacks"
    assert "Python 3.12" not in check_spark((3, 11, 7)).found


def test_a_spark_that_there_are_no_jars_for_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.4.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert {check_jars().found, check_scala().found} == {
        "Spark 3.4.1 is here, and there are jars for 3.5, 4.0, 4.1 or 4.2"
    }


@pytest.mark.parametrize(
    ("code", "text", "trouble"),
    [
        (KafkaError._RESOLVE, "Failed to resolve", Trouble.NAME),
        (KafkaError._AUTHENTICATION, "SASL authentication error", Trouble.CREDENTIALS),
        (KafkaError._SSL, "certificate verify failed", Trouble.TLS),
        (KafkaError._TRANSPORT, "SSL handshake failed: Disconnected", Trouble.TLS),
        (KafkaError._TRANSPORT, "Connect to ipv4#127.0.0.1:1 failed: Connection refused", Trouble.REFUSED),
        (KafkaError._TRANSPORT, "Disconnected while requesting ApiVersion", Trouble.PROTOCOL),
        (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down", Trouble.PROTOCOL),
        (KafkaError._TIMED_OUT, "Connection setup timed out", Trouble.SILENT),
    ],
)
def test_what_the_client_says_is_understood(code: int, text: str, trouble: Trouble) -> None:
    assert trouble_of(KafkaError(code, text)) is trouble


def test_silence_is_silence() -> None:
    assert trouble_of(None) is Trouble.SILENT


def test_all_problems_of_a_file_are_findings_and_clusters_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "srm.properties"
    path.write_text("clusters = A, B\nA->B.enabled = perhaps\n")
    found = examine([path])
    problems = [finding for finding in found if finding.check == "configuration"]
    assert len(problems) > 1
    assert all(finding.health is Health.FAILED and finding.remedy for finding in problems)
    assert found[-1].check == "clusters"
    assert found[-1].health is Health.UNKNOWN


def test_a_key_of_statements_is_tried(tmp_path: Path) -> None:
    path, key = tmp_path / "srm.properties", tmp_path / "k"
    name = make_keys(key, tmp_path / "k.pub")
    path.write_text(f"{FILE}statement.key = {key}\n")
    _, found = read_configuration(lambda: load([path]))
    assert [(one.health, one.found) for one in found if one.check == "statements"] == [
        (Health.OK, f"signed by key {name}")
    ]
    key.unlink()
    _, found = read_configuration(lambda: load([path]))
    (one,) = [one for one in found if one.check == "statements"]
    assert (one.health, "cannot be read" in one.found, "mend statement.key" in one.remedy) == (
        Health.WARNED,
        True,
        True,
    )


def test_a_configuration_is_needed_to_run() -> None:
    done = CliRunner().invoke(run, [])
    assert done.exit_code == 2
    assert "Missing option '--config'" in done.stderr


def test_the_machine_is_examined_without_a_configuration() -> None:
    done = CliRunner().invoke(run, ["doctor", "-o", "json"])
    found = {finding["check"]: finding for finding in json.loads(done.stdout)}
    assert {"Python", "Java", "pyspark", "driver jars"} <= found.keys()
    assert found["configuration"]["health"] == Health.UNKNOWN.value
    assert done.exit_code == any(finding["health"] == Health.FAILED.value for finding in found.values())


def test_jars_that_will_be_fetched_are_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    finding = check_jars()
    assert (finding.health, finding.found) == (Health.WARNED, "the first start will download them")
    assert finding.remedy == "python -m srm_spark.jars driver"


def test_another_java_than_that_of_java_home_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = check_java()
    assert finding.health is Health.WARNED
    assert f"JAVA_HOME is {tmp_path}, where no Java answers" in finding.found
    assert finding.remedy.startswith("export JAVA_HOME=/")


def test_copies_of_heartbeats_are_counted_on_the_clusters_that_they_are_written_to(tmp_path: Path) -> None:
    path = tmp_path / "srm.properties"
    servers = "A.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"
    path.write_text(
        f"clusters = A, B\n{servers}A->B.enabled = true\ndialect = mm2\nheartbeats.topic.replication.factor = 5\n"
    )
    wanted = {(factor.alias, factor.copies) for factor in factors_of(load_settings(path)) if "heartbeats" in factor.key}
    assert wanted == {("A", 5), ("B", 5)}
