"""No secret is ever shown."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.config.load import Loaded
from srm_spark.config.secrets import MASK, SPARK_REDACTION_REGEX, is_secret, mask
from srm_spark.errors import ConfigError
from tests.unit.config.conftest import Loader

SECRET_KEYS = [
    "sasl.jaas.config",
    "ssl.truststore.password",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "metrics.jetty.auth.password",
    "securestorage.password",
]
OPEN_KEYS = [
    "ssl.truststore.location",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.assertion.private.key.file",
    "key.converter",
    "topics",
    "sasl.mechanism",
]


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_secret_keys_are_masked_behind_any_prefix(key: str) -> None:
    for prefix in ("", "A.", "A.consumer.", "A->B.producer.override.", "connectors.", "kafka."):
        assert is_secret(prefix + key)
        assert mask(prefix + key, "hunter2") == MASK
    assert re.search(SPARK_REDACTION_REGEX, f"kafka.{key}")


@pytest.mark.parametrize("key", OPEN_KEYS)
def test_other_keys_are_not(key: str) -> None:
    assert not is_secret(f"A.{key}")


@pytest.mark.parametrize("key", ["A.ssl.keystore.pasword", "ssl.key.pasphrase", "B.sasl.oauthbearer.client.secrt"])
def test_misspelled_ones_are_masked_too(key: str) -> None:
    assert mask(key, "hunter2") == MASK


def test_references_are_shown_and_passwords_inside_other_values_are_not() -> None:
    assert mask("A.sasl.jaas.config", "${env:X}") == "${env:X}"
    assert "hunter2" not in mask("A.custom", 'M required password="hunter2" user=x;')


def test_nothing_that_is_printed_holds_a_secret(loaded: Loader) -> None:
    lines = [
        f"{prefix}{key} = hunter2" for prefix in ("", "A.", "B.producer.", "A->B.consumer.") for key in SECRET_KEYS
    ]
    lines += ["A.security.protocol = SASL_SSL", "A.sasl.mechanism = PLAIN", "B.security.protocol = SSL"]
    found = loaded("\n".join(lines))
    assert found.report.problems
    assert "hunter2" not in repr(found) + str(ConfigError(found.report.problems)) + "".join(found.settings.warnings)
    assert "hunter2" not in _printed(found)


def _printed(found: Loaded) -> str:
    (file,) = found.sources.files
    runner = CliRunner()
    commands = (
        ["validate", file],
        ["validate", file, "-o", "json"],
        ["show", file],
        ["show", file, "--written"],
        ["show", file, "-o", "json"],
        ["show", file, "--explain", "producer.ssl.key.password"],
    )
    return "".join(runner.invoke(main, ["config", *command]).output for command in commands)


def test_what_a_reference_brought_is_never_shown(loaded: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRM_TEST_SECRET", "hunter2(,hunter2(")
    for key in (
        "topics",
        "offset.lag.max",
        "emit.heartbeats.enabled",
        "A.bootstrap.servers",
        "A.consumer.isolation.level",
    ):
        found = loaded(f"{key} = ${{env:SRM_TEST_SECRET}}\n")
        assert found.report.problems
        told = str(ConfigError(found.report.problems)) + "".join(found.settings.warnings) + _printed(found)
        assert "hunter2" not in told, key
