"""References to secrets, as Kafka's config providers resolve them."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.config.source import Entry
from tests.unit.config.conftest import Loader, problems

JAAS = 'x.PlainLoginModule required username=u password=\\"{}\\";'
LOGIN = "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\nA.sasl.jaas.config = " + JAAS


class Vault:
    """A resolver of the user's own."""

    def resolve(self, provider: str, path: str, key: str) -> str | None:
        """Knows one provider."""
        if key == "boom":
            raise RuntimeError("the secret is hunter2")
        return f"{path}-{key}" if provider == "vault" else None


class NoVault:
    """Not a resolver."""


def _jaas(found: object) -> str:
    return found.settings.clusters["A"].properties["sasl.jaas.config"]  # type: ignore[attr-defined, no-any-return]


def test_environment_files_and_directories(loaded: Loader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRM_TEST_SECRET", "from env")
    (tmp_path / "s.properties").write_text("key = from file\n")
    (tmp_path / "name").write_text("from dir")
    (tmp_path / "password").write_text("with a line break\n")
    text = f"A.security.protocol = SSL\nA.ssl.key.password = ${{dir:{tmp_path}:password}}\n"
    assert loaded(text).settings.clusters["A"].properties["ssl.key.password"] == "with a line break"
    for reference, value in (
        ("${env:SRM_TEST_SECRET}", "from env"),
        (f"${{file:{tmp_path}/s.properties:key}}", "from file"),
        (f"${{dir:{tmp_path}:name}}", "from dir"),
    ):
        found = loaded(LOGIN.format(reference) + "\n")
        assert problems(found) == []
        assert value in _jaas(found)
        assert value not in repr(found)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("${env:SRM_NOT_SET}", "environment variable SRM_NOT_SET is not set"),
        ("${file:/no/such:key}", "/no/such cannot be read: No such file"),
        ("${file:key}", "the path is missing"),
        ("${dir:/no/such:key}", "/no/such/key cannot be read"),
        ("${dir:/etc:../passwd}", "is not the name of a file"),
        ("${securestore:/no/such:key}", "SECURESTOREPASS is not set"),
    ],
)
def test_what_cannot_be_resolved_is_one_problem(
    loaded: Loader, monkeypatch: pytest.MonkeyPatch, reference: str, expected: str
) -> None:
    monkeypatch.delenv("SECURESTOREPASS", raising=False)
    (found,) = problems(loaded(f"A->B.topics = {reference}\n"))
    assert expected in found
    assert f"cannot resolve {reference}" in found


def test_an_unknown_provider_is_left_alone_with_a_warning(loaded: Loader) -> None:
    found = loaded("A.client.id = x\nA.consumer.client.id = ${cfmap:ns/map:key}\n")
    assert found.settings.flows[0].consumer["client.id"] == "${cfmap:ns/map:key}"
    assert "${cfmap:ns/map:key} is left as it is: known providers are dir, env, file" in "\n".join(
        found.settings.warnings
    )


def test_providers_can_be_declared_as_in_kafka(loaded: Loader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRM_TEST_SECRET", "x")
    package = "org.apache.kafka.common.config.provider"
    text = f"""config.providers = e, f
config.providers.e.class = {package}.EnvVarConfigProvider
config.providers.e.param.allowlist.pattern = OTHER_.*
config.providers.f.class = {package}.FileConfigProvider
config.providers.f.param.allowed.paths = {tmp_path}/allowed
A.consumer.client.id = ${{e:SRM_TEST_SECRET}}
A.consumer.client.rack = ${{f:/etc/hostname:x}}
"""
    found = "\n".join(problems(loaded(text)))
    assert "SRM_TEST_SECRET is not in the provider's allowlist.pattern" in found
    assert "/etc/hostname is not below the provider's allowed.paths" in found


def test_a_java_provider_and_a_bad_pattern_are_problems(loaded: Loader) -> None:
    text = "config.providers = v, w\nconfig.providers.v.class = com.example.Vault\n"
    found = "\n".join(problems(loaded(text)))
    assert "got com.example.Vault: a Java class cannot be loaded here|write config.resolver.class" in found
    assert "config.providers.w.class|is missing" in found
    package = "org.apache.kafka.common.config.provider"
    text = f"config.providers = e\nconfig.providers.e.class = {package}.EnvVarConfigProvider\n"
    assert "allowlist.pattern" in "\n".join(problems(loaded(text + "config.providers.e.param.allowlist.pattern = (\n")))


def test_a_resolver_of_ones_own(loaded: Loader) -> None:
    own = f"config.resolver.class = {__name__}:Vault\n"
    found = loaded(own + "A.consumer.client.id = ${vault:a:b}\n")
    assert found.settings.flows[0].consumer["client.id"] == "a-b"
    (problem,) = problems(loaded(own + "A.consumer.client.id = ${vault:a:boom}\n"))
    assert "config.resolver.class failed with RuntimeError" in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize("path", ["no.such:X", "json", f"{__name__}:NoVault"])
def test_a_resolver_that_is_none(loaded: Loader, path: str) -> None:
    assert f"config.resolver.class|got {path}" in "\n".join(problems(loaded(f"config.resolver.class = {path}\n")))


def test_secure_storage_is_opened_by_the_variable_that_srm_used(
    loaded: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Made by `keytool -importpass -storetype JCEKS -alias kafka`.
    store = Path(__file__).parent / "samples" / "secure-storage.jceks"
    monkeypatch.setenv("SECURESTOREPASS", "store-pass")
    text = f"A.consumer.client.id = ${{securestore:{store}:kafka}}\n"
    assert loaded(text).settings.flows[0].consumer["client.id"] == "top secret"
    monkeypatch.setenv("SECURESTOREPASS", "wrong")
    assert "the password is wrong or the file is damaged" in "\n".join(problems(loaded(text)))


def test_an_entry_never_shows_its_secret() -> None:
    entry = Entry("A.sasl.jaas.config", 'M required password="hunter2";', "f:1")
    assert "hunter2" not in repr(entry)
    assert "hunter2" not in entry.shown
