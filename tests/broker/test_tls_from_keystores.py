"""A broker that demands certificates: Java's keystores, turned into PEM in memory, are what librdkafka needs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from srm_spark.config import librdkafka, load_settings
from srm_spark.testing import LocalKafka
from tests.certificates import identity, write_keystore, write_truststore

PASSWORD = "store-pass"
QUIET = logging.getLogger("none")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """server.p12 signed by the CA, client.p12 signed by an intermediate that the broker does not know, trust.p12."""
    folder = tmp_path_factory.mktemp("stores")
    ca = identity("ca", is_ca=True)
    between = identity("between", ca, is_ca=True)
    write_keystore(folder / "server.p12", identity("server", ca), [ca], PASSWORD)
    write_keystore(folder / "client.p12", identity("client", between), [between], PASSWORD)
    write_truststore(folder / "trust.p12", ca, PASSWORD)
    return folder


def _broker_settings(stores: Path) -> dict[str, str]:
    return {
        "listeners": "SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": "SSL://127.0.0.1:{port}",
        "inter.broker.listener.name": "SSL",
        "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
        "ssl.client.auth": "required",
        **{f"ssl.{kind}store.type": "PKCS12" for kind in ("key", "trust")},
        **{f"ssl.{kind}store.password": PASSWORD for kind in ("key", "trust")},
        "ssl.keystore.location": str(stores / "server.p12"),
        "ssl.key.password": PASSWORD,
        "ssl.truststore.location": str(stores / "trust.p12"),
    }


def test_a_client_certificate_with_its_chain_is_accepted_and_none_is_not(
    local_kafka: Callable[..., LocalKafka], stores: Path, tmp_path: Path
) -> None:
    kafka = local_kafka("tls", overrides=_broker_settings(stores))
    file = tmp_path / "srm.properties"
    lines = [
        "clusters = A, B",
        f"A.bootstrap.servers = {kafka.bootstrap_servers}",
        "B.bootstrap.servers = localhost:1",
        "A->B.enabled = true",
        "topics = t",
        "A.security.protocol = SSL",
        f"A.ssl.truststore.location = {stores}/trust.p12",
        f"A.ssl.truststore.password = {PASSWORD}",
    ]
    file.write_text("\n".join(lines))
    without = librdkafka(load_settings([file]).clusters["A"], {})
    with pytest.raises(KafkaException):
        AdminClient({**without, "log_level": 0}, logger=QUIET).list_topics(timeout=5)
    mine = {"A.ssl.keystore.location": f"{stores}/client.p12", "A.ssl.keystore.password": PASSWORD}
    options = librdkafka(load_settings([file], mine).clusters["A"], {})
    assert AdminClient({**options, "log_level": 0}, logger=QUIET).list_topics(timeout=20).brokers
