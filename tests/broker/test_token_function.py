"""A login by OAUTHBEARER with tokens of a Python function, in the driver, in executors and in Spark's source beside."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping

import pytest

from srm_spark.config.settings import ClusterSettings
from srm_spark.core.model import TopicPartition
from srm_spark.kafka.protocol import Protocol
from srm_spark.testing import LocalKafka
from tests.broker.conftest import Start
from tests.broker.mirror import assert_copied, await_count, await_lag_zero
from tests.kafka_io import Kafka, numbered

pytestmark = pytest.mark.slow

_JAVA = "org.apache.kafka.common.security.oauthbearer"
_LIFE_SECONDS = 8
calls: list[Mapping[str, str]] = []
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    # Spark's Kafka source makes its own tokens, by Kafka's handler for developers.
    "sasl.login.callback.handler.class": f"{_JAVA}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
    "sasl.jaas.config": f'{_JAVA}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="svc";',
    "sasl.login.callback.handler.function": f"{__name__}:give_token",
}


def _part(claims: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


def give_token(options: Mapping[str, str]) -> tuple[str, float]:
    """Unsigned, for a broker that takes such; soon over."""
    calls.append(options)
    now = time.time()
    claims = {"sub": options["unsecuredLoginStringClaim_sub"], "iat": int(now), "exp": int(now) + _LIFE_SECONDS}
    return f"{_part({'alg': 'none'})}.{_part(claims)}.", now + _LIFE_SECONDS


@pytest.fixture
def broker(local_kafka: Callable[..., LocalKafka]) -> LocalKafka:
    """One that knows nobody without a token, and asks for a new one every few seconds."""
    return local_kafka(
        "tokens",
        overrides={
            "listeners": "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "connections.max.reauth.ms": "6000",
            "listener.name.plaintext.oauthbearer.sasl.jaas.config": LOGIN["sasl.jaas.config"],
        },
    )


def test_every_client_of_a_flow_gets_its_tokens_from_the_function(
    broker: LocalKafka, start: Start, unique: str
) -> None:
    a, b, topic = f"a{unique}", f"b{unique}", f"t-{unique}"
    cluster = Kafka(broker, security_protocol="sasl_plaintext", sasl_mechanism="OAUTHBEARER", oauth_cb=_for_the_test)
    cluster.create(topic, 2)
    cluster.write(topic, numbered(100, 2))
    keys = {f"{alias}.{name}": value for alias in (a, b) for name, value in LOGIN.items()}
    driver = start({a: broker, b: broker}, [f"{a}->{b}"], {**keys, "topics": topic})
    await_count(cluster, f"{a}.{topic}", 100)
    time.sleep(2 * _LIFE_SECONDS)  # longer than any token lives, which is what is tried
    cluster.write(topic, numbered(100, 2, "later "))
    await_count(cluster, f"{a}.{topic}", 200)
    await_lag_zero(driver)
    assert_copied(cluster, topic, cluster, f"{a}.{topic}")
    assert len(calls) > 5
    assert {one["unsecuredLoginStringClaim_sub"] for one in calls} == {"svc"}
    with Protocol(ClusterSettings("a", broker.bootstrap_servers, LOGIN), {}, "test", 20) as protocol:
        assert sum(protocol.leader_log_ends([TopicPartition(topic, n) for n in (0, 1)]).values()) == 200


def _for_the_test(_: str) -> tuple[str, float]:
    return give_token({"unsecuredLoginStringClaim_sub": "svc"})
