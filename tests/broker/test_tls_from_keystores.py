"""A broker that demands certificates: Java's keystores, turned into PEM in memory, are what librdkafka needs."""

from __future__ import annotations

import datetime
import ipaddress
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates as serialize

from srm_spark.config import librdkafka, load_settings
from srm_spark.testing import LocalKafka

PASSWORD = "store-pass"
QUIET = logging.getLogger("none")


class Identity(NamedTuple):
    key: rsa.RSAPrivateKey
    certificate: x509.Certificate


def _identity(name: str, issuer: Identity | None, *, is_ca: bool) -> Identity:
    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    return Identity(key, builder.sign(issuer.key if issuer else key, hashes.SHA256()))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """server.p12 signed by the CA, client.p12 signed by an intermediate that the broker does not know, trust.p12."""
    folder = tmp_path_factory.mktemp("stores")
    ca = _identity("ca", None, is_ca=True)
    between = _identity("between", ca, is_ca=True)
    server, client = _identity("server", ca, is_ca=False), _identity("client", between, is_ca=False)
    encryption = BestAvailableEncryption(PASSWORD.encode())
    for name, owner, issuer in (("server", server, ca), ("client", client, between)):
        store = serialize(name.encode(), owner.key, owner.certificate, [issuer.certificate], encryption)
        (folder / f"{name}.p12").write_bytes(store)
    trusted = [PKCS12Certificate(ca.certificate, b"ca")]
    (folder / "trust.p12").write_bytes(serialize_java_truststore(trusted, encryption))
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
