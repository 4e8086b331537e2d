"""Every way of logging in, with data flowing through one driver: another one on each side of each flow.

The brokers refuse what is not allowed, and each principal has exactly the rights of docs/security.md. librdkafka and
Spark's Kafka source (Java) live on the same settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from srm_spark.config import load_settings
from srm_spark.config.rights import rights_of_flow, rights_of_heartbeats
from srm_spark.flow.status import FlowState
from srm_spark.testing import KafkaCluster
from tests.awaiting import await_until
from tests.broker.conftest import Start
from tests.broker.mirror import SOON, assert_copied, await_lag_zero, write_config
from tests.broker.secured import PASSWORD, Acl, SecuredKafka, Stores, make_stores, secured_kafka
from tests.identity_provider import IdentityProvider, identity_provider
from tests.kafka_io import Kafka, numbered

pytestmark = pytest.mark.slow

USERS = {"ann": "ann-Secret-1", "bob": 'bob "quoted" \\ =;1', "cid": "cid-Secret-3"}
CLIENTS = {"svc": "svc-Secret-5"}
LOGIN = "org.apache.kafka.common.security"


class Sides(NamedTuple):
    source: SecuredKafka
    target: SecuredKafka
    provider: IdentityProvider


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    with ExitStack() as stack:
        provider = stack.enter_context(identity_provider(CLIENTS))
        stores = make_stores(tmp_path_factory.mktemp("stores"))
        users = {name: password for name, password in USERS.items() if name != "bob"}
        source = stack.enter_context(secured_kafka("guarded-a", stores, provider, users))
        target = stack.enter_context(secured_kafka("guarded-b", stores, provider, users))
        yield Sides(source, target, provider)


class Login(NamedTuple):
    """One way of logging in: the listener, who one is there, and what the file says."""

    listener: str
    principal: str
    keys: Mapping[str, str]


def _jaas(module: str, **options: str) -> str:
    words = " ".join(f'{name}="{value}"' for name, value in options.items())
    return f"{LOGIN}.{module} required {words};"


def _logins(stores: Stores, provider: IdentityProvider) -> Mapping[str, Login]:
    trust_pem = {"ssl.truststore.location": stores.path("trust.pem"), "ssl.truststore.type": "PEM"}
    trust_p12 = {
        "ssl.truststore.location": stores.path("trust.p12"),
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.password": PASSWORD,
    }
    # Without a type, as in most files: it is found out from the content.
    trust_jks = {"ssl.truststore.location": stores.path("trust.jks"), "ssl.truststore.password": PASSWORD}
    client_jks = {
        "ssl.keystore.location": stores.path("client.jks"),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
    }
    encrypted_pem = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": stores.path("client.pem"),
        "ssl.key.password": PASSWORD,
    }
    client_p12 = {
        "ssl.keystore.location": stores.path("client.p12"),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
    }
    client_pem = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": stores.client.key_pem.replace("\n", " "),
        "ssl.keystore.certificate.chain": stores.client.certificate_pem.replace("\n", " "),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": stores.ca.certificate_pem.replace("\n", " "),
    }
    plain = _jaas("plain.PlainLoginModule", username="ann", password=USERS["ann"])
    scram = _jaas("scram.ScramLoginModule", username="cid", password=USERS["cid"])
    oauth = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "sasl.login.callback.handler.class": f"{LOGIN}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": _jaas(
            "oauthbearer.OAuthBearerLoginModule", clientId="svc", clientSecret=CLIENTS["svc"], scope="all"
        ),
        **trust_p12,
    }
    newest = {  # as Kafka 4.1 and newer write it
        **oauth,
        "sasl.jaas.config": f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.oauthbearer.client.credentials.client.id": "svc",
        "sasl.oauthbearer.client.credentials.client.secret": CLIENTS["svc"],
        "sasl.oauthbearer.scope": "all",
    }
    del newest["sasl.login.callback.handler.class"]
    scram_keys = {"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": scram}
    return {
        "tls": Login("TLS", "ANONYMOUS", {"security.protocol": "SSL", **trust_pem}),
        "mtls": Login("MTLS", "CN=client", {"security.protocol": "SSL", **trust_p12, **client_p12}),
        "mtls-jks": Login("MTLS", "CN=client", {"security.protocol": "SSL", **trust_jks, **client_jks}),
        "mtls-file": Login("MTLS", "CN=client", {"security.protocol": "SSL", **trust_p12, **encrypted_pem}),
        "mtls-pem": Login("MTLS", "CN=client", {"security.protocol": "SSL", **client_pem}),
        "scram-256": Login("SCRAM", "cid", {**scram_keys, "sasl.mechanism": "SCRAM-SHA-256"}),
        "scram-512": Login("SCRAM", "cid", {**scram_keys, "sasl.mechanism": "SCRAM-SHA-512"}),
        "plain": Login(
            "PLAIN",
            "ann",
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": plain, **trust_jks},
        ),
        "oauth": Login("OAUTH", "svc", oauth),
        "oauth-4.1": Login("OAUTH", "svc", newest),
    }


FLOWS = (
    ("tls", "scram-512"),
    ("mtls", "plain"),
    ("mtls-jks", "mtls-file"),
    ("mtls-file", "mtls-jks"),
    ("scram-256", "oauth"),
    ("plain", "mtls"),
    ("mtls-pem", "tls"),
    ("oauth-4.1", "mtls-pem"),
)


def _is_there(cluster: Kafka, topic: str) -> bool:
    return topic in cluster.topics()


def test_every_login_on_both_sides_with_no_more_than_the_documented_rights(
    sides: Sides, start: Start, tmp_path: Path, unique: str
) -> None:
    logins = _logins(sides.source.stores, sides.provider)
    clusters: dict[str, KafkaCluster] = {}
    keys: dict[str, str] = {}
    flows: list[str] = []
    for source, target in FLOWS:
        a, b = f"{source.replace('.', '')}-a-{unique}", f"{target.replace('.', '')}-b-{unique}"
        clusters |= {a: sides.source.at(logins[source].listener), b: sides.target.at(logins[target].listener)}
        keys |= {f"{a}.{name}": value for name, value in logins[source].keys.items()}
        keys |= {f"{b}.{name}": value for name, value in logins[target].keys.items()}
        keys[f"{a}->{b}.topics"] = f"t-{source}-{unique}"
        flows.append(f"{a}->{b}")
    keys[f"{flows[0]}.emit.heartbeats.enabled"] = "true"
    settings = load_settings([write_config(tmp_path / "rights.properties", clusters, flows, keys)])
    for (source, target), flow in zip(FLOWS, settings.flows, strict=True):
        beats = [h for h in settings.heartbeats if h.flow == flow.flow]
        rights = (*rights_of_flow(flow), *(right for h in beats for right in rights_of_heartbeats(h)))
        for side, alias, login in (("source", flow.flow.source, source), ("target", flow.flow.target, target)):
            acls = [Acl(right.operation, right.kind, right.name) for right in rights if right.alias == alias]
            getattr(sides, side).allow(logins[login].principal, acls)
    admin_a, admin_b = sides.source.kafka, sides.target.kafka
    for source, _ in FLOWS:
        admin_a.create(f"t-{source}-{unique}")
        admin_a.write(f"t-{source}-{unique}", numbered(100))
    driver = start(clusters, flows, keys)
    for flow, (source, _) in zip(settings.flows, FLOWS, strict=True):
        topic = f"t-{source}-{unique}"
        remote = f"{flow.flow.source}.{topic}"
        await_until(partial(_is_there, admin_b, remote), SOON, lambda: str(driver.status()))
        assert_copied(admin_a, topic, admin_b, remote, 2 * SOON)
    await_lag_zero(driver)
    assert {status.state for status in driver.status()} == {FlowState.RUNNING}
    travelled = {status.flow: (status.records, status.whole + status.merged) for status in driver.status()}
    assert all(count == packed > 0 for count, packed in travelled.values()), f"as batches of our own: {travelled}"
    await_until(lambda: admin_b.count("heartbeats"), SOON, "heartbeats")
    assert sides.provider.given > 0
    assert sides.provider.refused == 0
