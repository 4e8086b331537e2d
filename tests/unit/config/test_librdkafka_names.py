"""librdkafka itself knows every name that the table gives. No server is named, so nothing is connected to."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates as serialize

from srm_spark.config.keys_client import CLIENT_KEYS, CONSUMER, ClientKey
from srm_spark.config.render import translate
from tests.unit.config.identities import CA, CLIENT

VALUES = {
    "acks": "all",
    "auto.offset.reset": "none",
    "client.dns.lookup": "use_all_dns_ips",
    "compression.type": "lz4",
    "group.protocol": "classic",
    "isolation.level": "read_committed",
    "metadata.recovery.strategy": "rebootstrap",
    "security.protocol": "SSL",
}
FLAGS = ("enable.auto.commit", "enable.idempotence", "allow.auto.create.topics", "check.crcs", "enable.metrics.push")
MAPPED = [row for row in CLIENT_KEYS.values() if row.librdkafka and not row.name.startswith(("ssl.", "sasl."))]


def _value(row: ClientKey) -> str:
    if row.name in FLAGS:
        return "true"
    if row.low is not None or row.divisor > 1:
        return "2147483647"
    return VALUES.get(row.name, "600000")


@pytest.mark.parametrize("row", [row for row in MAPPED if row.name != "bootstrap.servers"], ids=lambda row: row.name)
def test_each_mapped_property_is_accepted(row: ClientKey) -> None:
    java = {row.name: _value(row)}
    if row.name.endswith(".level") and row.name.startswith("compression."):
        java = {row.name: "5", "compression.type": row.name.split(".")[1]}
    elif row.name in ("session.timeout.ms", "heartbeat.interval.ms", "retries"):
        java = {row.name: "10000"}
    elif row.name in ("transaction.timeout.ms", "reconnect.backoff.ms", "retry.backoff.ms"):
        java = {row.name: "1000"}
    options: dict[str, object] = {**translate(java).options}
    make = Consumer if row.clients == CONSUMER else Producer
    if make is Consumer:
        options.setdefault("group.id", "g")
        options.setdefault("max.poll.interval.ms", 600000)
    try:
        make({**options, "log_level": 0}, logger=logging.getLogger("none"))
    except KafkaException as error:
        pytest.fail(str(error))


def test_stores_of_java_are_accepted_as_they_come_out(tmp_path: Path) -> None:
    encryption = BestAvailableEncryption(b"store-pass")
    (tmp_path / "key.p12").write_bytes(serialize(b"me", CLIENT.key, CLIENT.certificate, [CA.certificate], encryption))
    (tmp_path / "trust.p12").write_bytes(
        serialize_java_truststore([PKCS12Certificate(CA.certificate, b"ca")], encryption)
    )
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "x.ScramLoginModule required username=u password=p;",
        "ssl.truststore.location": str(tmp_path / "trust.p12"),
        "ssl.truststore.password": "store-pass",
        "ssl.keystore.location": str(tmp_path / "key.p12"),
        "ssl.keystore.password": "store-pass",
        "ssl.endpoint.identification.algorithm": "",
        "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_RSA_WITH_AES_128_CBC_SHA",
    }
    Producer({**translate(java).options, "log_level": 0}, logger=logging.getLogger("none"))


def test_oauth_options_are_accepted() -> None:
    retriever = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
    for more in (
        {},
        {"sasl.oauthbearer.jwt.retriever.class": retriever, "sasl.oauthbearer.assertion.algorithm": "ES256"},
    ):
        java = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
            "sasl.oauthbearer.client.credentials.client.id": "id",
            "sasl.oauthbearer.client.credentials.client.secret": "secret",
            "sasl.oauthbearer.scope": "s",
            "sasl.oauthbearer.sub.claim.name": "sub",
            "sasl.oauthbearer.assertion.private.key.file": "/no/such",
            **more,
        }
        options = translate(java).options
        assert ("sasl.oauthbearer.assertion.private.key.file" in options) is bool(more)
        try:
            Producer({**options, "log_level": 0}, logger=logging.getLogger("none"))
        except KafkaException as error:
            assert "No such configuration property" not in str(error)  # noqa: PT017 - the key file is missing on purpose
