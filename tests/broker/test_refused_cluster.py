"""A cluster that the client library refuses, past all checks of a file: it is one flow's trouble, told in a sentence.

The checks are told that every client can be made, as they would say of a login that works where they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main as control
from srm_spark.cli.driver import run
from srm_spark.flow.status import FlowState
from srm_spark.kafka import trial
from srm_spark.testing import KafkaCluster
from tests.broker.conftest import Start
from tests.broker.mirror import SOON, await_count, await_state, status_of, write_config
from tests.kafka_io import Kafka, numbered, records

WHY = "the client library refuses its settings: "
REMEDY = "srm-control config validate names the line"


@pytest.fixture
def kerberos(three: Mapping[str, KafkaCluster], monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """Keys by which the third cluster logs in by Kerberos, which librdkafka's wheels lack."""
    monkeypatch.setattr(trial, "refusal", lambda *_: None)
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
    }
    return {f"{list(three)[2]}.{name}": value for name, value in login.items()}


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_flows_of_other_clusters_run(
    three: Mapping[str, KafkaCluster], kerberos: Mapping[str, str], unique: str, start: Start, side: str
) -> None:
    a, b, c = three
    refused = f"{c}->{b}" if side == "source" else f"{a}->{c}"
    source, target, topic = Kafka(three[a]), Kafka(three[b]), f"t-{unique}"
    source.create(topic)
    source.write(topic, numbered(20))
    keys = {**kerberos, "topics": topic, "flow.retry.delay.ms": "200", f"{refused}.flow.retry.count": "2"}
    driver = start(three, [f"{a}->{b}", refused], {**keys, "emit.heartbeats.enabled": "true"})
    await_count(target, f"{a}.{topic}", 20, SOON)
    failed = await_state(driver, refused, FlowState.FAILED)
    assert failed.reason is not None
    assert failed.reason.startswith("given up after 3 failed starts: ")
    assert WHY in failed.reason
    assert REMEDY in failed.reason
    source.write(topic, numbered(20, prefix="more "))
    await_count(target, f"{a}.{topic}", 40, SOON)
    assert status_of(driver, f"{a}->{b}").state is FlowState.RUNNING
    assert not driver.wait(0)
    driver.stop()
    assert records(target.read(f"{a}.{topic}")) == records(source.read(topic))
    assert [status.state for status in driver.status()] == [FlowState.STOPPED, FlowState.FAILED]


@pytest.mark.parametrize("side", ["source", "target"])
def test_commands_end_with_a_sentence(
    three: Mapping[str, KafkaCluster], kerberos: Mapping[str, str], tmp_path: Path, side: str
) -> None:
    a, _, c = three
    source, target = (c, a) if side == "source" else (a, c)
    path = write_config(tmp_path / "srm.properties", three, [f"{source}->{target}"], kerberos)
    ends = ["--source", source, "--target", target]
    done = CliRunner().invoke(control, ["groups", "status", "--config", str(path), *ends], catch_exceptions=False)
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert WHY in line
    assert REMEDY in line

    done = CliRunner().invoke(run, ["doctor", "--config", str(path)], catch_exceptions=False)
    assert done.exit_code == 1
    (line,) = [line for line in done.stdout.splitlines() if WHY in line]
    assert line.startswith(f"failed  cluster {c}: ")
    assert f"correct the {c}. settings that it names" in done.stdout
    assert any(line.startswith(f"ok      cluster {a}: ") for line in done.stdout.splitlines())
