"""Tokens of a user's function: what it is asked, what it may give, and what is said when it gives none."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from srm_spark.config.render import librdkafka, spark_kafka_options
from srm_spark.config.settings import ClusterSettings
from srm_spark.kafka.login import TokenProvider
from srm_spark.kafka.tokens import tokens_of, with_tokens
from tests.unit.config.conftest import Loader, problems

ME = __name__
JAAS = 'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required user="u" secret="hunter2";'
LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": JAAS}
FUNCTION = "sasl.login.callback.handler.function"
NO_FUNCTION = 3


def give(options: Mapping[str, str]) -> tuple[str, float]:
    """Says what it got."""
    return ",".join(f"{name}={value}" for name, value in sorted(options.items())), 99.0


def refuse(options: Mapping[str, str]) -> tuple[str, float]:
    """Tells a secret while it fails."""
    raise RuntimeError(f"wrong password {options['secret']}")


def give_text(_: Mapping[str, str]) -> str:
    """Forgets when it ends."""
    return "token"


def _options(function: str) -> dict[str, str]:
    more = {FUNCTION: f"{ME}:{function}", "sasl.oauthbearer.scope": "all"}
    return librdkafka(ClusterSettings("A", "h:1", {**LOGIN, **more}), {})


def test_the_function_gets_what_a_java_handler_gets() -> None:
    found = with_tokens(_options("give"))
    assert found["oauth_cb"]("") == ("sasl.oauthbearer.scope=all,secret=hunter2,user=u", 99.0)
    assert not any(name.startswith("srm.") for name in found)
    assert "hunter2" not in repr(found["oauth_cb"])
    tokens = tokens_of(_options("give"))
    assert tokens is not None
    assert TokenProvider(tokens).token().endswith("user=u")


@pytest.mark.parametrize(
    ("function", "said"),
    [("refuse", "RuntimeError: wrong password ***"), ("give_text", "TypeError: got str")],
)
def test_what_it_does_wrong_is_told_without_its_secrets(
    function: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises((RuntimeError, TypeError)):
        with_tokens(_options(function))["oauth_cb"]("")
    assert f"{ME}:{function} gave no token: {said}" in caplog.text
    assert "hunter2" not in caplog.text


def _lines(alias: str, **more: str) -> str:
    return "".join(f"{alias}.{name} = {value}\n" for name, value in {**LOGIN, **more}.items())


def test_sparks_own_source_needs_a_java_handler_beside_it(loaded: Loader) -> None:
    function = {FUNCTION: f"{ME}:give"}
    (problem,) = problems(loaded(_lines("A", **function)))
    assert f"|A.{FUNCTION}|the source of A->B is read by Spark's Kafka source, too" in problem
    handler = {"sasl.login.callback.handler.class": "com.example.Mine"}
    found = loaded(_lines("A", **function, **handler) + _lines("B", **function))
    assert problems(found) == []
    source = found.settings.flows[0].source
    options = spark_kafka_options(source, {}, 30.0)
    assert options["kafka.sasl.login.callback.handler.class"] == "com.example.Mine"
    assert not any(name.endswith(".function") for name in options)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({FUNCTION: "no.such.package:give"}, "cannot be imported: ModuleNotFoundError"),
        ({FUNCTION: f"{ME}:NO_FUNCTION"}, "is a int, expected a function"),
        ({FUNCTION: f"{ME}:give", "sasl.mechanism": "PLAIN"}, "counts only with sasl.mechanism = OAUTHBEARER"),
        ({"sasl.login.callback.handler.class": "com.example.Mine"}, f"any beside {FUNCTION} = package.module"),
    ],
)
def test_mistakes_are_problems_at_their_line(loaded: Loader, keys: dict[str, str], expected: str) -> None:
    found = problems(loaded(_lines("B", **keys)))
    assert any(expected in problem and "srm.properties:" in problem for problem in found), found
