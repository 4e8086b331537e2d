"""A configuration is written anew: the same flows, no secret, every file at its new place."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.config.load import load_settings
from srm_spark.deploy.checking import problems_of
from srm_spark.deploy.configuration import Folder, configuration_of, holds_secret, name_of
from srm_spark.deploy.report import Need, NeedKind
from tests.unit.deploy.files import LOGINS, PLAIN, SECRETS, loaded_from

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_the_written_file_means_the_same_flows_once_its_secrets_are_there(tmp_path: Path) -> None:
    text = f"""{PLAIN}
A.security.protocol = SASL_PLAINTEXT
A.sasl.mechanism = SCRAM-SHA-512
A.sasl.jaas.config = {SCRAM} username="u" password="p=\\\\\\\\ä";
A->B.topics.exclude = .*\\\\.test
config.providers = mine
config.providers.mine.class = org.apache.kafka.common.config.provider.FileConfigProvider
A->B.consumer.fetch.min.bytes = ${{mine:{tmp_path}/numbers.properties:least}}
"""
    (tmp_path / "numbers.properties").write_text("least = 7\n")
    loaded = loaded_from(tmp_path, text)
    assert loaded.report.problems == []
    made = configuration_of(loaded, Folder(str(tmp_path / "there")))

    there = tmp_path / "there"
    there.mkdir()
    assert [need.name for need in made.needs] == ["A.sasl.jaas.config", "least"]
    (there / "A.sasl.jaas.config").write_text(loaded.sources.entries["A.sasl.jaas.config"].value)
    (there / "least").write_text("7")
    (there / "srm.properties").write_text(made.text)
    again = load_settings(there / "srm.properties")
    assert again.flows == loaded.settings.flows
    assert again.clusters == loaded.settings.clusters
    assert again.flows[0].consumer["fetch.min.bytes"] == "7"


def test_no_secret_is_written_and_each_is_a_need(tmp_path: Path) -> None:
    made = configuration_of(loaded_from(tmp_path), Folder("/there"))
    assert [secret for secret in SECRETS if secret in made.text] == []
    file = tmp_path / "srm.properties"
    assert list(made.needs) == [
        Need(NeedKind.SECRET, "A.sasl.jaas.config", f"the value of A.sasl.jaas.config at {file}:10"),
        Need(NeedKind.FILE, "trust.p12", f"/nowhere/a/trust.p12, for A.ssl.truststore.location at {file}:11"),
        Need(NeedKind.SECRET, "TRUST_OF_A", "the environment variable TRUST_OF_A"),
        Need(NeedKind.FILE, "2-trust.p12", f"/nowhere/b/trust.p12, for B.ssl.truststore.location at {file}:14"),
        Need(NeedKind.SECRET, "B.ssl.truststore.password", f"the value of B.ssl.truststore.password at {file}:15"),
        Need(NeedKind.FILE, "keys.p12", f"/nowhere/b/keys.p12, for B.ssl.keystore.location at {file}:16"),
        Need(NeedKind.SECRET, "keys", "keys in /nowhere/b/secret.properties"),
    ]
    written = lines_of(made.text)
    assert "A.sasl.jaas.config=${dir\\:/there\\:A.sasl.jaas.config}" in written
    assert "B.ssl.truststore.location=/there/2-trust.p12" in written
    assert "B.ssl.keystore.password=${dir\\:/there\\:keys}" in written
    assert "B.ssl.key.password=${dir\\:/there\\:keys}" in written
    assert made.notes == ("left out 1 key that only srm-service reads",)


def test_files_of_a_driver_that_starts_beside_them_have_bare_names(tmp_path: Path) -> None:
    written = lines_of(configuration_of(loaded_from(tmp_path), Folder(".")).text)
    assert "A.ssl.truststore.location=trust.p12" in written
    assert "A.ssl.truststore.password=${dir\\:.\\:TRUST_OF_A}" in written


def test_a_platform_may_need_a_key_to_be_otherwise(tmp_path: Path) -> None:
    loaded = loaded_from(tmp_path, PLAIN + "driver.metrics.listener = 127.0.0.1:1\n")
    made = configuration_of(loaded, Folder("/there"), {"driver.metrics.listener": "0.0.0.0:1"})
    assert lines_of(made.text).count("driver.metrics.listener=0.0.0.0\\:1") == 1
    assert "127.0.0.1" not in made.text
    assert made.notes == ("driver.metrics.listener = 0.0.0.0:1 instead of 127.0.0.1:1",)


@pytest.mark.parametrize(
    ("key", "value", "is_one"),
    [
        ("A.ssl.key.password", "p", True),
        ("A.ssl.key.password", "${env:P}", False),
        ("A.ssl.key.password", "", False),
        ("A.ssl.key.password", "${env:P}-and-more", True),
        ("A.ssl.keystore.key", "-----BEGIN PRIVATE KEY-----", True),
        ("A.topics", "orders", False),
        ("A.note", "password=p", True),
        ("A.sasl.jaas.config", f'{SCRAM} username="u" password="${{file:/p:k}}";', False),
        ("A.sasl.jaas.config", f'{SCRAM} username="u" password="p${{file:/p:k}}";', True),
        ("A.sasl.jaas.config", f'{SCRAM} username="${{env:U}}" password="p";', True),
        ("A.sasl.jaas.config", f'{SCRAM} login="u" pin="1234";', True),
        ("A.sasl.jaas.config", '${env:U} "not closed', True),
    ],
)
def test_what_is_a_secret(key: str, value: str, is_one: bool) -> None:
    assert holds_secret(key, value) is is_one


def test_names_fit_every_platform() -> None:
    assert name_of("A->B.source.consumer.sasl.jaas.config") == "A-to-B.source.consumer.sasl.jaas.config"
    assert name_of("keys of b") == "keys_of_b"
    assert name_of("..") == "value"


def test_a_reference_that_cannot_be_resolved_here_is_no_problem(tmp_path: Path) -> None:
    loaded = loaded_from(tmp_path)
    assert loaded.report.problems != []
    problems, unchecked = problems_of(loaded)
    assert problems == []
    file = tmp_path / "srm.properties"
    assert unchecked == [
        f"{file}:11: A.ssl.truststore.location",
        f"{file}:12: A.ssl.truststore.password",
        f"{file}:14: B.ssl.truststore.location",
        f"{file}:16: B.ssl.keystore.location",
        f"{file}:17: B.ssl.keystore.password",
        f"{file}:18: B.ssl.key.password",
    ]


def test_all_other_problems_are(tmp_path: Path) -> None:
    text = LOGINS.replace("a:9092", "nowhere").replace("A->B.enabled = true", "A->B.enabled = yes")
    problems, _ = problems_of(loaded_from(tmp_path, text))
    file = tmp_path / "srm.properties"
    assert sorted((one.location, one.key) for one in problems) == [
        (f"{file}:2", "A.bootstrap.servers"),
        (f"{file}:4", "A->B.enabled"),
    ]


def test_a_reference_that_is_resolved_here_is_checked_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOCOL", "SASS")
    problems, unchecked = problems_of(loaded_from(tmp_path, PLAIN + "A.security.protocol = ${env:PROTOCOL}\n"))
    assert [one.key for one in problems] == ["A.security.protocol"]
    assert unchecked == []
