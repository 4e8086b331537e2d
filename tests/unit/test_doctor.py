"""The parts of the doctor that need no cluster, and the shape of `srm-driver`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError

from srm_spark.cli.driver import run
from srm_spark.doctor import Health, examine
from srm_spark.doctor.machine import check_python, check_scala, check_spark
from srm_spark.kafka.access import Trouble, trouble_of


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
    assert check_scala().health is Health.FAILED
    assert "2.12" in check_scala().found


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


@pytest.mark.parametrize("arguments", [[], ["doctor"]])
def test_a_configuration_is_needed(arguments: list[str]) -> None:
    done = CliRunner().invoke(run, arguments)
    assert done.exit_code == 2
    assert "Missing option '--config'" in done.stderr
